package skill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// Bounds of carrying reactions out.
const (
	maxDepth     = 16  // reactions to what a reaction's skill did, one after another
	maxLoops     = 256 // times that a reaction may come of itself in one trace: each may cause several
	maxAncestors = 64  // tasks looked at to find that out
)

// attend carries out a reaction. Trouble is audited, and what was in hand comes
// again.
func (s *Skills) attend(ctx context.Context, r *Reaction) error {
	err := health.Caught(func() error { return s.readFor(ctx, r) })
	if ctx.Err() != nil {
		return nil
	}
	trouble := audit.Entry{Type: "reaction.trouble", Subject: "reaction", ID: r.ReactionID}
	return s.ledger.Refuse(ctx, core.Self(r.TenantID, r.ReactionID), trouble, err)
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
			if err := d.Refuse(ctx, core.ClipTo(core.AsError(err).Message, 400)); err != nil {
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
	parent, err := s.cause(ctx, r, m, seen)
	if err != nil {
		return task.Task{}, err
	}
	d, err := s.dispatch(r.TenantID, "", Invoke{Skill: r.Skill, Params: params, Intent: "as a reaction to " + m.Topic})
	if err != nil {
		return task.Task{}, err
	}
	if d.Parent = parent; parent == "" {
		d.Trace = m.TraceID // a child keeps its parent's, whatever its sender wrote
	}
	// A message that comes again, after a crash, starts nothing new.
	d.IdempotencyKey = r.ReactionID + " " + m.MessageID
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
	depth, itself, trace := 0, false, ""
	for n, at := 0, id; at != ""; n++ {
		t, err := s.opt.Tasks.Get(ctx, r.TenantID, at)
		switch {
		case errors.Is(err, core.Kind(core.NotFound)):
			return "", nil
		case err != nil:
			return "", err
		}
		if n == 0 {
			trace = t.TraceID
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
	if itself && seen.count(trace) > maxLoops {
		return "", core.Errorf(core.Conflict, "a loop: this reaction came of itself %d times", maxLoops)
	}
	return id, nil
}

const maxReactions = 200 // of a tenant: each reads by itself

// Reaction invokes a skill for every message whose topic its pattern selects,
// the engine's events under sys too. What it starts is a task of the engine's,
// not of an operator: the gate asks about it where it would ask about an
// agent's.
type Reaction struct {
	ReactionID string `json:"reaction_id"` // follows from pattern, skill and params; also its subscription's name
	TenantID   string `json:"tenant_id"`
	Pattern    string `json:"pattern"`
	Skill      string `json:"skill"` // name or name@version; without a version the newest of the time
	// Params are the skill's; in their texts ${message.payload.x} stands for a
	// field of the message. Nil means that its payload is the parameters.
	Params    core.Raw  `json:"params,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
}

// Check reports what is wrong with a reaction by itself.
func (r Reaction) Check() error { return r.check() }

// check is Check, and fills the id in.
func (r *Reaction) check() error {
	p, err := bus.ParsePattern(r.Pattern)
	if err != nil {
		return err
	}
	if _, _, err := SplitRef(r.Skill); err != nil {
		return err
	}
	if r.Params != nil {
		if err := core.CheckObject("params", r.Params, core.MaxInput); err != nil {
			return err
		}
		r.Params = slices.Clone(r.Params)
		if err := r.Params.Compact(); err != nil {
			return core.Errorf(core.InvalidInput, "params: not valid JSON: %v", err).With("field", "params")
		}
	}
	for _, u := range mapping.Uses(r.Params, "params") {
		switch {
		case u.Err != nil:
			return mapping.InField(u.Field, u.Err)
		case u.Ref.Root != "message":
			return mapping.InField(u.Field, core.Errorf(core.InvalidInput, "%s: a reaction knows only its message, as in ${message.payload.x} or ${message.topic}", u.Ref.Text))
		}
	}
	sum := sha256.Sum256([]byte(p.String() + "\x00" + r.Skill + "\x00" + string(r.Params)))
	r.ReactionID = "react-" + hex.EncodeToString(sum[:6])
	return nil
}

// React makes a reaction: messages that are accepted from now on invoke the
// skill. The same one again changes nothing; made is false then.
func (s *Skills) React(ctx context.Context, by core.Caller, r Reaction) (_ Reaction, made bool, err error) {
	if err := s.CheckReaction(by.Tenant, r); err != nil {
		return Reaction{}, false, err
	}
	if err := r.check(); err != nil {
		return Reaction{}, false, err
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r.CreatedBy = by.Name
		action, err := s.kind.Put(tx, record.Event{}, &r, func(*Reaction, *Reaction) bool { return true }) // the id says it all
		if made = action == record.Created; err != nil || !made {
			return err
		}
		return s.opt.Bus.SubscribeIn(tx, r.ReactionID, r.Pattern)
	})
	if err != nil {
		return Reaction{}, false, fmt.Errorf("react to %s: %w", r.Pattern, err)
	}
	return r, made, nil
}

// CheckReaction reports what React would refuse about a reaction: without
// references and with params, also what its skill does not accept.
func (s *Skills) CheckReaction(tenant string, r Reaction) error {
	if err := r.check(); err != nil {
		return err
	}
	if _, err := s.Skill(tenant, r.Skill); err != nil {
		return err
	}
	if r.Params == nil || len(mapping.Uses(r.Params, "params")) > 0 {
		return nil
	}
	return s.CheckInvoke(tenant, Invoke{Skill: r.Skill, Params: r.Params})
}

// Unreact removes a reaction and what waits for it. What it started goes on.
func (s *Skills) Unreact(ctx context.Context, by core.Caller, id string) (Reaction, error) {
	var gone *Reaction
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		if gone, err = s.kind.Need(tx, id); err != nil {
			return err
		}
		if err := s.kind.Remove(tx, record.Event{Type: "reaction.removed"}, gone); err != nil {
			return err
		}
		return s.opt.Bus.UnsubscribeIn(tx, id)
	})
	if err != nil {
		return Reaction{}, fmt.Errorf("remove reaction %s: %w", id, err)
	}
	return *gone, nil
}

// Reactions lists a tenant's reactions, the oldest first.
func (s *Skills) Reactions(tenant string) []Reaction {
	var all []Reaction
	for _, r := range s.reactions.Of(tenant) {
		all = append(all, *r)
	}
	core.Sort(all, func(a, b Reaction) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ReactionID, b.ReactionID))
	})
	return all
}

// reactionKind keeps the reactions.
func (s *Skills) reactionKind() record.Table[Reaction] {
	return &record.Kind[*Reaction]{
		Noun: "reaction", Bucket: "skill.reaction", Limit: maxReactions, Ledger: s.ledger, Follow: s.reactions.Follow,
		ID:    func(r *Reaction) string { return r.ReactionID },
		Head:  func(r *Reaction) record.Head { return record.Head{Tenant: &r.TenantID, Created: &r.CreatedAt} },
		State: func(r *Reaction) any { return r },
	}
}
