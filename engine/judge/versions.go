package judge

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// versions keeps what decisions leave out: decisions are many and policy
// versions few, so a decision holds its version's number in the tenant, and
// the tenant holds each version's whole table once.
type versions struct {
	mu      sync.RWMutex
	numbers map[string]active        // by tenant
	known   map[numbered]*pastPolicy // what a number stands for
}

// active is the active policy's number in a tenant, and how the tenant's
// decision ids begin.
type active struct {
	ruling *ruling
	number uint64
	idHead string
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

func (p *versions) init() {
	p.numbers, p.known = map[string]active{}, map[numbered]*pastPolicy{}
}

// number of the active policy in the transaction's tenant; it is kept, with an
// audit event, when it decides there for the first time.
func (j *Judge) number(tx *audit.Tx) (active, error) {
	tenant, r := tx.Tenant(), j.rulingIn(tx)
	j.versions.mu.RLock()
	now, ok := j.versions.numbers[tenant]
	j.versions.mu.RUnlock()
	if ok && now.ruling.version == r.version {
		return now, nil
	}
	now = active{ruling: r}
	n, kept, err := versionNumber.Get(tx, record.Key(r.version))
	if err == nil && !kept {
		n, err = keepPolicy(tx, r)
	}
	if err != nil {
		return now, fmt.Errorf("keep policy version %s: %w", r.version, err)
	}
	now.number = n
	now.idHead = core.DecisionPrefix + "_" + core.TenantTag(tenant) + "_"
	tx.OnCommit(func() {
		j.versions.mu.Lock()
		j.versions.numbers[tenant] = now
		j.versions.mu.Unlock()
	})
	return now, nil
}

// id is the decision id of a number, as core.NewID makes it.
func (a active) id(seq uint64) string {
	b := make([]byte, 0, len(a.idHead)+20)
	b = append(b, a.idHead...)
	for limit := uint64(1_000_000_000); limit > seq && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return string(strconv.AppendUint(b, seq, 10))
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
func (j *Judge) policy(tx store.Tx, n uint64) (*pastPolicy, error) {
	at := numbered{tx.Tenant(), n}
	j.versions.mu.RLock()
	p := j.versions.known[at]
	j.versions.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	source, kept, err := versionTable.Get(tx, record.Seq(n))
	if err != nil {
		return nil, fmt.Errorf("read policy %d: %w", n, err)
	}
	p = &pastPolicy{rationale: map[string]string{}}
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
		p.version = versionOf(source)
	}
	j.versions.mu.Lock()
	j.versions.known[at] = p
	j.versions.mu.Unlock()
	return p, nil
}
