package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

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
	gates    []Gate // that the program decides; none means all
	broken   error  // it can't be read: every question is a person's
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

// base is the ruling of a tenant without a policy of its own.
func (j *Judge) base() *ruling {
	t := j.table()
	return &ruling{version: t.version, source: t.source, name: t.file.Name, table: t}
}

// compilePolicy makes a ruling of a policy. Its version covers all that
// decides: the source, how it is run, and the base below it.
func (j *Judge) compilePolicy(p *Policy, source []byte) (*ruling, error) {
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
		file, err := parseTable(source)
		if err != nil {
			return nil, err
		}
		file.inherit(&base.file)
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
	r.version = versionOf(r.source)
	if r.program != nil {
		r.program.Name = p.TenantID + "/" + r.version
	}
	return r, nil
}

// rest ends what a ruling keeps running, unless it rules.
func (j *Judge) rest(tenant string, of *ruling) {
	if of == nil || of.program == nil || j.programs == nil {
		return
	}
	if now, _ := j.rulings.get(tenant); now == nil || now.version != of.version {
		j.programs.Release(of.program)
	}
}

// inherit takes each list that a policy leaves out from the base.
func (f *tableFile) inherit(base *tableFile) {
	for _, take := range []func(){
		func() { f.Commands = or(f.Commands, base.Commands) },
		func() { f.Wrappers = or(f.Wrappers, base.Wrappers) },
		func() { f.Shells = or(f.Shells, base.Shells) },
		func() { f.SystemDirs = or(f.SystemDirs, base.SystemDirs) },
		func() { f.Roots = or(f.Roots, base.Roots) },
		func() { f.Devices = or(f.Devices, base.Devices) },
		func() { f.SecretPaths = or(f.SecretPaths, base.SecretPaths) },
		func() { f.Tools = or(f.Tools, base.Tools) },
		func() { f.Topics = or(f.Topics, base.Topics) },
	} {
		take()
	}
}

func or[T any](own, base []T) []T {
	if own == nil {
		return base
	}
	return own
}

// rulings holds each tenant's active policy, compiled.
type rulings struct {
	mu  sync.RWMutex
	of  map[string]*ruling
	gen map[string]int // steps of policies seen; a load that raced one starts over
}

func (c *rulings) init() { c.of, c.gen = map[string]*ruling{}, map[string]int{} }

func (c *rulings) get(tenant string) (*ruling, int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.of[tenant], c.gen[tenant]
}

// put follows a commit, and returns what ruled before.
func (c *rulings) put(tenant string, r *ruling) *ruling {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.of[tenant]
	c.of[tenant] = r
	c.gen[tenant]++
	return old
}

// step follows a commit that leaves the ruling as it is.
func (c *rulings) step(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen[tenant]++
}

// ruling is the tenant's active policy. It never fails: a policy that can't be
// read leaves everything to a person.
func (j *Judge) ruling(ctx context.Context, tenant string) *ruling {
	if r, _ := j.rulings.get(tenant); r != nil {
		return r
	}
	return j.learn(ctx, tenant)
}

// learn is ruling of a tenant that none is in mind of.
func (j *Judge) learn(ctx context.Context, tenant string) *ruling {
	for {
		r, gen := j.rulings.get(tenant)
		if r != nil {
			return r
		}
		if j.ledger == nil {
			return j.base()
		}
		err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			r, err = j.readRuling(tx.Tx)
			return err
		})
		if errors.Is(err, store.ErrNoTenant) {
			return j.base()
		}
		if err != nil {
			return j.broken("", err)
		}
		j.rulings.mu.Lock()
		if j.rulings.gen[tenant] == gen {
			j.rulings.of[tenant] = r
			j.rulings.mu.Unlock()
			return r
		}
		j.rulings.mu.Unlock()
	}
}

// rulingIn is ruling within a transaction.
func (j *Judge) rulingIn(tx *audit.Tx) *ruling {
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
func (j *Judge) readRuling(tx store.Tx) (*ruling, error) {
	id, err := activeID(tx)
	if err != nil {
		return nil, fmt.Errorf("read which policy rules: %w", err)
	}
	if id == "" {
		return j.base(), nil
	}
	p, err := j.policies.Need(tx, id)
	if err != nil {
		return nil, err
	}
	source, err := readSource(tx, p)
	if err != nil {
		return j.broken(p.PolicyID, err), nil
	}
	r, err := j.compilePolicy(p, source)
	if err != nil {
		return j.broken(p.PolicyID, err), nil
	}
	return r, nil
}

// broken is the ruling of a policy that can't be read.
func (j *Judge) broken(id string, err error) *ruling {
	source := core.MustEncode(map[string]string{"base": j.table().version, "broken": id})
	return &ruling{
		version: versionOf(source), source: source, policyID: id, table: j.table(),
		broken: fmt.Errorf("the tenant's policy can't be read: %w", err),
	}
}
