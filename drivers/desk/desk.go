// Package desk is what an engine and a host's keeper say to each other about one
// request, which is answered in the place of a process's work: a line of JSON each
// way, after which either side may have bytes to send.
package desk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// MaxLine bounds a line, in bytes.
const MaxLine = 32 << 20

// maxWords bounds what is said of an error, in bytes.
const maxWords = 4096

// Failure is how an answer says that it is none; the empty one says nothing.
type Failure struct {
	Error string `json:"error,omitempty"`
	Why   string `json:"why,omitempty"` // of Error, where a caller minds
}

// Why something failed, beside the codes of errors.
const (
	notExist = "not_exist"
	tooLarge = "too_large"
	barred   = "barred" // who asks may not
)

// Failed is that of an error, of nil none.
func Failed(err error) (f Failure) {
	if err == nil {
		return f
	}
	f.Error = err.Error()
	var known *core.Error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Why = notExist
	case errors.Is(err, safeopen.ErrTooLarge):
		f.Why = tooLarge
	case errors.Is(err, fs.ErrPermission), errors.As(err, new(cell.BadDir)):
		f.Why = barred
	case errors.As(err, &known):
		f.Why = string(known.Code)
	}
	return f
}

// Err is the error that it stands for, clean of what can't be shown.
func (f Failure) Err() error {
	if f.Error == "" {
		return nil
	}
	return told{Clean(f.Error), f.Why}
}

// told is an error in the words of another machine.
type told struct{ words, why string }

func (t told) Error() string { return t.words }

func (t told) Unwrap() error {
	switch core.Code(t.why) {
	case notExist:
		return fs.ErrNotExist
	case tooLarge:
		return safeopen.ErrTooLarge
	case barred:
		return fs.ErrPermission
	case core.InvalidInput, core.Denied, core.Conflict, core.NotFound, core.Unavailable:
		return core.Kind(core.Code(t.why))
	}
	return nil
}

// Clean is what may be shown of a text from the other side.
func Clean(s string) string { return Text(s, maxWords) }

// Text is Clean of at most so many bytes.
func Text(s string, most int) string {
	return core.ClipTo(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, s), most)
}

// Read reads a line of at most MaxLine bytes.
func Read(from *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		if line = append(line, part...); len(line) > MaxLine {
			return fmt.Errorf("a line of more than %d bytes", MaxLine)
		}
		if err == nil {
			return core.Decode(line, v)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// Write writes a line.
func Write(to io.Writer, v any) error {
	_, err := to.Write(append(core.MustEncode(v), '\n'))
	return err
}
