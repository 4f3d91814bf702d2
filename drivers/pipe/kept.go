package pipe

import (
	"bytes"
	"io"
	"sync"
)

// Kept keeps the beginning of what is written to it, or its end, up to Most
// bytes. It is safe for concurrent use.
type Kept struct {
	Most int
	End  bool // keep the end
	// Over is the error of a write past Most; nil drops what is too much, so that
	// a program that says a lot does not hang on it. It is not for an End.
	Over error
	// To is where it is kept; nil is in memory. It is not for an End.
	To io.Writer

	mu   sync.Mutex
	data []byte
	n    int // bytes kept
	cut  bool
}

func (k *Kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := k.Most - k.n
	k.cut = k.cut || len(p) > room
	k.n += min(room, len(p))
	if k.End {
		k.data = append(k.data, p[max(0, len(p)-k.Most):]...)
		if over := len(k.data) - k.Most; over > 0 {
			k.data = append(k.data[:0], k.data[over:]...)
		}
		return len(p), nil
	}
	keep := p[:min(room, len(p))]
	if k.To == nil {
		k.data = append(k.data, keep...)
	} else if n, err := k.To.Write(keep); err != nil {
		return n, err
	}
	if len(keep) < len(p) && k.Over != nil {
		return room, k.Over
	}
	return len(p), nil
}

// Bytes is what is kept now.
func (k *Kept) Bytes() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return bytes.Clone(k.data)
}

// Cut reports whether anything was not kept.
func (k *Kept) Cut() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cut
}

// Take is Bytes, and forgets them.
func (k *Kept) Take() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.data
	k.data, k.n = nil, 0
	return data
}
