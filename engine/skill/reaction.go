package skill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/record"
)

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
		known, err := s.kind.Load(tx, r.ReactionID)
		if err != nil || known != nil {
			if known != nil {
				r = *known
			}
			return err
		}
		made, r.CreatedBy = true, by.Name
		if err := s.kind.Save(tx, record.Event{Type: "reaction.created"}, nil, &r); err != nil {
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
	if _, err := s.resolve(tenant, r.Skill); err != nil {
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
	slices.SortFunc(all, func(a, b Reaction) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ReactionID, b.ReactionID))
	})
	return all
}

// reactionKind keeps the reactions.
func (s *Skills) reactionKind() record.Kind[Reaction] {
	return record.Kind[Reaction]{
		Noun: "reaction", Bucket: "skill.reaction", Limit: maxReactions, Ledger: s.ledger, Follow: s.reactions.Follow,
		ID:    func(r *Reaction) string { return r.ReactionID },
		Head:  func(r *Reaction) record.Head { return record.Head{Tenant: &r.TenantID, Created: &r.CreatedAt} },
		State: func(r *Reaction) any { return r },
	}
}
