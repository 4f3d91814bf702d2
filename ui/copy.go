package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// copy sends the id or the row under the cursor to the terminal's clipboard.
func (d *dialog) copy(row bool) tea.Cmd {
	p := d.focused()
	if p == nil {
		return nil
	}
	it := p.Selected(d.env())
	if whole, is := p.(pane.Copier); is && !row {
		it.ID = whole.Copy()
	}
	text := it.ID
	if row && it.Row != "" {
		text = it.Row
	}
	if text == "" {
		return d.say(false, "", "nothing is selected")
	}
	return d.toClipboard(text)
}

// links lists what the screen's links open. The terminal is on the operator's machine, and
// this may not be: what is chosen is sent to its clipboard.
func (d *dialog) links() tea.Cmd {
	menu := &overlay.Menu{Title: "Copy a link to the terminal's clipboard"}
	for _, to := range d.canvas.Links() {
		menu.Items = append(menu.Items, overlay.Item{ID: to, Text: to})
	}
	if len(menu.Items) == 0 {
		return d.say(false, "", "no link is shown")
	}
	return d.push(menu, overlay.Pick, func(a overlay.Action) tea.Cmd { return d.toClipboard(a.ID) })
}

// clipLimit bounds what is sent: terminals drop longer sequences silently.
const clipLimit = 64 << 10

func (d *dialog) toClipboard(text string) tea.Cmd {
	if len(text) > clipLimit {
		return d.say(true, "", "too long for the terminal's clipboard; use :write FILE")
	}
	d.copied = text
	line, more, _ := strings.Cut(text, "\n")
	if more != "" {
		line += " …"
	}
	return tea.Batch(d.say(false, "", "sent to terminal clipboard: "+line), tea.SetClipboard(text))
}

// noFiles says why no file can be written from here, "" when one can.
func (sh *shared) noFiles() string {
	switch {
	case sh.opt.Remote:
		return "files can't be written from another machine"
	case sh.opt.ReadOnly:
		return "who only reads writes no files"
	}
	return ""
}

// write saves what the screen shows, as text.
func (m *Model) write(path string) tea.Cmd {
	if why := m.noFiles(); why != "" {
		return m.say(true, "", why)
	}
	path = m.path(path)
	text := strings.Join(m.Frame().Plain(), "\n") + "\n"
	return beside(m.runner.dialog, func() (int, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return 0, fmt.Errorf("write screen to %s: %w", path, err)
		}
		return len(text), nil
	}, func(n int) tea.Cmd { return m.say(false, "", fmt.Sprintf("wrote %d bytes to %s", n, path)) })
}

func (sh *shared) path(p string) string {
	if filepath.IsAbs(p) || sh.opt.Dir == "" {
		return p
	}
	return filepath.Join(sh.opt.Dir, p)
}
