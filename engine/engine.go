// Package engine is the whole engine behind one door: Open, Run, Close, the
// services, Watch and Snapshot. Doors (the cockpit, a command, a script) use
// nothing else.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/health"
	"swarmdeck/engine/host"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/place"
	"swarmdeck/engine/presence"
	"swarmdeck/engine/record"
	"swarmdeck/engine/retention"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/engine/trace"
	"swarmdeck/engine/tree"
	"swarmdeck/engine/trend"
	"swarmdeck/engine/view"
	"swarmdeck/engine/witness"
	"swarmdeck/store"
)

// Options of Open.
type Options struct {
	Store    store.Store
	Sealer   *audit.Sealer            // the one whose Seal the store runs; nil on a read-only store
	ReadOnly bool                     // the store is read-only: repair nothing
	Clock    core.Clock               // nil means the system clock
	Runners  map[string]swarm.Runner  // by task kind
	Runtimes map[string]fleet.Runtime // by agent runtime
	Cluster  *cluster.Book            // tells which engines work on the data; nil knows of none
	Base     string                   // directory of all that belongs to the records and lies outside the store
	Spill    string                   // directory for outputs past the inline limit
	Place    place.Place              // where what Base and Spill name lies
	Slots    int                      // tasks without an agent that run at once; 0 means 8
	Deadline time.Duration            // of what a living run asks, see judge.Options
	Stuck    fleet.StuckLimits        // when an agent counts as stuck
	Policy   []byte                   // rule table; nil means the default
	Programs judge.Programs           // runs policies that are programs; nil where nothing does
	NewTrace func() string            // nil means random

	SkillRunners map[string]skill.Runner // by kind of runner, beside agent and composite
	Own          *safeopen.Own           // its own files, which are opened for nobody
	Static       []skill.Skill           // the program's own skills, which every tenant has
	MaxSubagents int                     // subagents of a tenant that are live at once; 0 means 100

	CADPool cad.Pool // computes geometry; nil where nothing does
	// CADParameters knows what CAD methods take; nil checks no plan before it runs.
	CADParameters cad.Parameters
	CADDir        string // below which the files of CAD workspaces lie; "" keeps none

	Tools tools.Source // lists the tools of servers; nil where none run

	Formats map[string]dag.Format   // what records are exported to and imported from
	Sources map[string]dag.Source   // what else events are imported from
	Effects map[string]control.Kind // what carries intents out, by action

	Trees    tree.Driver                                      // makes the work trees of agents; nil where nothing does
	KeepText func(tenant string, text []byte) (sha256 string) // keeps what a card shows, for Contents

	Resources map[string]resource.Driver // what looks after resources, by the word of its targets
	ForkDir   string                     // below which forks get their directories; "" makes none
	Dir       string                     // where agents' relative directories start from
	Changes   trace.Changes              // finds what was written; nil finds nothing

	Notices   notice.Sender  // carries notices out; nil sends none
	Witnesses witness.Driver // carries checkpoints out and reads them back; nil does neither
	Hosts     host.Driver    // links to other machines; nil to none
	Log       *slog.Logger   // of what is wrong inside; nil logs nothing

	Contents       judge.Contents // the versions of files that approvals show; nil shows none
	EgressPatience time.Duration  // how long a connection waits for an answer; 0 means egress.Patience
	SecretKey      string         // path of the key that secrets are encrypted to
}

