package ui

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/term"
)

// suspend stops an attached cockpit as a shell's job control does, until it is
// told to go on. One that has the engine goes on: agents, leases and everybody
// attached would stand still with it.
func (d *dialog) suspend() tea.Cmd {
	switch {
	case d.opt.Terminal == nil:
		return d.say(true, "", "the engine runs in this cockpit and would stop with it; one that is attached can be suspended")
	case d.opt.Terminal.Suspend == nil:
		return d.say(true, "", "this screen can't be suspended from here")
	}
	return d.away(func() error {
		d.opt.Terminal.Suspend()
		return nil
	}, func(error) tea.Msg { return tea.ResumeMsg{} })
}

// lend gives the screen up for a program of whoever looks.
func (d *dialog) lend(argv []string, then func(error) tea.Msg) tea.Cmd {
	return d.away(func() error { return d.opt.Lend(argv) }, then)
}

// lendTo is lend for a line of a shell about a file. An interrupt is the program's, not
// the shell's.
func (d *dialog) lendTo(line, path string, then func(error) tea.Msg) tea.Cmd {
	return d.lend([]string{"sh", "-c", "trap : INT; " + line, "sh", path}, then)
}

// away gives the screen up while something runs; what is typed meanwhile is not the
// cockpit's.
func (d *dialog) away(run func() error, then func(error) tea.Msg) tea.Cmd {
	if t := d.opt.Terminal; t != nil && t.Hold != nil {
		t.Hold()
	}
	return func() tea.Msg { return awayMsg{run, then} }
}

// awayMsg has the screen given up while it runs.
type awayMsg struct {
	absence
	then func(error) tea.Msg
}

// absence is what runs while the screen is given up.
type absence func() error

func (a absence) Run() error { return a() }

func (absence) SetStdin(io.Reader)  {}
func (absence) SetStdout(io.Writer) {}
func (absence) SetStderr(io.Writer) {}

// Bounds of a listing: deeper or further is left out, and said so.
const (
	listDepth = 4
	listMost  = 2000
)

// page shows what is under the cursor in the operator's pager. The screen is
// given up for as long, and drawn anew after.
func (d *dialog) page() tea.Cmd {
	p, ok := d.focused().(pane.Papered)
	if !ok {
		return d.say(true, "", "there is nothing here for a pager")
	}
	paper, ok := p.Paper(d.env())
	switch {
	case !ok:
		return d.say(true, "", "there is nothing here for a pager")
	case d.opt.Lend == nil:
		return d.say(true, "", "no pager is available here")
	case paper.Dir == "":
		return d.showPaper(term.CleanLines(paper.Text))
	}
	dir := d.path(paper.Dir)
	return beside(d, func() (string, error) { return listing(dir) }, d.showPaper)
}

func (d *dialog) showPaper(text string) tea.Cmd {
	return beside(d, func() (string, error) { return draft("page.txt", text) }, func(path string) tea.Cmd {
		return d.lendTo(d.opt.Pager, path, func(err error) tea.Msg {
			_ = os.Remove(path)
			return followUp(func() tea.Cmd {
				if err != nil {
					return d.say(true, "", "the pager ended badly: "+err.Error())
				}
				return nil
			})
		})
	})
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// listing is what a directory holds, with sizes and times, as clean text.
func listing(dir string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", term.Clean(dir))
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil && path == dir:
			return err
		case path == dir:
			return nil
		case err != nil:
			fmt.Fprintf(&b, "%s: %s\n", term.Clean(rel), term.Clean(err.Error()))
			return nil
		case n >= listMost:
			return errEnough
		}
		n++
		name, size, when := rel, "", ""
		if info, err := d.Info(); err == nil {
			when = info.ModTime().UTC().Format("2006-01-02 15:04")
			if !d.IsDir() {
				size = fmt.Sprint(info.Size())
			}
		}
		skip := error(nil)
		if d.IsDir() {
			name += string(filepath.Separator)
			if strings.Count(rel, string(filepath.Separator)) >= listDepth-1 || d.Name() == ".git" {
				name, skip = name+" …", filepath.SkipDir
			}
		}
		fmt.Fprintf(&b, "%12s  %s  %s\n", size, when, term.Clean(name))
		return skip
	})
	if errors.Is(err, errEnough) {
		fmt.Fprintf(&b, "\nmore than %d entries: the rest is left out\n", listMost)
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("list %s: %w", dir, err)
	}
	if n == 0 {
		b.WriteString("(empty)\n")
	}
	return b.String(), nil
}

