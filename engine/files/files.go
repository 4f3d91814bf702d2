// Package files keeps what the processes of a tenant may read and write beside
// the directory that they work in, and what is hidden from them: by rules for
// everybody, a role or an agent.
//
// It opens no file. Whoever starts a process asks Places and holds it to the
// answer: what is hidden wins over what may be written, and that over what may
// be read. A change is for processes that start later.
package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/store"
)

const bRule store.Bucket = "files.rule" // Rule.ID → Rule

const (
	countRules  = "files.rule"
	subjectRule = "files.rule" // in the audit log
	maxRules    = 500          // of a tenant: each is a mount of a process
)

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Tenants func(context.Context) ([]string, error)
	Own     *safeopen.Own // the engine's own files, which no rule gives
}

// Service keeps the rules. It is safe for concurrent use.
type Service struct {
	ledger *audit.Ledger
	own    *safeopen.Own

	mu    sync.Mutex                 // guards what follows
	rules map[string]map[string]Rule // by tenant and ID
}

// New reads the rules of every tenant.
func New(ctx context.Context, opt Options) (*Service, error) {
	s := &Service{ledger: opt.Ledger, own: opt.Own, rules: map[string]map[string]Rule{}}
	all, err := opt.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	for _, tenant := range all {
		rules, err := s.Rules(ctx, tenant)
		if err != nil {
			return nil, fmt.Errorf("file rules of %s: %w", tenant, err)
		}
		for i := range rules {
			s.follow(tenant, rules[i].ID(), &rules[i])
		}
	}
	return s, nil
}

// Places are those of the rules for an agent of a role; "" is none. A path is
// in the one list that wins.
func (s *Service) Places(tenant, role, agent string) (p Places) {
	s.mu.Lock()
	defer s.mu.Unlock()
	won := map[string]Effect{}
	for _, r := range s.rules[tenant] {
		if r.concerns(role, agent) && rank(r.Effect) > rank(won[r.Path]) {
			won[r.Path] = r.Effect
		}
	}
	for _, path := range slices.Sorted(maps.Keys(won)) {
		switch won[path] {
		case Read:
			p.Read = append(p.Read, path)
		case Write:
			p.Write = append(p.Write, path)
		case Hide:
			p.Hide = append(p.Hide, path)
		}
	}
	return p
}

func rank(e Effect) int { return slices.Index([]Effect{Read, Write, Hide}, e) }

// Put makes a rule as it is given, and says what that did: created, changed or
// unchanged. A rule about the same path for the same is replaced.
func (s *Service) Put(ctx context.Context, by core.Caller, r Rule) (_ Rule, action string, err error) {
	if by.Kind != core.Operator {
		return r, "", s.refuseCaller(ctx, by, r.ID())
	}
	if err := r.Check(); err != nil {
		return r, "", err
	}
	if err := s.own.Check(r.Path); err != nil && r.Effect != Hide {
		return r, "", s.ledger.Refuse(ctx, by, audit.Entry{Type: "files.rule.refused", Subject: subjectRule, ID: r.ID()}, err)
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := loadRule(tx.Tx, r.ID())
		if err != nil {
			return err
		}
		r.TenantID, r.CreatedAt, r.UpdatedAt, r.Owner, action = tx.Tenant(), tx.Now(), tx.Now(), by.Name, "created"
		var prev uint64
		switch {
		case old != nil && old.Effect == r.Effect:
			r, action = *old, "unchanged"
			return nil
		case old != nil:
			r.CreatedAt, prev, action = old.CreatedAt, old.AuditSeq, "changed"
		case tx.Add(countRules, 1) > maxRules:
			return core.Errorf(core.Conflict, "path: there are %d file rules, the most there may be; remove one first", maxRules).With("field", "path")
		}
		if r.AuditSeq, err = tx.Record(audit.Entry{Type: "files." + string(r.Effect), Subject: subjectRule, ID: r.ID(), State: r.state(), Prev: prev}); err != nil {
			return err
		}
		data, err := core.Encode(r)
		if err != nil {
			return fmt.Errorf("encode file rule %s: %w", r.ID(), err)
		}
		made := r
		tx.OnCommit(func() { s.follow(made.TenantID, made.ID(), &made) })
		return tx.Put(bRule, []byte(r.ID()), data)
	})
	return r, action, err
}

// Remove ends a rule.
func (s *Service) Remove(ctx context.Context, by core.Caller, id string) (gone Rule, err error) {
	if by.Kind != core.Operator {
		return gone, s.refuseCaller(ctx, by, id)
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := loadRule(tx.Tx, id)
		if err == nil && old == nil {
			err = core.Missing("file rule", id)
		}
		if err != nil {
			return err
		}
		gone = *old
		if _, err := tx.Record(audit.Entry{Type: "files.removed", Subject: subjectRule, ID: id, State: audit.Gone, Prev: old.AuditSeq}); err != nil {
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
	cause := core.Errorf(core.Denied, "file rule %s: only an operator may change it; %s %q may not", id, by.Kind, by.Name)
	return s.ledger.Refuse(ctx, by, audit.Entry{Type: "files.rule.refused", Subject: subjectRule, ID: id}, cause)
}

// Rules lists a tenant's rules by path.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil {
		delete(s.rules[tenant], id)
		return
	}
	if s.rules[tenant] == nil {
		s.rules[tenant] = map[string]Rule{}
	}
	s.rules[tenant][id] = *r
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
		return nil, fmt.Errorf("decode a file rule: %w", err)
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
