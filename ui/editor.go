package ui

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/ui/pane"
)

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
