package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// policies say which rules decide in a tenant, and what they decide.
type policies struct {
	ledger     ledger
	table      func() *table // the base
	evaluation time.Duration // the longest one evaluation may take
	programs   Programs      // nil runs none
	book       Book          // nil keeps none
	rulings    perTenant[ruling]
	kind       record.Table[Policy]
}

// PolicyVersion is the digest of the tenant's active policy.
func (j *policies) PolicyVersion(tenant string) string {
	return j.ruling(context.Background(), tenant).version
}

// Policy is the tenant's active policy as canonical JSON, with its version.
// It must not be modified.
func (j *policies) Policy(tenant string) (version string, source core.Raw) {
	r := j.ruling(context.Background(), tenant)
	return r.version, r.source
}

// ruling is what decides in a tenant: the base policy, or the tenant's own
// above the base's deny rules. It never changes.
type ruling struct {
	version  string
	source   core.Raw // canonical JSON; version is its sha256
	name     string
	policyID string // "" for the base
	digest   string // of the tenant's source
	table    *table // its rules; for a program those of the gates it leaves out
	program  *Program
	gates    []Gate   // that the program decides; none means all
	broken   error    // it can't be read: every question is a person's
	off      []string // ids of the floors that are switched off
}

// decides reports whether a program answers at a gate.
func (r *ruling) decides(g Gate) bool {
	return r.program != nil && (len(r.gates) == 0 || slices.Contains(r.gates, g))
}

func (r *ruling) rules() int {
	if r.program != nil {
		return 0
	}
	return len(r.table.file.Rules)
}

// standing are those of some floors that are not switched off.
func (r *ruling) standing(floors []*rule) []*rule {
	if len(r.off) == 0 {
		return floors
	}
	return slices.DeleteFunc(slices.Clone(floors), func(f *rule) bool { return slices.Contains(r.off, f.ID) })
}

// without is the ruling with floors switched off. What decides is another then,
// and so is its version.
func (r *ruling) without(off []string) (*ruling, error) {
	if len(off) == 0 || r.broken != nil {
		return r, nil
	}
	var doc map[string]any
	if err := core.DecodeStored(r.source, &doc); err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	doc["floors_off"] = off
	source, err := core.Canonical(core.MustEncode(doc))
	if err != nil {
		return nil, err
	}
	less := *r
	less.off, less.source, less.version = off, source, digestOf(source)
	return &less, nil
}

// base is the ruling of a tenant without a policy of its own.
func (j *policies) base() *ruling {
	t := j.table()
	return &ruling{version: t.version, source: t.source, name: t.file.Name, table: t}
}

// compilePolicy makes a ruling of a policy. Its version covers all that
// decides: the source, how it is run, and the base below it.
func (j *policies) compilePolicy(p *Policy, source []byte) (*ruling, error) {
	base := j.table()
	r := &ruling{name: p.Name, policyID: p.PolicyID, digest: p.SourceDigest, table: base, gates: p.Gates}
	var doc any
	if p.Kind == KindProgram {
		r.program = &Program{Digest: p.SourceDigest, Interpreter: p.Interpreter, Source: source, Serve: p.Serve}
		doc = struct {
			Base        string     `json:"base"`
			Kind        PolicyKind `json:"kind"`
			Name        string     `json:"name"`
			Interpreter []string   `json:"interpreter"`
			Serve       bool       `json:"serve"`
			Gates       []Gate     `json:"gates"`
			Digest      string     `json:"source_digest"`
			Source      string     `json:"source"`
		}{base.version, p.Kind, p.Name, p.Interpreter, p.Serve, p.Gates, p.SourceDigest, string(source)}
	} else {
		file := tableFile{Lists: base.file.Lists, Topics: base.file.Topics} // for those that it leaves out
		err := file.parse(source)
		if err != nil {
			return nil, err
		}
		if r.table, err = newTable(file); err != nil {
			return nil, err
		}
		doc = struct {
			Base   string     `json:"base"`
			Kind   PolicyKind `json:"kind"`
			Digest string     `json:"source_digest"`
			tableFile
		}{base.version, p.Kind, p.SourceDigest, file}
	}
	encoded, err := core.Encode(doc)
	if err != nil {
		return nil, fmt.Errorf("encode the policy: %w", err)
	}
	if r.source, err = core.Canonical(encoded); err != nil {
		return nil, err
	}
	r.version = digestOf(r.source)
	if r.program != nil {
		r.program.Name = p.TenantID + "/" + r.version
	}
	return r, nil
}

// rest ends what a ruling keeps running, unless it rules.
func (j *policies) rest(tenant string, of *ruling) {
	if of == nil || of.program == nil || j.programs == nil {
		return
	}
	if now, _ := j.rulings.get(tenant); now == nil || now.version != of.version {
		j.programs.Release(of.program)
	}
}

// perTenant holds in memory what follows from a tenant's records. Its zero value
// holds nothing.
type perTenant[V any] struct {
	mu  sync.RWMutex
	of  map[string]*V
	gen map[string]int // commits seen; a load that raced one starts over
}

// get is what is held, nil for nothing, and how many commits were seen.
func (c *perTenant[V]) get(tenant string) (*V, int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.of[tenant], c.gen[tenant]
}

// load is get, and reads what is not held.
func (c *perTenant[V]) load(tenant string, read func() (*V, error)) (*V, error) {
	for {
		v, gen := c.get(tenant)
		if v != nil {
			return v, nil
		}
		v, err := read()
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		if c.gen[tenant] == gen {
			c.set(tenant, v)
			c.mu.Unlock()
			return v, nil
		}
		c.mu.Unlock()
	}
}

// change follows a commit: next makes what is held from then on of what was,
// nil for nothing. It returns what was.
func (c *perTenant[V]) change(tenant string, next func(old *V) *V) *V {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.of[tenant]
	c.set(tenant, next(old))
	c.gen[tenant]++
	return old
}

