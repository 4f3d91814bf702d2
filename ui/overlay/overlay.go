// Package overlay holds what is drawn over the panes: questions, prompts,
// forms, the JSON editor, menus, the help, the command palette, and messages
// that pass.
//
// An overlay is a plain struct. Update takes a key or a paste and says what
// came of it; Draw draws it on cells, in the middle of whatever canvas it
// gets, of any size. Neither does I/O. What is typed or pasted is made
// printable as it comes in, so nothing invisible can be entered.
package overlay

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// Kind is what came of a key.
type Kind uint8

// The kinds.
const (
	None     Kind = iota // nothing yet
	Close                // dismissed: nothing is to be done
	Yes                  // confirmed
	Submit               // Text was entered
	Pick                 // ID was chosen
	Complete             // the palette wants candidates for Text
	Edit                 // Text is to be edited elsewhere, and comes back
)

// Action is what came of a key.
type Action struct {
	Kind Kind
	Text string
	ID   string
}

// Done tells whether the overlay has served its purpose and goes.
func (a Action) Done() bool { return a.Kind != None && a.Kind != Complete && a.Kind != Edit }

// Overlay is one thing over the panes.
type Overlay interface {
	Update(msg tea.Msg) Action
	Draw(c *screen.Canvas)
}

// Typist is an overlay in which letters are text, at least for now.
type Typist interface{ Typing() bool }

// Typing tells whether letters pressed now are text and not keys.
func (s *Stack) Typing() bool {
	t, ok := s.Top().(Typist)
	return ok && t.Typing()
}

// Typing tells whether the name is to be typed.
func (q *Confirm) Typing() bool { return q.Type != "" }

// letters is embedded where all letters are text.
type letters struct{}

// Typing is true.
func (letters) Typing() bool { return true }

var (
	_ Overlay = (*Confirm)(nil)
	_ Overlay = (*Prompt)(nil)
	_ Overlay = (*Compose)(nil)
	_ Overlay = (*Editor)(nil)
	_ Overlay = (*Form)(nil)
	_ Overlay = (*Help)(nil)
	_ Overlay = (*Menu)(nil)
	_ Overlay = (*Palette)(nil)
)

// DeadTime is how long keys are ignored after an overlay appeared by itself,
// so that nothing meant for what was there before answers it.
const DeadTime = 300 * time.Millisecond

// Stack holds the open overlays; the last opened is on top and gets the keys.
// The zero value is empty.
type Stack struct {
	open []layer
}

type layer struct {
	Overlay
	then func(Action) tea.Cmd
	dead time.Time // keys before it are ignored
}

// Push opens an overlay that the operator asked for. then, which may be nil,
// is called with every action that isn't None, after the overlay has gone when
// the action is Done.
func (s *Stack) Push(o Overlay, then func(Action) tea.Cmd) {
	s.open = append(s.open, layer{Overlay: o, then: then})
}

// PushUnasked opens an overlay that appears by itself; keys and pastes are
// ignored for DeadTime from now.
func (s *Stack) PushUnasked(o Overlay, then func(Action) tea.Cmd, now time.Time) {
	s.open = append(s.open, layer{o, then, now.Add(DeadTime)})
}

// Top is the overlay that gets the keys, or nil.
func (s *Stack) Top() Overlay {
	if len(s.open) == 0 {
		return nil
	}
	return s.open[len(s.open)-1].Overlay
}

// Open tells whether anything stands over the panes.
func (s *Stack) Open() bool { return len(s.open) > 0 }

// Update hands a message to the top overlay. taken is true for every key and
// paste while one is open: none of them reaches a pane.
func (s *Stack) Update(msg tea.Msg, now time.Time) (cmd tea.Cmd, taken bool) {
	if len(s.open) == 0 {
		return nil, false
	}
	top := s.open[len(s.open)-1]
	switch msg.(type) {
	case tea.KeyPressMsg, tea.PasteMsg, tea.MouseClickMsg:
		if now.Before(top.dead) {
			return nil, true
		}
	case tea.KeyMsg, tea.PasteStartMsg, tea.PasteEndMsg:
		return nil, true
	default:
		return nil, false
	}
	a := top.Overlay.Update(msg)
	if a.Done() {
		s.open = slices.DeleteFunc(s.open, func(l layer) bool { return l.Overlay == top.Overlay }) // wherever it is by now
	}
	if a.Kind == None || top.then == nil {
		return nil, true
	}
	return top.then(a), true
}

// Draw draws all of them, the top last; only the top may show a cursor.
func (s *Stack) Draw(c *screen.Canvas) {
	for _, l := range s.open {
		c.SetCursor(-1, -1)
		l.Overlay.Draw(c)
	}
}

// box draws an empty frame of at most w by h in the middle of c, and returns
// what is within, one column of air on each side.
func box(c *screen.Canvas, w, h int, title string) screen.Rect {
	r := c.Bounds().Center(min(w, c.W()), min(h, c.H()))
	c.Fill(r, screen.Text, ' ')
	in := c.Box(r, screen.BorderFocus, title)
	if in.W > 4 {
		in.X, in.W = in.X+1, in.W-2
	}
	return in
}
