package pipe

import (
	"bytes"
	"io"

	"swarmdeck/engine/secret"
)

// masked is a stream that is read as what it is written into makes of it.
type masked struct {
	io.ReadCloser
	in    *secret.Writer
	buf   []byte
	ready bytes.Buffer
	err   error
}

// Masked is a stream without secrets, as into makes it: what that writes to ready is read.
func Masked(from io.ReadCloser, mask *secret.Mask, into func(ready *bytes.Buffer) io.Writer) io.ReadCloser {
	m := &masked{ReadCloser: from, buf: make([]byte, 32<<10)}
	m.in = mask.Writer(into(&m.ready))
	return m
}

func (m *masked) Read(p []byte) (int, error) {
	for m.ready.Len() == 0 && m.err == nil {
		var n int
		n, m.err = m.ReadCloser.Read(m.buf)
		_, _ = m.in.Write(m.buf[:n])
		if m.err != nil {
			m.in.Close()
		}
	}
	if m.ready.Len() == 0 {
		return 0, m.err
	}
	return m.ready.Read(p)
}
