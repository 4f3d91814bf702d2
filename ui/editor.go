package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/tree"
)

// Messages of an editor's way.
type (
	draftMsg struct {
		path string
		most int
		err  error
		then func(text string) tea.Cmd
	}
	writtenMsg struct {
		text string
		err  error
		then func(text string) tea.Cmd
	}
)

// inEditor has a text edited in the operator's editor, under a name that tells the editor
// what it is. It can be only where the operator sits at the engine's machine.
func (d *dialog) inEditor(name, text string, most int, then func(text string) tea.Cmd) tea.Cmd {
	if d.opt.Editor == nil {
		return d.say(true, "", "your editor can't be opened from here: the cockpit runs at the engine's side; type or paste the text")
	}
	return d.track(func() tea.Msg {
		path, err := draft(name, text)
		return draftMsg{path, most, err, then}
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

func (d *dialog) drafted(msg draftMsg) tea.Cmd {
	if msg.err != nil {
		return d.say(true, "", msg.err.Error())
	}
	return tea.ExecProcess(d.opt.Editor(msg.path), func(err error) tea.Msg {
		defer os.Remove(msg.path)
		if err != nil {
			return writtenMsg{err: fmt.Errorf("the editor ended badly: %w", err)}
		}
		f, err := os.Open(msg.path)
		if err != nil {
			return writtenMsg{err: fmt.Errorf("read the editor's file: %w", err)}
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, int64(msg.most)+1))
		if err == nil && len(data) > msg.most {
			err = core.Invalid("text", fmt.Sprintf("more than %d bytes", msg.most), fmt.Sprintf("at most %d bytes", msg.most))
		}
		return writtenMsg{string(data), err, msg.then}
	})
}

// written takes what the editor left.
func (d *dialog) written(msg writtenMsg) tea.Cmd {
	d.dirty = true
	if msg.err != nil {
		return d.say(true, "", msg.err.Error())
	}
	return msg.then(msg.text)
}

// readMsg is a file of an agent's tree that is to be edited.
type readMsg struct {
	file op.TreeFile
	rest []string // what is edited after it
	says string   // why it can't be
}

// editFile has the file under the cursor of an agent's work edited, in the agent's tree.
func (d *dialog) editFile() tea.Cmd {
	p := d.focused()
	if p == nil {
		return nil
	}
	it := p.Selected(d.env())
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
	ctx, tenant, run := d.ctx, d.tenant, d.opt.Run
	return d.track(func() tea.Msg {
		out, says, code := run(ctx, tenant, []string{"review", "file", "-o", "json", "--", agent, files[0]})
		read := readMsg{rest: files[1:]}
		if err := json.Unmarshal([]byte(out), &read.file); code != 0 || err != nil {
			read.says = reason(output{out: out, err: says, code: code})
		}
		return read
	})
}

// wasRead opens the editor on it, and writes what it left into the tree.
func (d *dialog) wasRead(msg readMsg) tea.Cmd {
	if msg.says != "" {
		return d.say(true, "", msg.says)
	}
	f := msg.file
	return d.inEditor(f.File, f.Content, tree.MaxEdit, func(text string) tea.Cmd {
		if text == f.Content {
			return tea.Batch(d.say(false, "", "nothing was changed in "+f.File), d.editFiles(f.Agent, msg.rest))
		}
		ctx, tenant, run := d.ctx, d.tenant, d.opt.Run
		return d.track(func() tea.Msg {
			path, err := draft(f.File, text)
			if err != nil {
				return writtenMsg{err: err}
			}
			defer os.Remove(path)
			line := []string{"review", "edit", "--from-file", path, "--state", f.State, "--", f.Agent, f.File}
			var o output
			o.out, o.err, o.code = run(ctx, tenant, asSentence(line, op.Writes))
			next := func() tea.Cmd { return d.editFiles(f.Agent, msg.rest) }
			return ranMsg{job{lines: [][]string{line}, effect: op.Writes, keys: d.presses, done: next}, []output{o}}
		})
	})
}
