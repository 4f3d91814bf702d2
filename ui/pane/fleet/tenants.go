package fleet

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/cluster"
	"swarmdeck/engine/face"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// TenantsName is the pane's name and keymap scope.
const TenantsName = "tenants"

// Tenants lists the tenants of the data. On a database it says which engine has each, and
// how that is.
type Tenants struct {
	*pane.Table[string]
	shared bool // the columns are those of a database
}

// NewTenants makes the pane that lists the tenants; enter shows another one.
func NewTenants() *Tenants {
	return &Tenants{Table: pane.NewTable(pane.Spec[string]{
		Name: TenantsName, Title: "tenants", Empty: "no tenants",
		Cols: tenantColumns(false), Row: tenantRow, Rows: tenantsOf,
		Item: func(t *string) pane.Item { return pane.Item{Kind: "tenant", ID: *t} },
	})}
}

func tenantColumns(shared bool) []grid.Column {
	cols := []grid.Column{{Title: "TENANT", Min: 12, Weight: 1, Key: true}}
	if shared {
		cols = append(cols, grid.Column{Title: "ENGINE", Min: 12, Weight: 1, Middle: true}, grid.Column{Title: "STATE", Min: 12})
	}
	return append(cols, grid.Column{Title: "SHOWN", Min: 6, Priority: 1})
}

// tenantsOf are the tenants of the store, and on a database also those that others made.
func tenantsOf(env pane.Env) []string {
	all := slices.Concat(env.Snap.Tenants, env.Snap.Cluster.Tenants())
	slices.Sort(all)
	return slices.Compact(all)
}

func tenantRow(env *pane.Env, t *string, set func(int, string, screen.Role)) {
	set(0, *t, screen.Accent)
	last := 1
	if c := env.Snap.Cluster; c.Shared {
		name, role, st := "no engine", screen.Bad, pane.State{State: screen.Offline, Word: "nobody's"}
		if e, has := c.Owner(*t); has {
			name, role, st = e.Name, screen.Text, engineState(env, &e)
		}
		set(1, name, role)
		set(2, st.Label(env.Glyphs), st.Role())
		last = 3
	}
	if *t == env.Tenant {
		set(last, "here", screen.Good)
	}
}

func (p *Tenants) Refresh(env pane.Env) tea.Cmd {
	if shared := env.Snap.Cluster.Shared; shared != p.shared {
		p.shared = shared
		p.SetColumns(tenantColumns(shared))
	}
	return p.Table.Refresh(env)
}

// engineState is how an engine is, and for how long it has been silent when that says
// something.
func engineState(env *pane.Env, e *cluster.Engine) pane.State {
	word := string(e.State)
	if e.State == cluster.Late || e.State == cluster.Gone {
		word += " " + face.Span(env.Snap.Cluster.Silence(*e, env.Now))
	}
	switch e.State {
	case cluster.Up:
		return pane.State{State: screen.Succeeded, Word: word}
	case cluster.Gone:
		return pane.State{State: screen.Offline, Word: word}
	}
	return pane.State{State: screen.TimedOut, Word: word}
}