// inEditor has a text edited in the operator's editor, under a name that tells the editor
// what it is. It can be only where the operator sits at the engine's machine.
func (d *dialog) inEditor(name, text string, done func(text string) tea.Cmd) tea.Cmd {
	if d.opt.Lend == nil {
		return d.say(true, "", "your editor can't be opened from here: the cockpit runs at the engine's side; type or paste the text")
	}
	return beside(d, func() (string, error) { return draft(name, text) }, func(path string) tea.Cmd {
		return d.lendTo(d.opt.Editor, path, func(err error) tea.Msg {
			defer os.Remove(path)
			text, err := drafted(path, err)
			return followUp(func() tea.Cmd {
				if err != nil {
					return d.say(true, "", err.Error())
				}
				return done(text)
			})
		})
	})
}

// draft keeps a text in a file of the operator's own.
func draft(name, text string) (path string, err error) {
	f, err := os.CreateTemp("", "swarmdeck-*-"+filepath.Base(name))
	if err != nil {
		return "", fmt.Errorf("make a file for the editor: %w", err)
	}
	if _, err = io.WriteString(f, text); err == nil {
		err = f.Close()
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("write the editor's file: %w", err)
	}
	return f.Name(), nil
}

// drafted is what the editor, which ended with err, left in a file.
func drafted(path string, err error) (string, error) {
	const most = core.MaxInput
	if err != nil {
		return "", fmt.Errorf("the editor ended badly: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the editor's file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(data) > most {
		err = core.Invalid("text", fmt.Sprintf("more than %d bytes", most), fmt.Sprintf("at most %d bytes", most))
	}
	return string(data), err
}

// editFile has the file under the cursor of an agent's work edited, in the agent's tree.
func (d *dialog) editFile() tea.Cmd {
	it := d.selected()
	agent, is := strings.CutPrefix(it.ID, "tree:")
	if !is || it.File == "" || strings.Contains(agent, " ") {
		return d.say(true, "", "there is no file of an agent's tree here to edit")
	}
	return d.editFiles(agent, []string{it.File})
}

// editFiles has files of an agent's tree edited, one after another.
func (d *dialog) editFiles(agent string, files []string) tea.Cmd {
	if len(files) == 0 {
		return nil
	}
	return fetch(d, []string{"review", "file", "-o", "json", "--", agent, files[0]}, func(f op.TreeFile) tea.Cmd {
		return d.editRead(f, files[1:])
	})
}

// editRead opens the editor on a file, and writes what it left into the tree; the rest is
// edited after it.
func (d *dialog) editRead(f op.TreeFile, rest []string) tea.Cmd {
	return d.inEditor(f.File, f.Content, func(text string) tea.Cmd {
		if text == f.Content {
			return tea.Batch(d.say(false, "", "nothing was changed in "+f.File), d.editFiles(f.Agent, rest))
		}
		run := d.runs()
		return d.track(func() tea.Msg {
			path, err := draft(f.File, text)
			if err != nil {
				return pane.Note{Bad: true, Text: err.Error()}
			}
			defer os.Remove(path)
			line := []string{"review", "edit", "--from-file", path, "--state", f.State, "--", f.Agent, f.File}
			next := func() tea.Cmd { return d.editFiles(f.Agent, rest) }
			return ranMsg{job{lines: [][]string{line}, effect: op.Writes, keys: d.presses, done: next}, []output{run(asSentence(line, op.Writes))}}
		})
	})
}
