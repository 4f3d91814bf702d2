package ui

import (
	"fmt"
	"io"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/overlay"
)

// longer marks the label of a question that is answered with lines of text.
const longer = "…"

// compose asks for a text of any number of lines, for an agent if it names one.
func (m *Model) compose(title, agent string, then func(string) tea.Cmd) tea.Cmd {
	p := overlay.NewCompose(title)
	m.over.Push(p, func(a overlay.Action) tea.Cmd {
		switch a.Kind {
		case overlay.Submit:
			return then(a.Text)
		case overlay.Edit:
			return m.editText(p, a.Text)
		}
		return nil
	})
	return m.offerWords(p, agent)
}

// Messages of an editor's way.
type (
	draftMsg struct {
		of   *overlay.Compose
		path string
		err  error
	}
	writtenMsg struct {
		of   *overlay.Compose
		text string
		err  error
	}
)

// editText has a text edited in the operator's editor. It can be only where the
// operator sits at the engine's machine.
func (m *Model) editText(p *overlay.Compose, text string) tea.Cmd {
	if m.opt.Editor == nil {
		return m.say(true, "", "your editor can't be opened from here: the cockpit runs at the engine's side; type or paste the text")
	}
	return m.track(func() tea.Msg {
		path, err := draft(text)
		return draftMsg{p, path, err}
	})
}

// draft keeps a text in a file of the operator's own.
func draft(text string) (path string, err error) {
	f, err := os.CreateTemp("", "swarmdeck-*.md")
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

func (m *Model) drafted(msg draftMsg) tea.Cmd {
	if msg.err != nil {
		return m.say(true, "", msg.err.Error())
	}
	return tea.ExecProcess(m.opt.Editor(msg.path), func(err error) tea.Msg {
		defer os.Remove(msg.path)
		if err != nil {
			return writtenMsg{of: msg.of, err: fmt.Errorf("the editor ended badly: %w", err)}
		}
		f, err := os.Open(msg.path)
		if err != nil {
			return writtenMsg{of: msg.of, err: fmt.Errorf("read the editor's file: %w", err)}
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, core.MaxInput+1))
		if err == nil && len(data) > core.MaxInput {
			err = core.Invalid("message", fmt.Sprintf("more than %d bytes", core.MaxInput), fmt.Sprintf("at most %d bytes", core.MaxInput))
		}
		return writtenMsg{of: msg.of, text: string(data), err: err}
	})
}

// written takes what the editor left, without the line break that editors end a file with.
func (m *Model) written(msg writtenMsg) tea.Cmd {
	m.dirty = true
	if msg.err != nil {
		return m.say(true, "", msg.err.Error())
	}
	msg.of.SetValue(strings.TrimSuffix(msg.text, "\n"))
	return nil
}
