package modelproxy

import (
	"errors"
	"io"
	"sync"
)

// body is a body on its way. Its last bytes are handed on only after its end
// was told.
type body struct {
	from  io.ReadCloser
	size  int64 // -1 when it is not known
	late  bool  // goes a byte behind: its size is not known, so that its end may come alone
	saw   func([]byte)
	end   func(error)
	close bool // with who reads it; a request's is the server's to close

	mu   sync.Mutex
	read int64
	back []byte // what is kept back: at most one byte
	last error  // of its end
}

func (b *body) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n == 0 && b.last == nil && len(p) > 0 {
		n = b.more(p)
	}
	if n == 0 {
		n = copy(p, b.back)
		b.back = b.back[n:]
	}
	if len(b.back) > 0 {
		return n, nil
	}
	return n, b.last // who has it may be closed by now, and say something else
}

// more reads on, and tells the end.
func (b *body) more(p []byte) int {
	n, err := b.from.Read(p)
	if n > 0 {
		b.read += int64(n)
		b.saw(p[:n])
	}
	if err == nil && b.size >= 0 && b.read >= b.size {
		err = io.EOF
	}
	if b.late && n > 0 {
		n = b.keepBack(p[:n])
	}
	switch b.last = err; {
	case errors.Is(err, io.EOF):
		b.end(nil)
	case err != nil:
		b.end(err)
	}
	return n
}

// keepBack takes the last byte out of p and puts the one before in front of it.
func (b *body) keepBack(p []byte) int {
	last := p[len(p)-1]
	copy(p[len(b.back):], p[:len(p)-1])
	n := copy(p, b.back) + len(p) - 1
	b.back = append(b.back[:0], last)
	return n
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.close {
		return b.from.Close()
	}
	return nil
}
