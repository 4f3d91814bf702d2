package tree

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// Landing is a merge, or the way back, that was approved and begun. It is on record
// before the first file is touched, and a kill is no reason to ask again: the next engine
// brings it to its end, or takes it back whole.
type Landing struct {
	Task   string `json:"task"`
	Done   bool   `json:"done,omitzero"`
	Landed Landed `json:"landed"` // what it does: Landed.From becomes Landed.To
	// Next and NextHead are Since and Head of the tree from then on.
	Next     string `json:"next"`
	NextHead string `json:"next_head,omitempty"`
}

// mendSoon is when what is left half done is looked at again.
const mendSoon = 2 * time.Second

// open reports one of which a part may be done.
func (l *Landing) open() bool { return l != nil && !l.Done }

// of reports the landing of a task that was begun.
func (l *Landing) of(t task.Task) bool { return l != nil && l.Task == t.TaskID && t.Begun }

// event names what is written down of a landing that is done.
func (c *carrying) event() string {
	if c.job.Task.Kind == KindUndo {
		return "tree.unmerged"
	}
	return "tree.merged"
}

// begin puts a landing on record, and lands it.
func (c *carrying) begin(ctx context.Context, l Landing) (core.Raw, error) {
	l.Task = c.key()
	err := c.s.noted(ctx, "tree.landing", &c.t, true, func(t *Tree) error {
		if t.Landing.open() && t.Landing.Task != l.Task {
			return core.Errorf(core.Unavailable, "%s is being changed by %s", t.Source, t.Landing.Task)
		}
		t.Landing = &l
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.land(ctx)
}

// land brings what was begun to its end, whatever of it is done already. Nothing holds it
// up: half of it is no place to stand still.
func (c *carrying) land(ctx context.Context) (core.Raw, error) {
	ctx = context.WithoutCancel(ctx)
	l := *c.t.Landing
	if l.Done {
		return core.MustEncode(l.Landed), nil
	}
	defer c.s.release(c.t.Source, l.Task)
	err := c.s.opt.Driver.Land(ctx, c.t, l.Task, l.Landed.From, l.Landed.To)
	if err == nil {
		return core.MustEncode(l.Landed), c.s.landed(ctx, c.event(), &c.t)
	}
	if errors.Is(err, ErrHalf) {
		c.s.loop.Due(c.t.TenantID, c.s.opt.Ledger.Clock().Now().Add(mendSoon))
		return nil, fmt.Errorf("%s is left half done in %s, and is taken back as soon as that can be: %v", l.Task, c.t.Source, err)
	}
	return nil, errors.Join(err, c.s.takenBack(ctx, &c.t))
}

// landed writes down that a landing is done.
func (s *Trees) landed(ctx context.Context, event string, t *Tree) error {
	return s.save(ctx, core.Self(t.TenantID, component), event, t, func(t *Tree) {
		l := *t.Landing
		l.Done = true
		t.Landing, t.Since, t.Head = &l, l.Next, l.NextHead
		if t.Kind == Git {
			t.BaseCommit = l.Landed.To
		}
	})
}

// takenBack writes down that nothing of a landing is left.
func (s *Trees) takenBack(ctx context.Context, t *Tree) error {
	return s.noted(ctx, "tree.landing_taken_back", t, false, func(t *Tree) error {
		t.Landing = nil
		return nil
	})
}

// noted changes the landing of a tree, and what its task has of it, in one transaction.
func (s *Trees) noted(ctx context.Context, event string, t *Tree, begun bool, change func(*Tree) error) error {
	return s.opt.Ledger.Update(ctx, core.Self(t.TenantID, component), func(tx *audit.Tx) error {
		old, err := s.kind.Load(tx, t.Agent)
		if err == nil && old == nil {
			err = notThere(t.Agent)
		}
		if err != nil {
			return err
		}
		now := *old
		if err := change(&now); err != nil {
			return err
		}
		of := now.Landing
		if of == nil {
			of = old.Landing
		}
		if of != nil {
			if err := s.opt.Swarm.NoteBegun(tx, of.Task, begun); err != nil {
				return err
			}
		}
		*t = now
		return s.kind.Save(tx, record.Event{Type: event, Detail: map[string]any{"source": t.Source, "task": of.Task, "from": of.Landed.From, "to": of.Landed.To}}, old, t)
	})
}

// mendSource takes back what an earlier task has left half done in a source, as far as
// its task is over.
func (s *Trees) mendSource(ctx context.Context, of Tree) error {
	for _, t := range s.trees.Of(of.TenantID) {
		if t.Source != of.Source || !t.Landing.open() || s.away(*t) != nil {
			continue
		}
		if err := s.mend(ctx, *t); err != nil {
			return err
		}
	}
	return nil
}

// mend takes one back whose task is over, or finds that it was done after all.
func (s *Trees) mend(ctx context.Context, t Tree) error {
	l := t.Landing
	of, err := s.opt.Tasks.Get(ctx, t.TenantID, l.Task)
	if err == nil && of.Begun {
		return core.Errorf(core.Unavailable, "%s is being changed by %s", t.Source, l.Task)
	}
	if err != nil && !errors.Is(err, core.Kind(core.NotFound)) {
		return err
	}
	what := "half of " + l.Task
	done, err := s.opt.Driver.Back(ctx, t, l.Task, l.Landed.From, l.Landed.To)
	if err != nil {
		err = fmt.Errorf("%s, which was cut off, can't be taken back out of %s: %w", l.Task, t.Source, err)
		s.opt.Health.Report(t.TenantID, component, what, err)
		return err
	}
	s.opt.Health.Clear(t.TenantID, component, what)
	if done {
		return s.landed(ctx, "tree.merged", &t)
	}
	return s.takenBack(ctx, &t)
}

// mendAll takes back what tasks that are over have left half done in a tenant's sources.
func (s *Trees) mendAll(ctx context.Context, tenant string) (left bool, err error) {
	for _, t := range s.trees.Of(tenant) {
		if !t.Landing.open() || s.opt.Driver == nil || s.away(*t) != nil {
			continue
		}
		left = true
		of, bad := s.opt.Tasks.Get(ctx, tenant, t.Landing.Task)
		if bad == nil && of.Begun {
			continue // it is brought to its end
		}
		if s.claim(t.Source, t.Landing.Task) == nil {
			err = errors.Join(err, s.mend(ctx, *t))
			s.release(t.Source, t.Landing.Task)
		}
	}
	return left, err
}
