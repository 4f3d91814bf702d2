package fleet

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/cluster"
	"swarmdeck/engine/face"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// EnginesName is the pane's name and keymap scope; a sheet of one is an engineName.
const (
	EnginesName = "engines"
	engineName  = "engine"
)

// NewEngines makes the pane of the engines that share a database, how each is and which
// tenants it has.
func NewEngines() *pane.Table[cluster.Engine] {
	return pane.NewTable(pane.Spec[cluster.Engine]{
		Name: EnginesName, Title: "engines", Empty: "a data file has no engines that share it",
		Face: face.For[cluster.Engine](),
		Cells: map[string]pane.Cell[cluster.Engine]{
			"STATE": func(env *pane.Env, e *cluster.Engine) (string, screen.Role) {
				return engineState(env, e).Cell(env)
			},
		},
		Item: func(e *cluster.Engine) pane.Item { return pane.Item{Kind: engineName, ID: e.Name} },
		Rows: func(env pane.Env) []cluster.Engine {
			if c := env.Snap.Cluster; c.Shared {
				return c.Engines
			}
			return nil
		},
	})
}

// NewEngine makes the sheet of one engine.
func NewEngine() *pane.Detail[cluster.Engine] {
	return pane.NewDetail(pane.DetailSpec[cluster.Engine]{
		Name: engineName, Text: engineText, State: engineState, Gone: "there is no such engine any more",
		Kept: func(env pane.Env, name string) *cluster.Engine {
			all := env.Snap.Cluster.Engines
			if i := slices.IndexFunc(all, func(e cluster.Engine) bool { return e.Name == name }); i >= 0 {
				return &all[i]
			}
			return nil
		},
	})
}

func engineText(env pane.Env, e *cluster.Engine, out *pane.Paras) {
	out.Add("", stateMeans(e.State), screen.Dim)
	out.Fields(&env, e, "engine:name,accent")
	if e.Here {
		out.Add("here", "this cockpit shows it", screen.Good)
	}
	if e.Address == "" {
		out.Add("address", "none: it lets no other engine in", screen.Warn)
	}
	out.Fields(&env, e, "address host version started:started_at")
	if e.State == cluster.Late || e.State == cluster.Gone {
		out.Add("seen", pane.When(env.Now, e.Seen), screen.Text)
	}
	out.Head("tenants " + strconv.Itoa(e.Count))
	out.Add("", strings.Join(e.Tenants, "\n"), screen.Text)
	if n := e.Count - len(e.Tenants); n > 0 {
		out.Add("", strconv.Itoa(n)+" that are not yours to see", screen.Dim)
	}
}

// stateMeans is what becomes of the tenants of an engine that is not up.
func stateMeans(s cluster.State) string {
	switch s {
	case cluster.Draining:
		return "it is stopped, and hands its tenants over"
	case cluster.Late:
		return "it has not answered for two thirds of its lease: its processes stand still"
	case cluster.Gone:
		return "its lease is over: others take its tenants"
	}
	return ""
}

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