// Engine is one engine over one data file.
type Engine struct {
	Tasks *task.Table
	Swarm *swarm.Swarm
	Judge *judge.Judge
	Fleet *fleet.Fleet
	Bus   *bus.Bus
	Audit *audit.Ledger

	Skills *skill.Skills
	CAD    *cad.Controller
	Tools  *tools.Tools
	DAG    *dag.DAG
	// Intents bring the world to what the record says it should be.
	Intents *control.Controller
	// Resources are what agents work on, and forked with.
	Resources *resource.Resources
	// Operators are those who may enter from elsewhere.
	Operators *operator.Operators
	// Presence is who is here now.
	Presence *presence.Book
	// Egress decides where processes may connect to.
	Egress *egress.Service
	// Files decides what processes may read and write.
	Files *files.Service
	// Trees are what agents work in alone, and how that is taken over.
	Trees *tree.Trees
	// Notices tell those who look at no screen.
	Notices *notice.Notices
	// Trends tell how it went over time.
	Trends *trend.Trends
	// Retention lets what is old leave.
	Retention *retention.Service
	// Witnesses hold checkpoints of the audit log elsewhere.
	Witnesses *witness.Witnesses
	// Hosts are the other machines on which agents run.
	Hosts *host.Hosts
	// Cluster tells which engines work on the data.
	Cluster *cluster.Book
	// Health is what is wrong now, by tenant.
	Health *health.Troubles
	// Secrets are what agents and tasks get in their environment unseen.
	Secrets *secret.Secrets
	// Trace records what agents do.
	Trace *trace.Recorder

	parties directory // who sends and receives messages; complete once Open has returned

	store  store.Store
	sealer *audit.Sealer
	world  *world
	dir    string // where agents' relative directories start from
	places Places
	own    *safeopen.Own
	active atomic.Bool

	retired context.Context // ends when what this engine shows is past
	retire  context.CancelFunc
	lines   lines
}

// ClusterChanged has those who look see what the book of the engines has noted.
func (e *Engine) ClusterChanged() { e.world.troubled("") }

// Active says that Run was called: work is scheduled here.
func (e *Engine) Active() bool { return e.active.Load() }

// Places are paths of what belongs to the records and lies outside the store.
type Places struct {
	Key       string // signs the log; "" for who only reads without one
	SecretKey string // the secrets are encrypted to it
	Spill     string // directory of outputs that are too large for a record
	Base      string // directory of what else there is; "" is nothing
}

// Data is the path of the data file, or of what stands for a database.
func (p Places) Data() string { return strings.TrimSuffix(p.SecretKey, ".secrets.key") }

// Places tells where they are.
func (e *Engine) Places() Places { return e.places }

