// Package ui is the cockpit: the root model that owns the panes, the layout,
// the focus, the overlays and the keys. It learns of the engine's changes by a
// bell, draws from an immutable snapshot and pages, and changes nothing itself:
// every change goes through a command line, the same as one typed.
package ui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/view"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/bus"
	"swarmdeck/ui/pane/cad"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/log"
	"swarmdeck/ui/pane/overview"
	"swarmdeck/ui/pane/record"
	"swarmdeck/ui/pane/review"
	"swarmdeck/ui/pane/skill"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Options of New. Services, Keys and Theme are required; the zero value of every
// other field is of use.
type Options struct {
	// Context ends the cockpit's reads and commands; nil never does.
	Context context.Context
	// Services are what the cockpit shows; see Of.
	Services Services
	// Caller is who sits at the screen; its Tenant is shown first.
	Caller core.Caller
	// Run carries out one command in a tenant and returns what it printed and
	// its exit code. It is called from Cmds, several at once. Nil refuses all.
	Run func(ctx context.Context, tenant string, args []string) (stdout, stderr string, code int)
	// Complete offers ways to go on for the last word of a line. Nil offers none.
	Complete func(ctx context.Context, tenant, line string) []command.Candidate

	Keys  *keymap.Keymap
	Theme *screen.Theme
	// Themes finds a theme by name for `:theme NAME`; nil refuses.
	Themes func(name string) (*screen.Theme, error)
	// ASCII draws with ASCII glyphs only.
	ASCII bool
	// Links marks links for a terminal that opens them (OSC 8), in place of writing them out.
	Links bool
	// Sync switches synchronised output on without asking the terminal, which
	// the toolkit does not do over SSH.
	Sync bool
	// Clock tells the time; nil is the system's.
	Clock core.Clock
	// After makes a Cmd that sends msg after d; nil uses real timers. Tests
	// that move the clock by hand replace it.
	After func(d time.Duration, msg tea.Msg) tea.Cmd
	// Frame is the least time between two frames that the engine's changes
	// cause; 0 means 50 ms. Keys are echoed at once. Blurred is the same for
	// a terminal without focus; 0 means 250 ms.
	Frame   time.Duration
	Blurred time.Duration
	// Notice is how a terminal out of focus is told that something waits; "" is
	// not at all.
	Notice Notice
	// Warning is told when the cockpit opens, and stays until it is dismissed; ""
	// is nothing.
	Warning string
	// Lend runs a program of whoever looks on their terminal, with the screen given up for
	// it; nil is that they have none at this machine.
	Lend func(argv []string) error
	// Pager and Editor are lines of a shell that show and edit the file $1.
	Pager, Editor string
	// Logins are those of coding agents that commands offer; nil is none.
	Logins <-chan Login
	// First is called once, from a Cmd, with the first frame as terminal text;
	// nil is not.
	First func(frame string)
	// Role is that of whoever looks; "" may do all.
	Role command.Role
	// ReadOnly refuses every command that would change something.
	ReadOnly bool
	// Open is opened first; one without an ID is not.
	Open pane.Item
	// Dir is the base of relative paths in :write and :record.
	Dir string
	// Attached says that the engine outlives this screen: quitting ends no agent.
	Attached bool
	// Enter tells others that this cockpit is open in a tenant; nil does not.
	Enter func(tenant string) Stay
	// Remote says that whoever looks is on another machine: files of this one
	// are not theirs to name.
	Remote bool
	// Terminal is the screen at the other end of a connection; nil is the
	// terminal that Show writes to.
	Terminal *term.Remote
}

// Login is that of a coding agent which a command offers and waits for.
type Login struct {
	Name string
	Argv []string     // run if it is wanted
	Over chan<- error // told once: nil also where it is not wanted; it has room
}

func (o *Options) fill() {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Clock == nil {
		o.Clock = core.SystemClock{}
	}
	if o.Frame <= 0 {
		o.Frame = 50 * time.Millisecond
	}
	if o.Blurred <= 0 {
		o.Blurred = 250 * time.Millisecond
	}
	if o.After == nil {
		o.After = after(o.Context)
	}
	if o.Run == nil {
		o.Run = func(context.Context, string, []string) (string, string, int) {
			return "", "commands are not available here", 1
		}
	}
}

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
