package egress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

const bRule store.Bucket = "egress.rule" // Rule.ID → Rule

const countRules = "egress.rule"

// index finds the rules about a host without the store. It never changes.
type index struct {
	all   map[string]*Rule   // by ID
	exact map[string][]*Rule // by host
	below map[string][]*Rule // by domain, of *.DOMAIN
}

func newIndex(all map[string]*Rule) *index {
	x := &index{all: all, exact: map[string][]*Rule{}, below: map[string][]*Rule{}}
	for _, r := range all {
		hosts := r.Hosts
		if len(hosts) == 0 {
			hosts = []string{r.Host}
		}
		for _, h := range hosts {
			if domain, wild := strings.CutPrefix(h, "*."); wild {
				x.below[domain] = append(x.below[domain], r)
			} else {
				x.exact[h] = append(x.exact[h], r)
			}
		}
	}
	return x
}

// ruling is what the rules say about a connection; Allow and Deny may both be
// nil.
type ruling struct {
	allow, deny *Rule
	private     bool // an allowing rule lets the addresses be closed ones
	opaque      bool // an allowing rule keeps it from being looked into
}

// rule looks up what is wanted. A deny wins, however wide it is.
func (x *index) rule(from *Origin, to *Request, now time.Time) (found ruling) {
	if x == nil {
		return found
	}
	look := func(rules []*Rule) {
		for _, r := range rules {
			switch {
			case !r.concerns(from, to.Port, now) || !r.covers(to):
			case r.Effect == Deny:
				found.deny = r
			default:
				found.private, found.opaque = found.private || r.Private, found.opaque || r.Opaque
				if found.allow == nil {
					found.allow = r
				}
			}
		}
	}
	look(x.exact[to.Host])
	for domain := to.Host; len(x.below) > 0; {
		_, rest, more := strings.Cut(domain, ".")
		if !more {
			break
		}
		domain = rest
		look(x.below[domain])
	}
	return found
}

// Put makes a rule as it is given, which ends after expires, 0 for never, and
// says what that did: created, changed or unchanged. A rule about the same for
// the same is replaced, an allow by a deny too.
func (s *Service) Put(ctx context.Context, by core.Caller, r Rule, expires time.Duration) (_ Rule, action string, err error) {
	if by.Kind != core.Operator {
		return r, "", s.refuseCaller(ctx, by, r.ID())
	}
	if err := r.Check(); err != nil {
		return r, "", err
	}
	if expires != 0 && (expires < minExpiry || expires > maxExpiry) {
		return r, "", core.Invalid("for", expires, "1s-8784h (366 days)")
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := loadRule(tx.Tx, r.ID())
		if err != nil {
			return err
		}
		r.TenantID, r.CreatedAt, r.UpdatedAt, r.Owner, r.ExpiresAt, action = tx.Tenant(), tx.Now(), tx.Now(), by.Name, time.Time{}, "created"
		if expires != 0 {
			r.ExpiresAt = tx.Now().Add(expires)
		}
		var prev uint64
		switch {
		case old != nil && old.same(&r):
			r, action = *old, "unchanged"
			return nil
		case old != nil:
			r.CreatedAt, prev, action = old.CreatedAt, old.AuditSeq, "changed"
		case tx.Add(countRules, 1) > maxRules:
			return core.Errorf(core.Conflict, "host: there are %d egress rules, the most there may be; remove one first", maxRules).With("field", "host")
		}
		if r.AuditSeq, err = tx.Record(audit.Entry{Type: "egress." + string(r.Effect), Subject: subjectRule, ID: r.ID(), State: r.state(), Prev: prev}); err != nil {
			return err
		}
		data, err := core.Encode(r)
		if err != nil {
			return fmt.Errorf("encode egress rule %s: %w", r.ID(), err)
		}
		made := r
		tx.OnCommit(func() { s.follow(made.TenantID, made.ID(), &made) })
		return tx.Put(bRule, []byte(r.ID()), data)
	})
	return r, action, err
}

// Remove ends a rule: its host is neither allowed nor denied by it any more.
func (s *Service) Remove(ctx context.Context, by core.Caller, id string) (gone Rule, err error) {
	if by.Kind != core.Operator {
		return gone, s.refuseCaller(ctx, by, id)
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := loadRule(tx.Tx, id)
		if err == nil && old == nil {
			err = core.Missing("egress rule", id)
		}
		if err != nil {
			return err
		}
		gone = *old
		if _, err := tx.Record(audit.Entry{Type: "egress.removed", Subject: subjectRule, ID: id, State: audit.Gone, Prev: old.AuditSeq}); err != nil {
			return err
		}
		tx.Add(countRules, -1)
		tx.OnCommit(func() { s.follow(gone.TenantID, id, nil) })
		return tx.Delete(bRule, []byte(id))
	})
	return gone, err
}

// refuseCaller audits a change of the rules by somebody who is no person.
func (s *Service) refuseCaller(ctx context.Context, by core.Caller, id string) error {
	cause := core.Errorf(core.Denied, "egress rule %s: only an operator may change it; %s %q may not", id, by.Kind, by.Name)
	return s.ledger.Refuse(ctx, by, audit.Entry{Type: "egress.rule.refused", Subject: subjectRule, ID: id}, cause)
}

// Rules lists a tenant's rules by host; expired ones too.
func (s *Service) Rules(ctx context.Context, tenant string) (all []Rule, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return eachRule(tx.Tx, func(r *Rule) error {
			all = append(all, *r)
			return nil
		})
	})
	slices.SortFunc(all, compareRules)
	return all, err
}

// follow takes over what a commit did to a rule; nil removed it.
func (s *Service) follow(tenant, id string, r *Rule) {
	s.rules.Change(func() {
		all := map[string]*Rule{}
		if old := s.indexes[tenant]; old != nil {
			for k, v := range old.all {
				all[k] = v
			}
		}
		if all[id] = r; r == nil {
			delete(all, id)
		}
		s.indexes[tenant] = newIndex(all)
	})
}

// read takes over the rules that the store has at the start.
func (s *Service) read(ctx context.Context, tenant string) error {
	all := map[string]*Rule{}
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return eachRule(tx.Tx, func(r *Rule) error {
			all[r.ID()] = r
			return nil
		})
	})
	if err == nil && len(all) > 0 {
		s.indexes[tenant] = newIndex(all)
	}
	return err
}

func loadRule(tx store.Tx, id string) (*Rule, error) {
	if id == "" || len(id) > store.MaxKey {
		return nil, nil
	}
	data, err := tx.Get(bRule, []byte(id))
	if err != nil || data == nil {
		return nil, err
	}
	return decodeRule(data)
}

func decodeRule(data []byte) (*Rule, error) {
	r := &Rule{}
	if err := core.DecodeStored(data, r); err != nil {
		return nil, fmt.Errorf("decode an egress rule: %w", err)
	}
	return r, nil
}

func eachRule(tx store.Tx, visit func(*Rule) error) error {
	var bad error
	err := tx.Scan(bRule, nil, nil, false, func(_, value []byte) bool {
		var r *Rule
		if r, bad = decodeRule(value); bad == nil {
			bad = visit(r)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}

// Auditables are what reconcile compares with the log.
func (s *Service) Auditables() []audit.Auditable { return []audit.Auditable{audited{}} }

type audited struct{}

func (audited) Subject() string { return subjectRule }

func (audited) States(tx store.Tx, visit func(string, any) error) error {
	return eachRule(tx, func(r *Rule) error { return visit(r.ID(), r.state()) })
}
