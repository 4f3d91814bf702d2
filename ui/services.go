package ui

import (
	"context"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/view"
	"swarmdeck/ui/pane/bus"
	"swarmdeck/ui/pane/cad"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/log"
	"swarmdeck/ui/pane/overview"
	"swarmdeck/ui/pane/record"
	"swarmdeck/ui/pane/review"
	"swarmdeck/ui/pane/skill"
)

// View is the living world: the bell and the snapshot of a tenant, as in
// engine.Engine. Neither blocks.
type View interface {
	Watch(ctx context.Context) <-chan struct{}
	Snapshot(tenant string) *view.Snapshot
}

// Services are what a cockpit shows: the view of all panes, and what they read
// page by page, each as the package that shows it asks for it. Panes change
// nothing by them; what changes something is a command line.
type Services struct {
	View
	Tasks    fleet.Tasks
	Swarm    fleet.Swarm
	Sessions fleet.Sessions
	Fleet    fleet.Agents
	// Terminals are those of agents; what is typed into them is the one change that
	// no command line makes.
	Terminals fleet.Terminals
	Files     fleet.Files
	Judge     gate.Judge
	Audit     log.Audit
	Skills    skill.Skills
	Bus       bus.Bus
	CAD       cad.CAD
	DAG       record.DAG
	Forks     record.Forks
	Comparer  record.Comparer
	Stories   record.Storyteller
	Trends    overview.Trends
	Diffs     review.Source
	Works     review.Work
	// Coding names the coding agents that a line of the cockpit may add; "" for none.
	Coding string
}

// Of are the services of an engine.
func Of(e *engine.Engine) Services {
	return Services{
		View: e, Tasks: e.Tasks, Swarm: e.Swarm, Sessions: e.Swarm.Sessions, Fleet: e.Fleet, Terminals: e.Fleet, Files: e.Files, Judge: e.Judge,
		Audit: e.Audit, Skills: e.Skills, Bus: e.Bus, CAD: e.CAD, DAG: e.DAG, Forks: e.Resources, Comparer: e, Stories: e, Trends: e.Trends, Diffs: diffs{e.Trees, e.Fleet, e.Judge, e},
		Works: &reviews{
			trees: e.Trees, tasks: e.Tasks, clock: core.SystemClock{}, seen: map[string]seen{},
			turn: func(tenant, agent string) uint64 { now, _ := e.Fleet.Now(tenant, agent); return now.Agent.AuditSeq },
		},
	}
}
