// Package messages is the pane that keeps every message a toast has shown.
package messages

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "messages"

// most is how many messages are kept; the oldest go first.
const most = 1000

// Message is one thing the cockpit told the operator.
type Message struct {
	At   time.Time
	Bad  bool
	Text string
	Line string // the command that it answers, "" for none
	seq  int
}

// Pane lists messages, newest first.
type Pane struct {
	*pane.Table[Message]
	all []Message
	seq int
}

// New makes the pane.
func New() *Pane {
	return &Pane{Table: pane.NewTable(pane.Spec[Message]{
		Name: Name, Title: "messages", Empty: "no messages", NewestFirst: true,
		Cols: []grid.Column{
			{Title: "TIME", Min: 8, Priority: 1},
			{Title: "KIND", Min: 7, Priority: 2},
			{Title: "MESSAGE", Min: 20, Weight: 5},
			{Title: "COMMAND", Min: 12, Weight: 2, Priority: 3},
		},
		ID: func(m *Message) string { return strconv.Itoa(m.seq) },
		Row: func(env *pane.Env, m *Message, set func(int, string, screen.Role)) {
			set(0, pane.Clock(env.Now, m.At), screen.Dim)
			if m.Bad {
				set(1, "error", screen.Bad)
			} else {
				set(1, "info", screen.Good)
			}
			set(2, m.Text, screen.Text)
			set(3, m.Line, screen.Dim)
		},
		Item: func(m *Message) pane.Item {
			return pane.Item{Kind: "message", ID: strconv.Itoa(m.seq)}
		},
	})}
}

// Add keeps a message.
func (p *Pane) Add(env pane.Env, m Message) {
	p.seq++
	m.seq = p.seq
	p.all = append([]Message{m}, p.all[:min(len(p.all), most-1)]...)
	p.SetRows(env, p.all)
}

// Refresh shows what was kept.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	p.SetRows(env, p.all)
	return nil
}

// Newest is the id of the message that was added last.
func (p *Pane) Newest() string { return strconv.Itoa(p.seq) }

// Message is the one with this id.
func (p *Pane) Message(id string) (Message, bool) {
	for _, m := range p.all {
		if strconv.Itoa(m.seq) == id {
			return m, true
		}
	}
	return Message{}, false
}
