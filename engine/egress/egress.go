// Package egress decides where the processes of a tenant may connect to. It
// keeps rules that allow or deny hosts, asks a person through the judge about
// a host that no rule names, and keeps count of the bytes of each run by host.
//
// It carries no byte itself: a proxy asks Decide for each connection or request,
// and tells by Opened of each connection. A decision that a rule makes costs no
// transaction and is counted in the run's sum; every other one, and every
// refusal, is in the audit log, and so are the sums once the run has ended. What
// is lost with an engine that dies are the sums of the runs that went on then.
package egress

import (
	"context"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Subjects in the audit log: a host that a run used or wanted, and a rule.
const (
	subjectHost = "egress"
	subjectRule = "egress.rule"
)

// Patience is how long a connection waits for a person's answer where Options
// say nothing: long enough to look at a card, shorter than the time after
// which common clients give up by themselves.
const Patience = time.Minute

// Origin is who wants a connection, as the launcher of processes knows it.
type Origin struct {
	Tenant string
	Agent  string // "" for a task without one
	// Agents names those that share the process at this moment, of one that has
	// no Agent; nil of any other.
	Agents  func() []string
	Role    string // of the agent, or of those that share it
	Profile string // of the cell
	Task    string // "" outside of a task's own command
	Run     string // names one run of one cell; its sums end with EndRun, and so does an answer
	PID     int    // as the cell counts; 0 is unknown
	Process string // its name, from the process itself; may be anything
	project string // of its agents, where that is one
}

// Checking begins the name of a run that tests or prepares an agent's work, which goes
// on without the agent.
const Checking = "check:"

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Judge   *judge.Judge
	Swarm   *swarm.Swarm
	Tasks   *task.Table
	Tenants func(context.Context) ([]string, error)
	// Halted reports a tenant whose emergency stop is on: nothing begins there.
	Halted func(tenant string) bool
	// Work tells what an agent does just now; false of one that is not there.
	Work func(tenant, agent string) (Work, bool)
	// Patience is how long a connection waits for an answer; 0 means Patience.
	Patience time.Duration
	Health   *health.Troubles
}

// Service decides. It is safe for concurrent use.
type Service struct {
	ledger   *audit.Ledger
	judge    *judge.Judge
	swarm    *swarm.Swarm
	tasks    *task.Table
	halted   func(string) bool
	work     func(tenant, agent string) (Work, bool)
	patience time.Duration

	kind    record.Table[Rule]
	rules   core.Condition              // of what follows
	known   map[string]map[string]*Rule // by tenant and ID
	indexes map[string]*index           // by tenant; made of what is known when it is asked for

	life context.Context // of the questions
	end  context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex // guards what follows, and what is in them
	closed  bool
	runs    map[runKey]*run
	conns   map[*conn]struct{} // open ones
	tallies map[*Tally]struct{}
}

// New reads the rules of every tenant.
func New(ctx context.Context, opt Options) (*Service, error) {
	s := &Service{
		ledger: opt.Ledger, judge: opt.Judge, swarm: opt.Swarm, tasks: opt.Tasks, halted: opt.Halted, work: opt.Work, patience: opt.Patience,
		known: map[string]map[string]*Rule{}, indexes: map[string]*index{}, runs: map[runKey]*run{}, conns: map[*conn]struct{}{}, tallies: map[*Tally]struct{}{},
	}
	if s.halted == nil {
		s.halted = func(string) bool { return false }
	}
	if s.work == nil {
		s.work = func(string, string) (Work, bool) { return Work{}, false }
	}
	if s.patience == 0 {
		s.patience = Patience
	}
	s.kind = &record.Kind[*Rule]{Noun: "egress rule", Subject: subjectRule, Bucket: "egress.rule", Limit: maxRules, Ledger: s.ledger, Follow: s.follow, Unread: s.unread, ID: (*Rule).ID, Whole: true}
	opt.Ledger.Register(s.kind.Auditable())
	if err := s.kind.ReadAll(ctx, opt.Health, opt.Tenants); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close refuses what still waits and writes the sums of all runs down.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.all.Wait()
	return s.endAll()
}

// Work is what an agent does just now, as far as it tells.
type Work struct {
	Project string
	Runtime string
	Task    string         // "" while it works on none
	Unready bool           // it can't work yet
	Calls   []judge.During // its open tool calls
}

// source is what is known of where a connection comes from.
type source struct {
	agent  judge.AgentRef
	driver string
	agents []string // whose process it is
	task   string   // "" also where it may be one of several
	during []judge.During
	// unready is a process whose agents can't work yet, as far as they are known.
	unready bool
}

// Bounds of what a card says about it.
const (
	maxAgents = 8
	maxDuring = 8
)

// source finds what is known. A process that several agents share works on a
// task where only one of them is at work; else each is named with its own.
func (s *Service) source(from *Origin) source {
	out := source{agent: judge.AgentRef{Name: from.Agent, Role: from.Role, Profile: from.Profile}, agents: from.names(), task: from.Task}
	type worker struct {
		name string
		Work
	}
	var busy []worker
	for _, name := range out.agents {
		w, ok := s.work(from.Tenant, name)
		if !ok {
			continue
		}
		out.unready = w.Unready && (out.driver == "" || out.unready) && !strings.HasPrefix(from.Run, Checking)
		out.driver = w.Runtime
		if from.Agent != "" {
			out.agent.Project = w.Project
		}
		if w.Task != "" {
			busy = append(busy, worker{name, w})
		}
	}
	if len(busy) == 1 && out.task == "" {
		out.task = busy[0].Task
	}
	for _, w := range busy {
		calls := w.Calls
		if len(calls) == 0 && len(busy) > 1 {
			calls = []judge.During{{}}
		}
		for _, c := range calls {
			if from.Agent == "" {
				c.Agent = w.name
			}
			if len(busy) > 1 {
				c.TaskID = w.Task
			}
			if len(out.during) < maxDuring {
				out.during = append(out.during, c)
			}
		}
	}
	return out
}

// names are the agents whose process it is.
func (o *Origin) names() []string {
	switch {
	case o.Agent != "":
		return []string{o.Agent}
	case o.Agents != nil:
		return o.Agents()
	}
	return nil
}

// project is that of a process's agents, "" where they have none in common.
func (s *Service) project(from *Origin) (project string) {
	for i, name := range from.names() {
		w, _ := s.work(from.Tenant, name)
		if i > 0 && w.Project != project {
			return ""
		}
		project = w.Project
	}
	return project
}

// who names whose process it is, in a sentence.
func (s *source) who(from *Origin) string {
	if from.Agent != "" || len(s.agents) == 0 {
		return speaker(from).Name
	}
	names := s.agents
	if len(names) > maxAgents {
		names = append(append([]string{}, names[:maxAgents]...), "others")
	}
	return strings.Join(names, " or ")
}
