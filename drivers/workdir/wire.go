package workdir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/safeopen"
)

// Request is what an engine asks of an agent's directory on another machine.
type Request struct {
	Op      string            `json:"op"` // one of the below
	Path    string            `json:"path,omitempty"`
	Most    int               `json:"most,omitzero"`
	Content []byte            `json:"content,omitempty"`
	Argv    []string          `json:"argv,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// What can be asked for.
const (
	OpReal  = "real"  // where the directory is
	OpSub   = "sub"   // where Path is, a directory within it
	OpRead  = "read"  // Path, at most Most bytes
	OpWrite = "write" // Content to Path
	OpLook  = "look"  // the files that Argv names, in the directory Path with Env
)

// Answer is what came of it.
type Answer struct {
	Path    string       `json:"path,omitempty"`
	Content []byte       `json:"content,omitempty"` // of the file; of one that was written, before
	Files   []judge.File `json:"files,omitempty"`
	Texts   [][]byte     `json:"texts,omitempty"` // of Files, as far as there is room
	Error   string       `json:"error,omitempty"`
	Why     string       `json:"why,omitempty"` // of Error, where a caller minds
}

// Why something failed.
const (
	whyNotExist = "not_exist"
	whyTooLarge = "too_large"
)

// Bounds, in bytes.
const (
	maxRequest = 32 << 20 // of JSON
	maxAnswer  = 32 << 20
	maxTexts   = 4 << 20
	maxWords   = 4096
	maxFiles   = 1000
)

// Serve answers one request.
func (d Dir) Serve(in io.Reader, out io.Writer) error {
	var r Request
	if err := readLine(in, maxRequest, &r); err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	a, err := d.answer(r)
	if err != nil {
		a = Answer{Error: err.Error()}
		var known *core.Error
		switch {
		case errors.Is(err, fs.ErrNotExist):
			a.Why = whyNotExist
		case errors.Is(err, safeopen.ErrTooLarge):
			a.Why = whyTooLarge
		case errors.As(err, &known):
			a.Why = string(known.Code)
		}
	}
	_, err = out.Write(append(core.MustEncode(a), '\n'))
	return err
}

func (d Dir) answer(r Request) (a Answer, err error) {
	switch r.Op {
	case OpReal:
		a.Path = d.Real()
	case OpSub:
		a.Path, err = d.Sub(r.Path)
	case OpRead:
		a.Content, err = d.Read(r.Path, min(max(r.Most, 0), MaxFile))
	case OpWrite:
		a.Content, err = d.Write(r.Path, r.Content)
	case OpLook:
		spec := cell.Spec{Argv: r.Argv, Env: r.Env, Dir: r.Path}
		if err := cell.CheckCommand("argv", r.Argv); err != nil {
			return a, err
		}
		if _, err := d.Within(r.Path); err != nil {
			return a, err
		}
		a.Files = d.Look(spec)
		room := maxTexts
		for _, f := range a.Files {
			text, is := d.Pins.Content(d.Shelf, f.SHA256)
			if !is || len(text) > room {
				text = nil
			}
			room -= len(text)
			a.Texts = append(a.Texts, text)
		}
	default:
		err = core.Invalid("op", r.Op, "a known one")
	}
	return a, err
}

// Ask is the other end of Serve. What it gives is bounded and clean of what can't be
// shown.
func Ask(in io.Writer, out io.Reader, r Request) (a Answer, err error) {
	if _, err = in.Write(append(core.MustEncode(r), '\n')); err != nil {
		return a, fmt.Errorf("send a request: %w", err)
	}
	if err = readLine(out, maxAnswer, &a); err != nil {
		return a, fmt.Errorf("read the answer: %w", err)
	}
	return a, a.check()
}

func (a *Answer) check() error {
	if a.Error != "" {
		return told{clean(a.Error), a.Why}
	}
	if len(a.Files) > maxFiles || len(a.Texts) > len(a.Files) || len(a.Path) > maxWords || len(a.Content) > MaxFile {
		return core.Errorf(core.Unavailable, "the host answers with more than there can be")
	}
	for i := range a.Files {
		f := &a.Files[i]
		if f.Path == "" || clean(f.Path) != f.Path || len(f.SHA256) > 64 || len(f.Mode) > 8 || f.Size < 0 || len(a.Texts) > 0 && len(a.Texts[min(i, len(a.Texts)-1)]) > maxTexts {
			return core.Errorf(core.Unavailable, "the host answers with a file that can't be one")
		}
		f.Unbound, f.Text, f.Diff, f.Note = clean(f.Unbound), "", "", ""
	}
	return nil
}

func clean(s string) string {
	return core.ClipTo(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, s), maxWords)
}

// told is an error in the words of another machine.
type told struct{ words, why string }

func (t told) Error() string { return t.words }

func (t told) Unwrap() error {
	switch t.why {
	case whyNotExist:
		return fs.ErrNotExist
	case whyTooLarge:
		return safeopen.ErrTooLarge
	case string(core.InvalidInput), string(core.Denied):
		return core.Kind(core.Code(t.why))
	}
	return nil
}

func readLine(from io.Reader, most int64, v any) error {
	line, err := bufio.NewReader(io.LimitReader(from, most)).ReadBytes('\n')
	if err != nil {
		return err
	}
	return core.Decode(line, v)
}
