package judge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// ruleState is what the audit log says of an always rule.
type ruleState struct {
	Uses    int    `json:"uses"`
	Revoked bool   `json:"revoked"`
	Grant   string `json:"grant"` // digest of all that does not change with use
}

func stateOf(r *Rule) (ruleState, error) {
	grant := *r
	grant.Uses, grant.Revoked, grant.AuditSeq = 0, false, 0
	digest, err := core.Digest(grant)
	if err != nil {
		return ruleState{}, fmt.Errorf("digest rule %s: %w", r.RuleID, err)
	}
	return ruleState{r.Uses, r.Revoked, digest}, nil
}

// addRule stores a proposed rule, live from this commit on.
func (j *Judge) addRule(tx *audit.Tx, p *proposal) (*Rule, error) {
	r := p.rule
	r.RuleID = core.NewID(core.RulePrefix, tx.Tenant(), uint64(tx.Add(countRules, 1)))
	r.CreatedAt = tx.Now()
	r.ExpiresAt = tx.Now().Add(p.rule.ExpiresAt.Sub(time.Time{}))
	return &r, j.saveRule(tx, &r, "rule.added", &r)
}

func (j *Judge) saveRule(tx *audit.Tx, r *Rule, event string, detail any) error {
	state, err := stateOf(r)
	if err != nil {
		return err
	}
	seq, err := tx.Record(audit.Entry{
		Type: event, Subject: "rule", ID: r.RuleID, State: state, Detail: detail, Prev: r.AuditSeq,
	})
	if err != nil {
		return fmt.Errorf("audit %s of %s: %w", event, r.RuleID, err)
	}
	r.AuditSeq = seq
	value, err := core.Encode(r)
	if err != nil {
		return fmt.Errorf("encode rule %s: %w", r.RuleID, err)
	}
	_, _, n, _ := core.ParseID(r.RuleID)
	if err := tx.Put(rulesBucket, key(n), value); err != nil {
		return fmt.Errorf("write rule %s: %w", r.RuleID, err)
	}
	made := *r
	tx.Changed("rule", r.RuleID, &made)
	tx.OnCommit(func() { j.always.update(made) })
	return nil
}

func loadRule(tx *audit.Tx, id string) (*Rule, error) {
	seq, err := core.LocalSeq(core.RulePrefix, tx.Tenant(), id)
	if err != nil {
		return nil, err
	}
	value, err := tx.Get(rulesBucket, key(seq))
	if err != nil {
		return nil, fmt.Errorf("read rule %s: %w", id, err)
	}
	if value == nil {
		return nil, core.Missing("rule", id)
	}
	return decodeRule(value)
}

func decodeRule(value []byte) (*Rule, error) {
	r := &Rule{}
	if err := core.DecodeStored(value, r); err != nil {
		return nil, fmt.Errorf("decode a rule: %w", err)
	}
	r.Action.Args = append(core.Raw(nil), r.Action.Args...)
	return r, nil
}

func eachRule(tx store.Tx, fn func(*Rule)) error {
	var bad error
	err := tx.Scan(rulesBucket, nil, nil, false, func(_, value []byte) bool {
		r, err := decodeRule(value)
		if bad = err; err == nil {
			fn(r)
		}
		return err == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

// cache holds each tenant's live always rules, so that Evaluate reads no
// store. Sets are never changed, only replaced, in commit order.
type cache struct {
	mu   sync.Mutex
	sets map[string][]*liveRule
	gen  map[string]int // commits seen; a load that raced one starts over
}

type liveRule struct {
	Rule
	// spent is set as soon as a transaction found the rule used up, before
	// the commit that used it up is seen here.
	spent *atomic.Bool
}

func (c *cache) init() { c.sets, c.gen = map[string][]*liveRule{}, map[string]int{} }

func (c *cache) rules(ctx context.Context, l *audit.Ledger, tenant string) ([]*liveRule, error) {
	for {
		c.mu.Lock()
		set, ok := c.sets[tenant]
		gen := c.gen[tenant]
		c.mu.Unlock()
		if ok {
			return set, nil
		}
		now := l.Clock().Now()
		set = []*liveRule{}
		if err := l.View(ctx, tenant, func(tx *audit.Tx) error {
			return eachRule(tx.Tx, func(r *Rule) {
				if r.alive(now) {
					set = append(set, &liveRule{Rule: *r, spent: &atomic.Bool{}})
				}
			})
		}); err != nil {
			return nil, fmt.Errorf("read the always rules: %w", err)
		}
		c.mu.Lock()
		if c.gen[tenant] == gen {
			c.sets[tenant] = set
			c.mu.Unlock()
			return set, nil
		}
		c.mu.Unlock()
	}
}

func (c *cache) update(r Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen[r.TenantID]++
	old, ok := c.sets[r.TenantID]
	if !ok {
		return
	}
	next := &liveRule{Rule: r, spent: &atomic.Bool{}}
	set := make([]*liveRule, 0, len(old)+1)
	for _, o := range old {
		if o.RuleID == r.RuleID {
			next.spent = o.spent
		} else if o.ExpiresAt.After(r.CreatedAt) {
			set = append(set, o)
		}
	}
	if !r.Revoked && r.Uses < r.MaxUses {
		set = append(set, next)
		slices.SortFunc(set, func(a, b *liveRule) int { return int(a.AuditSeq) - int(b.AuditSeq) })
	}
	c.sets[r.TenantID] = set
}

func (c *cache) spend(tenant, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.sets[tenant] {
		if r.RuleID == id {
			r.spent.Store(true)
		}
	}
}
