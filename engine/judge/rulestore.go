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
	"swarmdeck/engine/record"
)

// ruleKind keeps the always rules.
func (j *Judge) ruleKind() record.Kind[Rule] {
	return record.Kind[Rule]{
		Noun: "rule", Bucket: "always", Ledger: j.ledger, Follow: j.always.update,
		ID:  func(r *Rule) string { return r.RuleID },
		Key: record.Numbered(core.RulePrefix), Name: record.NumberedName(core.RulePrefix),
		Head: func(r *Rule) record.Head {
			return record.Head{Tenant: &r.TenantID, Created: &r.CreatedAt, Seq: &r.AuditSeq}
		},
		State: func(r *Rule) any {
			return struct {
				Uses    int  `json:"uses"`
				Revoked bool `json:"revoked"`
			}{r.Uses, r.Revoked}
		},
	}
}

// addRule stores a proposed rule, live from this commit on.
func (j *Judge) addRule(tx *audit.Tx, p *proposal) (*Rule, error) {
	r := p.rule
	r.RuleID = core.NewID(core.RulePrefix, tx.Tenant(), j.rules.Next(tx))
	r.ExpiresAt = tx.Now().Add(p.rule.ExpiresAt.Sub(time.Time{}))
	told := r
	told.Action.Args, told.Action.Files = nil, nil // what a person may want erased: the row's digest tells of it
	return &r, j.rules.Save(tx, record.Event{Type: "rule.added", Detail: &told}, nil, &r)
}

// needRule reads a rule; an id of another tenant is core.ErrForeign.
func (j *Judge) needRule(tx *audit.Tx, id string) (*Rule, error) {
	if _, err := core.LocalSeq(core.RulePrefix, tx.Tenant(), id); err != nil {
		return nil, err
	}
	return j.rules.Need(tx, id)
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

func (c *cache) rules(ctx context.Context, kind *record.Kind[Rule], tenant string) ([]*liveRule, error) {
	for {
		c.mu.Lock()
		set, ok := c.sets[tenant]
		gen := c.gen[tenant]
		c.mu.Unlock()
		if ok {
			return set, nil
		}
		now := kind.Ledger.Clock().Now()
		all, err := kind.List(ctx, tenant)
		if err != nil {
			return nil, fmt.Errorf("read the always rules: %w", err)
		}
		set = []*liveRule{}
		for _, r := range all {
			if r.alive(now) {
				set = append(set, &liveRule{Rule: r, spent: &atomic.Bool{}})
			}
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

// update takes a rule over, as it is on disk.
func (c *cache) update(tenant, _ string, r *Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen[tenant]++
	old, ok := c.sets[tenant]
	if !ok {
		return
	}
	next := &liveRule{Rule: *r, spent: &atomic.Bool{}}
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
	c.sets[tenant] = set
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
