package pipe

import (
	"bytes"
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

	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer.
func (k *Kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.End {
		k.data = append(k.data, p[max(0, len(p)-k.Most):]...)
		if over := len(k.data) - k.Most; over > 0 {
			k.data = append(k.data[:0], k.data[over:]...)
		}
		return len(p), nil
	}
	room := k.Most - len(k.data)
	k.data = append(k.data, p[:min(room, len(p))]...)
	if len(p) > room && k.Over != nil {
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

// Take is Bytes, and forgets them.
func (k *Kept) Take() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.data
	k.data = nil
	return data
}
