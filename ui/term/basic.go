package term

import (
	"bytes"
	"io"
	"strings"
)

// maxSequence bounds a control sequence, in bytes; a longer one is dropped.
const maxSequence = 64

// Final bytes of the control sequences that a VT102 knows, and those that the
// Linux console knows besides (console_codes(4)).
const (
	finalsVT102 = "ABCDHJKLMP@mr"
	finalsLinux = "GXd`"
)

// leaveBasic takes the place of leaving the alternate screen, which such a
// terminal has not: it leaves an empty screen behind.
const leaveBasic = "\x1b[m\x1b[r\x1b[H\x1b[2J"

// basicWriter passes on what an old terminal understands.
type basicWriter struct {
	out    io.Writer
	finals string
	seq    []byte // an escape sequence so far
	string bool   // within an OSC, DCS, SOS, PM or APC
}

// NewBasic writes to a terminal of the name that Caps.Basic is about. Of the
// escape sequences it passes on those of a VT102 and, for linux, a few more;
// others would be printed, or taken for something else: titles, queries,
// keyboard and mouse protocols, the alternate screen. Who leaves that leaves an
// empty screen.
func NewBasic(out io.Writer, name string) io.Writer {
	w := &basicWriter{out: out, finals: finalsVT102}
	if strings.HasPrefix(name, "linux") {
		w.finals += finalsLinux
	}
	return w
}

// Write implements io.Writer. A sequence may come in pieces.
func (w *basicWriter) Write(p []byte) (int, error) {
	pass := make([]byte, 0, len(p)+len(leaveBasic))
	for _, b := range p {
		pass = w.take(pass, b)
	}
	if len(pass) > 0 {
		if _, err := w.out.Write(pass); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// take goes on with one byte and appends what is to be written.
func (w *basicWriter) take(pass []byte, b byte) []byte {
	switch {
	case w.string:
		if b == 0x07 || b == '\\' && len(w.seq) > 0 {
			w.string = false
		}
		w.seq = w.seq[:0]
		if w.string && b == 0x1b {
			w.seq = append(w.seq, b)
		}
		return pass
	case len(w.seq) == 0 && b != 0x1b:
		return append(pass, b)
	case b == 0x1b: // also one that cuts another short
		w.seq = append(w.seq[:0], b)
		return pass
	case len(w.seq) == 1 && bytes.IndexByte([]byte("]P_^X"), b) >= 0:
		w.seq, w.string = w.seq[:0], true
		return pass
	}
	w.seq = append(w.seq, b)
	over := b >= 0x30 && b <= 0x7e && (len(w.seq) > 2 && w.seq[1] != '[' || len(w.seq) == 2 && b != '[')
	if w.seq[1] == '[' {
		over = len(w.seq) > 2 && b >= 0x40 && b <= 0x7e
	}
	switch {
	case over:
		pass = append(pass, w.known()...)
	case len(w.seq) < maxSequence:
		return pass
	}
	w.seq = w.seq[:0]
	return pass
}

// known is the sequence as it is to be written.
func (w *basicWriter) known() []byte {
	switch string(w.seq) {
	case "\x1b7", "\x1b8", "\x1bD", "\x1bE", "\x1bM", "\x1b[?25h", "\x1b[?25l", "\x1b[?7h", "\x1b[?7l":
		return w.seq
	case "\x1b[?1049l", "\x1b[?47l", "\x1b[?1047l":
		return []byte(leaveBasic)
	}
	if len(w.seq) < 3 || w.seq[1] != '[' || strings.IndexByte(w.finals, w.seq[len(w.seq)-1]) < 0 {
		return nil
	}
	for _, b := range w.seq[2 : len(w.seq)-1] {
		if b != ';' && (b < '0' || b > '9') {
			return nil
		}
	}
	return w.seq
}
