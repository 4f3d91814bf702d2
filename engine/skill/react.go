package skill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/task"
)

// Bounds of carrying reactions out.
const (
	reactAgain   = 30 * time.Second // rest when one could not go on
	maxDepth     = 16               // reactions to what a reaction's skill did, one after another
	maxLoops     = 256              // times that a reaction may come of itself in one trace: each may cause several
	maxAncestors = 64               // tasks looked at to find that out
)

// react carries out the reactions of all tenants, each in a goroutine of its
// own, until ctx ends.
func (s *Skills) react(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running := map[*Reaction]context.CancelFunc{}
	for {
		wanted := map[*Reaction]bool{}
		for _, of := range s.reactions.All() {
			for _, r := range of {
				wanted[r] = true
			}
		}
		for r, end := range running {
			if !wanted[r] {
				end()
				delete(running, r)
			}
		}
		for r := range wanted {
			if running[r] == nil {
				reading, end := context.WithCancel(ctx)
				running[r] = end
				all.Go(func() { s.attend(reading, r) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.reacts:
		}
	}
}

// attend carries out one reaction. Trouble is audited, and what was in hand
// comes again.
func (s *Skills) attend(ctx context.Context, r *Reaction) {
	for {
		err := health.Caught(func() error { return s.readFor(ctx, r) })
		if ctx.Err() != nil {
			return
		}
		s.opt.Health.Report(r.TenantID, component, "reaction "+r.ReactionID, err)
		// The cause comes back when it can't be audited either.
		_ = s.ledger.Refuse(ctx, core.Self(r.TenantID, r.ReactionID), audit.Entry{Type: "reaction.trouble", Subject: "reaction", ID: r.ReactionID}, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(reactAgain):
		}
	}
}

// readFor reads a reaction's messages. One is acknowledged when its task is on
// disk, so that a crash neither loses it nor starts it twice.
func (s *Skills) readFor(ctx context.Context, r *Reaction) (err error) {
	// Existing: the reaction may be removed just now.
	opt := bus.SubscribeOptions{Name: r.ReactionID, Existing: true, Pattern: r.Pattern, By: "reaction: " + r.Skill}
	sub, err := s.opt.Bus.Subscribe(ctx, r.TenantID, opt)
	if errors.Is(err, core.Kind(core.NotFound)) {
		if err = s.resubscribe(ctx, r); err == nil {
			sub, err = s.opt.Bus.Subscribe(ctx, r.TenantID, opt)
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sub.Close()) }()
	seen := loops{}
	for {
		d, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		_, err = s.invoked(ctx, r, &d.Message, seen)
		switch {
		case err == nil || again(err):
			d.Ack()
		case final(err):
			if err := d.Refuse(ctx, shorten(core.AsError(err).Message, 400)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("react to message %s: %w", d.Message.MessageID, err)
		}
	}
}

// resubscribe makes a reaction's subscription again that somebody removed.
func (s *Skills) resubscribe(ctx context.Context, r *Reaction) error {
	return s.ledger.Update(ctx, core.Self(r.TenantID, r.ReactionID), func(tx *audit.Tx) error {
		if _, err := s.kind.Need(tx, r.ReactionID); err != nil {
			return err
		}
		return s.opt.Bus.SubscribeIn(tx, r.ReactionID, r.Pattern)
	})
}

// final reports that trying again would come to the same.
func final(err error) bool {
	return slices.Contains([]core.Code{core.InvalidInput, core.NotFound, core.Conflict, core.Denied}, core.AsError(err).Code)
}

// again reports that a message has started its task before, with another
// version of the skill.
func again(err error) bool {
	e := core.AsError(err)
	return e.Code == core.Conflict && e.Details["field"] == "idempotency_key"
}

// invoked starts the task of a message.
func (s *Skills) invoked(ctx context.Context, r *Reaction, m *bus.Message, seen loops) (task.Task, error) {
	params := m.Payload
	if r.Params != nil {
		filled, err := mapping.Fill(r.Params, map[string]core.Raw{"message": core.MustEncode(m)})
		if err != nil {
			return task.Task{}, err
		}
		params = filled
	}
	d, err := s.dispatch(r.TenantID, "", Invoke{Skill: r.Skill, Params: params, Trace: m.TraceID, Intent: "as a reaction to " + m.Topic})
	if err != nil {
		return task.Task{}, err
	}
	// A message that comes again, after a crash, starts nothing new.
	d.IdempotencyKey = r.ReactionID + " " + m.MessageID
	if d.Parent, err = s.cause(ctx, r, m, seen); err != nil {
		return task.Task{}, err
	}
	return s.opt.Swarm.Dispatch(ctx, core.Self(r.TenantID, r.ReactionID), d)
}

// loops counts how often a reaction came of itself, by trace.
type loops map[string]int

func (l loops) count(trace string) int {
	if len(l) >= 1000 { // of others, long over
		clear(l)
	}
	l[trace]++
	return l[trace]
}

// cause is the task that a message tells of or that its sender runs, "" when
// there is none. It fails when that came of too many reactions: one after
// another, or side by side.
func (s *Skills) cause(ctx context.Context, r *Reaction, m *bus.Message, seen loops) (string, error) {
	id := m.TaskID
	if id == "" && core.IsUUID(m.SenderID) { // a subagent, which may be over by now
		a, err := s.Subagent(ctx, r.TenantID, m.SenderID)
		if err != nil && !errors.Is(err, core.Kind(core.NotFound)) {
			return "", err
		}
		id = a.TaskID
	}
	depth, itself := 0, false
	for n, at := 0, id; at != ""; n++ {
		t, err := s.opt.Tasks.Get(ctx, r.TenantID, at)
		switch {
		case errors.Is(err, core.Kind(core.NotFound)):
			return "", nil
		case err != nil:
			return "", err
		}
		if t.CreatedKind == core.Engine && strings.HasPrefix(t.CreatedBy, "react-") {
			depth++
			itself = itself || t.CreatedBy == r.ReactionID
		}
		if depth >= maxDepth || n >= maxAncestors {
			return "", core.Errorf(core.Conflict, "a loop: this is the last of %d reactions to one another", depth)
		}
		at = t.ParentTaskID
	}
	if itself && seen.count(m.TraceID) > maxLoops {
		return "", core.Errorf(core.Conflict, "a loop: this reaction came of itself %d times", maxLoops)
	}
	return id, nil
}
