// Package message is the sheet of a message or of a command's whole output.
package message

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/messages"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "message"

// Pane shows one message.
type Pane struct {
	pane.Record
	from *messages.Pane
}

// New makes the pane over the list that keeps the messages.
func New(from *messages.Pane) *Pane { return &Pane{Record: pane.NewRecord(Name), from: from} }

// Show implements pane.Pane.
func (p *Pane) Show(env pane.Env, it pane.Item) tea.Cmd {
	if !p.Bind(it) {
		return nil
	}
	m, ok := p.from.Message(it.ID)
	if !ok {
		return nil
	}
	var paras pane.Paras
	paras.Add("at", pane.When(env.Now, m.At), screen.Dim)
	paras.Add("command", m.Line, screen.Accent)
	role := screen.Text
	if m.Bad {
		role = screen.Bad
	}
	paras.Head("what it said")
	p.Page.Set(append(paras, pane.Para{Text: m.Text, Role: role, Exact: true, Wide: true}))
	return nil
}

// Update implements pane.Pane.
func (p *Pane) Update(pane.Env, any) tea.Cmd { return nil }

// Refresh implements pane.Pane.
func (p *Pane) Refresh(pane.Env) tea.Cmd { return nil }
