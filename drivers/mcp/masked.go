package mcp

import (
	"bytes"
	"io"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/secret"
)

// masked is what a server says without the secrets that it was given: in the
// stream, and in each message once escapes are read.
func masked(mask *secret.Mask, from io.ReadCloser) io.ReadCloser {
	if mask == nil {
		return from
	}
	m := &maskedReader{ReadCloser: from, buf: make([]byte, 32<<10)}
	m.lines = mask.Writer(&pipe.Splitter{Max: maxFrame, Emit: func(line []byte, cut int) {
		m.ready.Write(mask.JSON(line))
		if cut > 0 { // so that it is too long for its reader too
			m.ready.Write(make([]byte, 1+maxFrame-min(maxFrame, m.ready.Len())))
		}
		m.ready.WriteByte('\n')
	}})
	return m
}

type maskedReader struct {
	io.ReadCloser
	lines *secret.Writer
	buf   []byte
	ready bytes.Buffer
	err   error
}

// Read implements io.Reader.
func (m *maskedReader) Read(p []byte) (int, error) {
	for m.ready.Len() == 0 && m.err == nil {
		var n int
		n, m.err = m.ReadCloser.Read(m.buf)
		_, _ = m.lines.Write(m.buf[:n])
		if m.err != nil {
			m.lines.Close()
		}
	}
	if m.ready.Len() == 0 {
		return 0, m.err
	}
	return m.ready.Read(p)
}
