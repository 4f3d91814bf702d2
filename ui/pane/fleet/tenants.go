package fleet

import (
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// TenantsName is the pane's name and keymap scope.
const TenantsName = "tenants"

// NewTenants makes the pane that lists the tenants of the data file; enter
// shows another one.
func NewTenants() *pane.Table[string] {
	return pane.NewTable(pane.Spec[string]{
		Name: TenantsName, Title: "tenants", Empty: "no tenants",
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
		Rows: func(env pane.Env) []string { return env.Snap.Tenants },
	})
}
