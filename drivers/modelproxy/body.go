package modelproxy

import (
	"errors"
	"io"
	"sync"
)

// body is a body on its way. Its last bytes are handed on only after its end
// was told.
type body struct {
	from io.ReadCloser
	size int64 // -1 when it is not known
	late bool  // goes a byte behind: its size is not known, so that its end may come alone
	saw  func([]byte)
	// holds says whether what was seen so far, of which size bytes would be kept back,
	// is kept back until more is seen or the end was told; nil never does.
	holds func(size int) bool
	end   func(error)
	close bool // with who reads it; a request's is the server's to close

	mu   sync.Mutex
	read int64
	back []byte // what is kept back
	free bool   // it is kept back no longer
	last error  // of its end
}

func (b *body) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n == 0 && b.last == nil && len(p) > 0 && !b.free {
		n = b.more(p)
	}
	if n == 0 {
		n = copy(p, b.back)
		b.back = b.back[n:]
	}
	if len(b.back) > 0 {
		return n, nil
	}
	b.free = false
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
	if b.holds != nil && n > 0 {
		if held := b.holds(len(b.back) + n); held || len(b.back) > 0 {
			b.back = append(b.back, p[:n]...)
			n, b.free = 0, !held
		}
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

func (b *body) Close() error {
	if b.close {
		return b.from.Close()
	}
	return nil
}