// Open builds the services over a store and takes back the leases of an
// engine that died, on a full disk too. It starts no work: call Run for that.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	ctx = store.IfFull(ctx, store.UseReserve)
	e := &Engine{store: opt.Store, sealer: opt.Sealer, dir: opt.Dir}
	e.own = opt.Own
	e.places = Places{SecretKey: opt.SecretKey, Spill: opt.Spill, Base: opt.Base}
	if opt.Sealer != nil {
		e.places.Key = opt.Sealer.Path()
	}
	e.retired, e.retire = context.WithCancel(context.Background())
	e.world = &world{e: e, bells: map[chan struct{}]struct{}{}, tenants: map[string]*tenantWorld{}}
	e.Health = health.New(health.Options{Clock: opt.Clock, Log: opt.Log, Changed: e.world.troubled})
	e.Presence = presence.New(opt.Clock, e.world.ring)
	e.Cluster = opt.Cluster
	e.Audit = audit.New(opt.Store, audit.Options{
		Clock: opt.Clock, NewTrace: opt.NewTrace, OnChange: e.world.changed, Trusted: e.trusted(),
		Unread: func(tenant, noun string, err error) { e.Health.Report(tenant, noun, "", err) },
	})
	e.Trends = trend.New(trend.Options{
		Ledger: e.Audit, Clock: opt.Clock, Health: e.Health, Tenants: opt.Store.Here, Away: e.Presence.Away,
		Look: func(tenant string) (trend.Now, error) { return e.world.snapshot(tenant).Figures(e.Audit.Clock().Now()) },
	})
	e.Secrets = secret.New(secret.Options{Ledger: e.Audit, Key: opt.SecretKey, Held: e.envOf})
	e.Tools = tools.New(tools.Options{Ledger: e.Audit, Source: opt.Tools, Secrets: e.Secrets})
	e.DAG = dag.New(dag.Options{Ledger: e.Audit, Formats: opt.Formats, Sources: opt.Sources})
	e.Trace = &trace.Recorder{DAG: e.DAG, Ledger: e.Audit, Health: e.Health, Changes: opt.Changes, Dir: opt.Dir, Agents: forkable{e, opt.Dir}}
	e.Bus = bus.New(bus.Options{Ledger: e.Audit, Directory: &e.parties, Tenants: opt.Store.Here, Health: e.Health, Limit: e.messageLimit, Record: e.Trace})
	var err error
	if e.Operators, err = operator.New(ctx, e.Health, e.Audit, opt.Store.Here); err != nil {
		return nil, fmt.Errorf("open the operators: %w", err)
	}
	if e.Judge, err = judge.New(judge.Options{Ledger: e.Audit, Policy: opt.Policy, Programs: opt.Programs, Book: e.Trace, Tenants: opt.Store.Here, Contents: opt.Contents, People: people{e.Operators}, Health: e.Health, Deadline: opt.Deadline}); err != nil {
		return nil, err
	}
	e.Trace.Judge = e.Judge
	e.Notices = notice.New(notice.Options{
		Ledger: e.Audit, Approvals: e.Judge, Sender: opt.Notices, Tenants: opt.Store.Here, Watch: e.world.watch, Health: e.Health,
	})
	e.Witnesses = witness.New(witness.Options{
		Ledger: e.Audit, Driver: opt.Witnesses, Tenants: opt.Store.Here, Watch: e.world.watch, Health: e.Health,
	})
	e.Hosts = host.New(host.Options{Ledger: e.Audit, Driver: opt.Hosts, Tenants: opt.Store.Here, Health: e.Health, Agents: e.onHost})
	e.Tasks = task.New(task.Options{
		Ledger: e.Audit, Health: e.Health, Spill: opt.Spill, Place: opt.Place,
		Session: func(tenant, name string) (string, bool) { return e.Swarm.Sessions.Named(tenant, name) },
		LogBytes: func(tenant string) int64 {
			if e.Retention == nil { // it is opened last
				return 0
			}
			return e.Retention.LogBytes(tenant)
		},
		Shown: shownInput, Spills: func(kind string) bool { return kind == judge.KindExec },
	})
	e.Trace.Tasks = e.Tasks
	beyond := func(tenant, agent, dir string) (string, string) { return e.Trees.Beyond(tenant, agent, dir) }
	if e.Swarm, err = swarm.New(ctx, swarm.Options{
		Store: opt.Store, Ledger: e.Audit, Judge: e.Judge, Tasks: e.Tasks, Slots: opt.Slots, Agents: &e.parties, Spill: opt.Spill, Place: opt.Place, Input: e.inputOf, Health: e.Health, Record: e.Trace, Beyond: beyond,
	}); err != nil {
		return nil, fmt.Errorf("open the swarm: %w", err)
	}
	if e.Egress, err = egress.New(ctx, egress.Options{
		Ledger: e.Audit, Judge: e.Judge, Swarm: e.Swarm, Tasks: e.Tasks, Tenants: opt.Store.Here, Halted: e.halted, Work: e.workOf, Patience: opt.EgressPatience, Health: e.Health,
	}); err != nil {
		return nil, fmt.Errorf("open the egress rules: %w", err)
	}
	if e.Files, err = files.New(ctx, files.Options{Ledger: e.Audit, Tenants: opt.Store.Here, Own: opt.Own, Health: e.Health}); err != nil {
		return nil, fmt.Errorf("open the file rules: %w", err)
	}
	e.Intents = control.New(control.Options{Ledger: e.Audit, DAG: e.DAG, Judge: e.Judge, Tenants: opt.Store.Here, Halted: e.halted, Health: e.Health})
	for action, kind := range opt.Effects {
		if err := e.Intents.Register(action, kind); err != nil {
			return nil, fmt.Errorf("open the intents: %w", err)
		}
	}
	if e.Fleet, err = fleet.New(ctx, fleet.Options{
		Ledger: e.Audit, Judge: e.Judge, Swarm: e.Swarm, Tasks: e.Tasks, Runtimes: opt.Runtimes, Stuck: opt.Stuck, Observer: e.Trace,
		Held: func(tenant, agent string) string { return e.Trees.Held(tenant, agent) },
		Past: e.past, Secrets: e.Secrets, Health: e.Health, Host: e.Hosts.Takes, Choose: e.Hosts.Choose, Elsewhere: e.elsewhere,
		Lacks: func(tenant, agent string) error { return e.Trees.Away(tenant, agent) },
		Taken: func(tenant, name string) bool { return e.CAD.Parties().Known(tenant, name) }, Beyond: beyond,
	}); err != nil {
		return nil, fmt.Errorf("open the fleet: %w", err)
	}
	e.parties = append(e.parties, e.Fleet)
	if e.Trees, err = tree.New(ctx, tree.Options{
		Ledger: e.Audit, Driver: opt.Trees, Place: opt.Place, Tenants: opt.Store.Here, Health: e.Health, Keep: opt.KeepText,
		Swarm: e.Swarm, Tasks: e.Tasks, Bus: e.Bus, Fleet: e.Fleet,
	}); err != nil {
		return nil, fmt.Errorf("open the trees: %w", err)
	}
	if e.Resources, err = resource.New(resource.Options{
		Ledger: e.Audit, DAG: e.DAG, Intents: e.Intents, Agents: e.Trace.Agents, Drivers: opt.Resources, Dir: opt.ForkDir, Place: opt.Place,
	}); err != nil {
		return nil, fmt.Errorf("open the resources: %w", err)
	}
	modelling := &cadSkills{tasks: e.Tasks}
	kinds := map[string]skill.Runner{"agent": skill.NewAgentRunner(e.Tasks, e.Swarm), "cad": modelling}
	maps.Copy(kinds, opt.SkillRunners)
	if e.Skills, err = skill.New(ctx, skill.Options{
		Ledger: e.Audit, Judge: e.Judge, Swarm: e.Swarm, Tasks: e.Tasks, Bus: e.Bus, Runners: kinds, Static: opt.Static, Own: opt.Own,
		MaxSubagents: opt.MaxSubagents, Env: e.skillEnv, ReadOnly: opt.ReadOnly, Health: e.Health, Record: e.Trace,
	}); err != nil {
		return nil, fmt.Errorf("open the skills: %w", err)
	}
	e.Trace.Skills = e.Skills
	e.parties = append(e.parties, e.Skills)
	if e.CAD, err = cad.New(ctx, cad.Options{
		Ledger: e.Audit, Judge: e.Judge, Swarm: e.Swarm, Tasks: e.Tasks, Bus: e.Bus, Pool: opt.CADPool, Parameters: opt.CADParameters, Dir: opt.CADDir,
		Taken: slices.Clone(e.parties).Known, ReadOnly: opt.ReadOnly, Health: e.Health, Record: e.Trace,
	}); err != nil {
		return nil, fmt.Errorf("open the CAD controller: %w", err)
	}
	modelling.cad = e.CAD
	e.parties = append(e.parties, e.CAD.Parties())
	e.Trace.Egress, e.Trace.Trees, e.Trace.Resources = e.Egress, e.Trees, e.Resources
	for kind, r := range opt.Runners {
		e.Swarm.Runner(kind, r)
	}
	e.Swarm.Runner(fleet.KindPrompt, e.Fleet.Runner())
	for kind, r := range e.Trees.Runners() {
		e.Swarm.Runner(kind, r)
	}
	e.Fleet.Leaver(e.Trees.Left)
	e.Tasks.Leaver(e.Skills)
	e.Fleet.Leaver(e.Resources.Left)
	e.Fleet.Leaver(e.CAD.Left)
	e.Swarm.EStops.Freezer(e.Fleet)
	e.Swarm.EStops.Freezer(e.CAD)
	e.Swarm.EStops.Freezer(e.Intents)
	e.Swarm.Runner(skill.KindInvoke, e.Skills.Runner())
	e.Swarm.Runner(cad.KindAssignment, e.CAD.Runner())
	if !opt.ReadOnly {
		if err := e.Swarm.Recover(ctx); err != nil {
			return nil, fmt.Errorf("take the tasks of the last engine back: %w", err)
		}
		if err := e.each(ctx, "record", func(tenant string) error { return e.DAG.Recover(ctx, tenant) }); err != nil {
			return nil, err
		}
	}
	tenants, err := opt.Store.Here(ctx)
	if err == nil {
		err = e.Health.Tenants(ctx, "judge", tenants, func(tenant string) error {
			_, err := e.Audit.Counts(ctx, tenant)
			return errors.Join(err, e.Judge.Read(ctx, tenant))
		})
	}
	e.world.mu.Lock()
	e.world.add(tenants...)
	e.world.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("read the open approvals: %w", err)
	}
	e.Judge.Surround(surroundings{e})
	e.Judge.Await(judge.GateTool, e.Fleet)
	e.Judge.Await(judge.GateQuestion, e.Fleet) // of agents, and of the servers that tasks use
	e.Judge.Await(judge.GateSkill, nil)
	e.Judge.Await(judge.GateCAD, e.CAD)
	e.Judge.Own(judge.GateIntent, e.Intents)
	e.Judge.Await(judge.GateNet, nil)
	if e.Retention, err = retention.New(ctx, retention.Options{
		Ledger: e.Audit, Tenants: opt.Store.Here, Health: e.Health,
		Prune: map[string]retention.Prune{
			retention.Tasks: e.Tasks.Prune, retention.Logs: e.Tasks.PruneLogs,
			retention.Executions: e.Skills.PruneExecutions, retention.Decisions: e.Judge.PruneDecisions,
			retention.Messages: func(ctx context.Context, by core.Caller, _ record.Limit, _ []byte) ([]byte, error) {
				return nil, e.Bus.Prune(ctx, by.Tenant)
			},
		},
		Erase: e.erasers(), Whose: e.Tasks.Whose, Said: e.Judge.Said,
	}); err != nil {
		return nil, fmt.Errorf("open the retention: %w", err)
	}
	e.StorageFull(e.Audit.Room().Full())
	return e, nil
}

