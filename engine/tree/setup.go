package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Setup is what runs once in a new tree, before the first task of its agent.
type Setup struct {
	Lines []string `json:"lines"`          // shell lines, as the project had them when the tree was made
	Task  string   `json:"task,omitempty"` // that runs them, or did so last
	Done  bool     `json:"done,omitzero"`  // all of them ended with 0
	Runs  []Ran    `json:"runs,omitempty"` // of the last try, up to the first that failed
}

// CheckSetup reports the first line that can't be run in a new tree.
func CheckSetup(lines []string) error { return checkLines("setup", lines) }

// newSetup is what a tree begins with; nil is nothing.
func newSetup(lines []string) *Setup {
	if len(lines) == 0 {
		return nil
	}
	return &Setup{Lines: slices.Clone(lines)}
}

// same reports a setup of the same lines; either may be nil.
func (s *Setup) same(as *Setup) bool {
	if s == nil || as == nil {
		return s == as
	}
	return slices.Equal(s.Lines, as.Lines)
}

// Held is why the tasks of an agent wait for its tree; "" is that they do not.
func (s *Trees) Held(tenant, agent string) string {
	t, ok := s.Has(tenant, agent)
	switch {
	case !ok || t.Setup == nil || t.Setup.Done:
		return ""
	case t.Setup.Task == "":
		return "its tree is not set up yet"
	}
	return "its tree is set up first, by " + t.Setup.Task
}

// How often a setup is looked at: until there is an agent, and until it is over.
const (
	setupSoon = 100 * time.Millisecond
	setupLook = 2 * time.Second
	mostSetup = time.Hour // of one setup
)

// setUp asks for the task that sets a tree up, once, and tells of one that failed.
// next is when to look again, zero for a change of the tree.
func (s *Trees) setUp(ctx context.Context, t Tree) (next time.Time, err error) {
	if t.Phase != Ready || t.Setup == nil {
		return next, nil
	}
	about := "setup of " + t.Agent
	if t.Setup.Done {
		s.opt.Health.Clear(t.TenantID, component, about)
		return next, nil
	}
	var at task.Task
	if t.Setup.Task != "" {
		at, err = s.opt.Tasks.Get(ctx, t.TenantID, t.Setup.Task)
	}
	switch {
	case t.Setup.Task == "" || errors.Is(err, core.Kind(core.NotFound)): // or retention took it
		key := fmt.Sprintf("tree.setup %s %d", t.Agent, t.CreatedAt.UnixNano())
		asked, err := s.opt.Swarm.Dispatch(ctx, core.Self(t.TenantID, component), swarm.Dispatch{
			Kind: KindSetup, Input: core.MustEncode(Input{Agent: t.Agent, Lines: t.Setup.Lines}), Timeout: mostSetup, IdempotencyKey: key,
		})
		if err != nil {
			return next, fmt.Errorf("set the tree of %s up: %w", t.Agent, err)
		}
		return next, s.putSetup(ctx, t, func(p *Setup) {
			if p.Task == t.Setup.Task { // else it has begun already
				p.Task = asked.TaskID
			}
		})
	case err != nil:
		return next, err
	case at.Status.Terminal() && at.Status != task.Succeeded:
		s.opt.Health.Report(t.TenantID, component, about, fmt.Errorf("%s: its tasks wait until it is: task log %s, then task retry %s", at.Status, at.TaskID, at.TaskID))
		return next, nil
	}
	s.opt.Health.Clear(t.TenantID, component, about)
	return s.opt.Ledger.Clock().Now().Add(setupLook), nil
}

// putSetup changes how far a tree is set up that there still is, and not one that was
// made in its place.
func (s *Trees) putSetup(ctx context.Context, t Tree, change func(*Setup)) error {
	return s.opt.Ledger.Update(ctx, core.Self(t.TenantID, component), func(tx *audit.Tx) error {
		old, err := s.kind.Load(tx, t.Agent)
		if err != nil {
			return err
		}
		if old == nil || old.Phase != Ready || old.Setup == nil || !old.CreatedAt.Equal(t.CreatedAt) {
			return notThere(t.Agent)
		}
		now, setup := *old, *old.Setup
		change(&setup)
		now.Setup = &setup
		return s.kind.Save(tx, record.Event{Type: "tree.setup", Detail: map[string]any{"task": setup.Task, "done": setup.Done}}, old, &now)
	})
}

// setup runs the lines of a tree in it. Until the last of them has ended with 0 all
// of them are to be run anew.
func (c *carrying) setup(ctx context.Context) (core.Raw, error) {
	if c.t.Setup.Done { // and the engine died before its task was over
		return core.MustEncode(c.t.Setup), nil
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over, err := c.s.settingUp(c.t, stop)
	if err != nil {
		return nil, err
	}
	defer over()
	now := Setup{Lines: c.t.Setup.Lines, Task: c.job.Task.TaskID}
	keep := func(p *Setup) { *p = now }
	if err := c.s.putSetup(ctx, c.t, keep); err != nil {
		return nil, err
	}
	ok := false
	now.Runs, ok, err = c.lines(ctx, "", now.Lines)
	if why := context.Cause(ctx); why != nil {
		err = why
	}
	if err == nil && !ok {
		last := now.Runs[len(now.Runs)-1]
		err = core.Errorf(core.Conflict, "%q ended with %d: %s", strings.Join(last.Command[2:], " "), last.Code, core.ClipTo(last.Tail, 500))
	}
	now.Done = err == nil
	err = errors.Join(err, c.s.putSetup(context.WithoutCancel(ctx), c.t, keep))
	return core.MustEncode(now), err
}

// settingUp has one task at a time set a tree up, which ends when the tree goes.
func (s *Trees) settingUp(t Tree, stop context.CancelCauseFunc) (over func(), err error) {
	at := [2]string{t.TenantID, t.Agent}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.setups[at] != nil {
		return nil, core.Errorf(core.Unavailable, "the tree of %s is being set up already", t.Agent)
	}
	s.setups[at] = stop
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.setups, at)
	}, nil
}

// endSetup ends the setup of a tree that is to go, and reports whether there is one.
func (s *Trees) endSetup(tenant, agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := s.setups[[2]string{tenant, agent}]
	if stop != nil {
		stop(core.Errorf(core.Conflict, "agent %s was deleted", agent))
	}
	return stop != nil
}
