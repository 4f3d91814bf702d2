package skill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/store"
)

const bReaction store.Bucket = "skill.reaction" // id → Reaction

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
		known, err := loadReaction(tx, r.ReactionID)
		if err != nil || known != nil {
			if known != nil {
				r = *known
			}
			return err
		}
		if tx.Add("skill.reactions", 1) > maxReactions {
			return core.Errorf(core.Conflict, "pattern: there are %d reactions, the most there may be; remove one first", maxReactions).With("field", "pattern")
		}
		made = true
		r.TenantID, r.CreatedAt, r.CreatedBy = tx.Tenant(), tx.Now(), by.Name
		if err := tx.Put(bReaction, []byte(r.ReactionID), core.MustEncode(r)); err != nil {
			return err
		}
		if _, err := tx.Record(audit.Entry{Type: "reaction.created", Subject: "reaction", ID: r.ReactionID, State: r}); err != nil {
			return err
		}
		s.follows(tx, r.ReactionID, &r)
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
		if gone, err = loadReaction(tx, id); err != nil {
			return err
		}
		if gone == nil {
			return core.Missing("reaction", id)
		}
		tx.Add("skill.reactions", -1)
		if err := tx.Delete(bReaction, []byte(id)); err != nil {
			return err
		}
		if _, err := tx.Record(audit.Entry{Type: "reaction.removed", Subject: "reaction", ID: id, State: audit.Gone}); err != nil {
			return err
		}
		s.follows(tx, id, nil)
		return s.opt.Bus.UnsubscribeIn(tx, id)
	})
	if err != nil {
		return Reaction{}, fmt.Errorf("remove reaction %s: %w", id, err)
	}
	return *gone, nil
}

// Reactions lists a tenant's reactions, the oldest first.
func (s *Skills) Reactions(tenant string) []Reaction {
	s.mu.RLock()
	all := make([]Reaction, 0, len(s.reactions[tenant]))
	for _, r := range s.reactions[tenant] {
		all = append(all, *r)
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b Reaction) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ReactionID, b.ReactionID))
	})
	return all
}

// follows brings a reaction into memory with the commit; nil removes it.
func (s *Skills) follows(tx *audit.Tx, id string, r *Reaction) {
	tenant := tx.Tenant()
	tx.OnCommit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := maps.Clone(s.reactions[tenant])
		if all == nil {
			all = map[string]*Reaction{}
		}
		if all[id] = r; r == nil {
			delete(all, id)
		}
		s.reactions[tenant] = all
		select {
		case s.reacts <- struct{}{}:
		default:
		}
	})
}

func loadReaction(tx store.Tx, id string) (*Reaction, error) {
	if id == "" || len(id) > 64 {
		return nil, core.Missing("reaction", id)
	}
	data, err := tx.Get(bReaction, []byte(id))
	if err != nil || data == nil {
		return nil, err
	}
	return decodeReaction(data)
}

func decodeReaction(data []byte) (*Reaction, error) {
	r := &Reaction{}
	if err := core.DecodeStored(data, r); err != nil {
		return nil, fmt.Errorf("decode a reaction: %w", err)
	}
	return r, nil
}

type auditedReactions struct{}

func (auditedReactions) Subject() string { return "reaction" }

func (auditedReactions) States(tx store.Tx, each func(string, any) error) error {
	var bad error
	err := tx.Scan(bReaction, nil, nil, false, func(_, v []byte) bool {
		var r *Reaction
		if r, bad = decodeReaction(v); bad == nil {
			bad = each(r.ReactionID, r)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}