// StorageFull is told what the store's OnFull hears.
func (e *Engine) StorageFull(full *store.FullError) {
	if full == nil {
		e.Health.Clear("", "store", "")
		return
	}
	e.Health.Report("", "store", "", full)
}

// messageLimit is what a tenant's retention says of messages.
func (e *Engine) messageLimit(tenant string) record.Limit {
	if e.Retention == nil { // it is opened last
		return record.Limit{}
	}
	return e.Retention.Limit(tenant, retention.Messages)
}

// elsewhere reports a tenant that an engine in another process has, which lives.
func (e *Engine) elsewhere(tenant string) bool {
	ctx, cancel := context.WithTimeout(e.retired, 2*time.Second)
	defer cancel()
	known, err := e.Cluster.Look(ctx)
	owner, is := known.Owner(tenant)
	return err == nil && is && !owner.Here && owner.State != cluster.Gone
}

// halted reports a tenant whose emergency stop is on.
func (e *Engine) halted(tenant string) bool { return e.Swarm.EStops.On(tenant) }

func (e *Engine) trusted() func(string) []string {
	if e.sealer == nil {
		return nil
	}
	return e.sealer.Trusted
}

// Run schedules tasks, supervises agents and enforces deadlines until ctx
// ends; it returns when all work has stopped. What goes wrong in one tenant is
// a trouble of that tenant (Health). The first service that fails for all of
// them stops the others.
func (e *Engine) Run(ctx context.Context) error {
	e.active.Store(true)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, e.Audit.Room().Hurry)() // what waits for room would keep it from ending
	var all sync.WaitGroup
	// The fleet and the bus outlive the swarm: tasks that end need them.
	fleetCtx, stopFleet := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFleet()
	failed := make(chan error, 13)
	run := func(name string, ctx context.Context, fn func(context.Context) error) {
		if err := health.Caught(func() error { return fn(ctx) }); err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("%s: %w", name, err)
			e.Health.Report("", name, "", err)
			failed <- err
			stop(err)
		}
	}
	fleetOver := make(chan struct{})
	all.Go(func() {
		defer close(fleetOver)
		run("fleet", fleetCtx, e.Fleet.Run)
	})
	all.Go(func() { run("bus", fleetCtx, e.Bus.Run) })
	all.Go(func() { run("retention", ctx, e.Retention.Run) })
	all.Go(func() { run("trends", ctx, e.Trends.Run) })
	all.Go(func() { run("witnesses", fleetCtx, e.Witnesses.Run) })
	all.Go(func() {
		run("hosts", context.WithoutCancel(ctx), func(ctx context.Context) error { return e.linkHosts(ctx, fleetOver) })
	})
	all.Go(func() { run("judge", ctx, e.Judge.Run) })
	all.Go(func() { run("skills", ctx, e.Skills.Run) })
	all.Go(func() { run("cad", ctx, e.CAD.Run) })
	all.Go(func() { run("notices", ctx, e.Notices.Run) })
	all.Go(func() { run("intents", ctx, e.Intents.Run) })
	all.Go(func() { run("trees", ctx, e.Trees.Run) })
	all.Go(func() {
		defer stopFleet()
		run("swarm", ctx, e.Swarm.Run)
	})
	all.Wait()
	close(failed)
	return <-failed
}