func (c *perTenant[V]) set(tenant string, v *V) {
	if c.of == nil {
		c.of, c.gen = map[string]*V{}, map[string]int{}
	}
	c.of[tenant] = v
}

// ruling is the tenant's active policy. It never fails: a policy that can't be
// read leaves everything to a person.
func (j *policies) ruling(ctx context.Context, tenant string) *ruling {
	if r, _ := j.rulings.get(tenant); r != nil {
		return r
	}
	return j.learn(ctx, tenant)
}

// learn is ruling of a tenant that none is in mind of.
func (j *policies) learn(ctx context.Context, tenant string) *ruling {
	if j.ledger.Ledger == nil {
		return j.base()
	}
	r, err := j.rulings.load(tenant, func() (r *ruling, err error) {
		err = j.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			r, err = j.readRuling(tx.Tx)
			return err
		})
		return r, err
	})
	switch {
	case errors.Is(err, store.ErrNoTenant):
		return j.base()
	case err != nil:
		return j.broken("", err)
	}
	return r
}

// rulingIn is ruling within a transaction.
func (j *policies) rulingIn(tx *audit.Tx) *ruling {
	if r, _ := j.rulings.get(tx.Tenant()); r != nil {
		return r
	}
	r, err := j.readRuling(tx.Tx)
	if err != nil {
		return j.broken("", err)
	}
	return r
}

// readRuling compiles the policy that the store says is active.
func (j *policies) readRuling(tx store.Tx) (*ruling, error) {
	terms, err := readTerms(tx)
	if err != nil {
		return nil, fmt.Errorf("read the terms of policies: %w", err)
	}
	active, _, err := readActive(tx)
	if err != nil {
		return nil, fmt.Errorf("read which policy rules: %w", err)
	}
	if active.Policy == "" {
		return j.base().without(terms.FloorsOff)
	}
	p, err := j.kind.Need(tx, active.Policy)
	if err != nil {
		return nil, err
	}
	source, err := p.part(tx, policySources, p.SourceDigest)
	if err != nil {
		return j.broken(p.PolicyID, err), nil
	}
	r, err := j.compilePolicy(p, source)
	if err == nil {
		r, err = r.without(terms.FloorsOff)
	}
	if err != nil {
		return j.broken(p.PolicyID, err), nil
	}
	return r, nil
}

// broken is the ruling of a policy that can't be read.
func (j *policies) broken(id string, err error) *ruling {
	source := core.MustEncode(map[string]string{"base": j.table().version, "broken": id})
	return &ruling{
		version: digestOf(source), source: source, policyID: id, table: j.table(),
		broken: fmt.Errorf("the tenant's policy can't be read: %w", err),
	}
}

// versions keeps what decisions leave out: decisions are many and policy
// versions few, so a decision holds its version's number in the tenant, and
// the tenant holds each version's whole table once.
type versions struct {
	numbers sync.Map // *active by tenant; not changed once they are here
	known   sync.Map // *pastPolicy by numbered: what a number stands for
}

// active is the active policy with its number in a tenant.
type active struct {
	ruling *ruling
	number uint64
}

type numbered struct {
	tenant string
	number uint64
}

// pastPolicy is what is needed of a table to read its decisions.
type pastPolicy struct {
	version   string
	rationale map[string]string // by rule
}

// number of the active policy in the transaction's tenant; it is kept, with an
// audit event, when it decides there for the first time.
func (j *decisions) number(tx *audit.Tx) (*active, error) {
	tenant, r := tx.Tenant(), j.policies.rulingIn(tx)
	if held, ok := j.versions.numbers.Load(tenant); ok && held.(*active).ruling.version == r.version {
		return held.(*active), nil
	}
	now := &active{ruling: r}
	n, kept, err := versionNumber.Get(tx, record.Key(r.version))
	if err == nil && !kept {
		n, err = keepPolicy(tx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("keep policy version %s: %w", r.version, err)
	}
	now.number = n
	tx.OnCommit(func() { j.versions.numbers.Store(tenant, now) })
	return now, nil
}

func keepPolicy(tx *audit.Tx, r *ruling) (uint64, error) {
	n := uint64(tx.Add(string(versionTable), 1))
	if err := errors.Join(versionNumber.Put(tx, record.Key(r.version), n), versionTable.Put(tx, record.Seq(n), slices.Clone(r.source))); err != nil {
		return 0, err
	}
	_, err := tx.Record(audit.Entry{
		Type: "policy.active", Subject: "policy", ID: r.version,
		Detail: map[string]any{"name": r.name, "rules": r.rules(), "policy_id": r.policyID, "number": n},
	})
	return n, err
}

// policy is the table that a decision's number stands for.
func (j *decisions) policy(tx store.Tx, n uint64) (*pastPolicy, error) {
	at := numbered{tx.Tenant(), n}
	if p, ok := j.versions.known.Load(at); ok {
		return p.(*pastPolicy), nil
	}
	source, kept, err := versionTable.Get(tx, record.Seq(n))
	if err != nil {
		return nil, fmt.Errorf("read policy %d: %w", n, err)
	}
	p := &pastPolicy{rationale: map[string]string{}}
	if kept {
		var f struct {
			Rules []struct {
				ID        string `json:"id"`
				Rationale string `json:"rationale"`
			} `json:"rules"`
		}
		if err := core.DecodeStored(source, &f); err != nil {
			return nil, fmt.Errorf("read policy %d: %w", n, err)
		}
		for _, r := range f.Rules {
			p.rationale[r.ID] = r.Rationale
		}
		p.version = digestOf(source)
	}
	j.versions.known.Store(at, p)
	return p, nil
}
