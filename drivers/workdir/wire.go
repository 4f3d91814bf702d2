package workdir

import (
	"bufio"
	"fmt"
	"io"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
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
	desk.Failure
}

// Bounds.
const (
	maxTexts = 4 << 20 // bytes
	maxPath  = 4096    // bytes
	maxFiles = 1000
)

// Serve answers one request.
func (d Dir) Serve(in io.Reader, out io.Writer) error {
	var r Request
	if err := desk.Read(bufio.NewReader(in), &r); err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	a, err := d.answer(r)
	if err != nil {
		a = Answer{Failure: desk.Failed(err)}
	}
	return desk.Write(out, a)
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
	if err = desk.Write(in, r); err != nil {
		return a, fmt.Errorf("send a request: %w", err)
	}
	if err = desk.Read(bufio.NewReader(out), &a); err != nil {
		return a, fmt.Errorf("read the answer: %w", err)
	}
	return a, a.check()
}

func (a *Answer) check() error {
	if err := a.Err(); err != nil {
		return err
	}
	if len(a.Files) > maxFiles || len(a.Texts) > len(a.Files) || len(a.Path) > maxPath || len(a.Content) > MaxFile {
		return core.Errorf(core.Unavailable, "the host answers with more than there can be")
	}
	for i := range a.Files {
		f := &a.Files[i]
		if f.Path == "" || desk.Clean(f.Path) != f.Path || len(f.SHA256) > 64 || len(f.Mode) > 8 || f.Size < 0 || len(a.Texts) > 0 && len(a.Texts[min(i, len(a.Texts)-1)]) > maxTexts {
			return core.Errorf(core.Unavailable, "the host answers with a file that can't be one")
		}
		f.Unbound, f.Text, f.Diff, f.Note = desk.Clean(f.Unbound), "", "", ""
	}
	return nil
}
