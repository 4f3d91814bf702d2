// Package tenants is the pane that lists the tenants of the data file; enter
// shows another one.
package tenants

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "tenants"

// Pane lists tenants.
type Pane struct{ *pane.Table[string] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[string]{
		Name: Name, Title: "tenants", Empty: "no tenants",
		Cols: []grid.Column{
			{Title: "TENANT", Min: 12, Weight: 1, Key: true},
			{Title: "SHOWN", Min: 6, Priority: 1},
		},
		ID: func(t *string) string { return *t },
		Row: func(env *pane.Env, t *string, set func(int, string, screen.Role)) {
			set(0, *t, screen.Accent)
			if *t == env.Tenant {
				set(1, "here", screen.Good)
			}
		},
		Item: func(t *string) pane.Item { return pane.Item{Kind: "tenant", ID: *t} },
	})}
}

// Refresh shows the snapshot's tenants.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	p.SetRows(env, env.Snap.Tenants)
	return nil
}