// Retire ends the lines and cockpits that work on the engine, before it is closed: its
// tenant goes on elsewhere. Those that Enter told of have a while to end by themselves.
func (e *Engine) Retire() {
	e.lines.drain()
	e.retire()
}

// Retired is closed when what the engine shows is past.
func (e *Engine) Retired() <-chan struct{} { return e.retired.Done() }

// Close ends the watches, refuses connections that wait for an answer and
// writes down what runs sent. The store is its opener's to close, after this.
func (e *Engine) Close() error {
	e.retire()
	e.world.close()
	return e.Egress.Close()
}

// Watch returns a one-slot bell, closed when ctx or the engine ends: a token
// means that something changed since you looked. Take the Watch first, then
// the Snapshot, so that nothing falls between.
func (e *Engine) Watch(ctx context.Context) <-chan struct{} { return e.world.watch(ctx) }

// Snapshot is the immutable live world of a tenant.
func (e *Engine) Snapshot(tenant string) *view.Snapshot { return e.world.snapshot(tenant) }

// Inspect looks for records of live tasks that can't be read, in every tenant,
// and reports them to Health.
func (e *Engine) Inspect(ctx context.Context) error {
	return e.each(ctx, task.Component, func(tenant string) error { return e.Swarm.Inspect(ctx, tenant) })
}

// each calls fn for every tenant; what goes wrong in one is a trouble of that tenant.
func (e *Engine) each(ctx context.Context, component string, fn func(tenant string) error) error {
	tenants, err := e.store.Here(ctx)
	if err != nil {
		return fmt.Errorf("list the tenants: %w", err)
	}
	return e.Health.Tenants(ctx, component, tenants, fn)
}

// Store is the store the engine works on, for backups and figures.
func (e *Engine) Store() store.Store { return e.store }

// people are the operators, as the judge knows them.
type people struct{ *operator.Operators }

func (p people) Whose(tenant, fingerprint string) (string, time.Time) {
	g, _ := p.Operators.Whose(tenant, fingerprint)
	return g.Name, g.Since
}
