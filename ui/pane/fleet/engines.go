package fleet

import (
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/cluster"
	"swarmdeck/engine/face"
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
