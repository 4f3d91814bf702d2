package socket

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// maxAhead bounds what is remembered of the standard input.
const maxAhead = 16 << 20

// Input is the standard input, remembered until it is known which process
// carries the command out.
type Input struct {
	*os.File
	mu    sync.Mutex
	kept  bytes.Buffer
	known bool
}

func (in *Input) Read(p []byte) (int, error) {
	n, err := in.File.Read(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.known && in.kept.Len() < maxAhead {
		in.kept.Write(p[:n])
	}
	return n, err
}

func (in *Input) read() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return bytes.Clone(in.kept.Bytes())
}

// Stay says that the command is carried out here.
func (in *Input) Stay() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.known = true
	in.kept = bytes.Buffer{}
}

var _ io.ReadCloser = (*Input)(nil)
