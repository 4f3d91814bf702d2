package pane

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/overlay"
)

// Fill is a form that a pane wants filled in, and the command line that comes
// of it. A pane that knows the fields gives it at once, as a Filler; one that
// has to read them first returns Fill.Ask from its Update.
//
//	func (p *Pane) Fill(env pane.Env, action string) (f pane.Fill, has bool, err error) {
//		s := p.skill
//		if action != "invoke" {
//			return f, false, nil
//		}
//		return pane.Fill{
//			Title: "invoke " + s.Ref(), Fields: overlay.SchemaFields(s.ParametersSchema),
//			Line: func(object core.Raw) []string { return []string{"skill", "invoke", s.Ref(), "--input", string(object)} },
//		}, true, nil
//	}
//
// When the command refuses the line the form comes back, the reason at the
// field that the error names.
type Fill struct {
	Title  string
	Fields []overlay.Field
	Check  func(object core.Raw) error    // see overlay.Form; may be nil
	Line   func(object core.Raw) []string // the words of the command
}

// Filler is a pane some of whose actions open a form.
type Filler interface {
	// Fill is the form of an action, or why there is none now; has is false for one that
	// opens no form.
	Fill(env Env, action string) (f Fill, has bool, err error)
}

// Ask opens the form by itself: keys pressed just now don't go into it.
func (f Fill) Ask() tea.Cmd { return func() tea.Msg { return f } }
