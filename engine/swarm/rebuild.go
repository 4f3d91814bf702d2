package swarm

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

var agentPattern = core.Pattern(`^[a-zA-Z0-9_.-]{1,64}$`)

// isAgent reports whether a name can be an agent's: one of the fleet, a CAD
// agent, or the id of a subagent.
func isAgent(name string) bool { return agentPattern().MatchString(name) }

// rebuild reads what the scheduler keeps in mind, and takes back the leases
// of the engine that died. Its cost is the live work, not the history. What
// can't be read holds what it might have held: the tasks of a session stay
// queued, a budget counts as used up, an emergency stop as pressed.
func (s *Swarm) rebuild(ctx context.Context, tenant string) error {
	return errors.Join(
		s.sessions.Read(ctx, tenant), s.budgets.Read(ctx, tenant), s.estops.Read(ctx, tenant), s.rebuildWork(ctx, tenant),
	)
}

// rebuildWork is rebuild for the queue.
func (s *Swarm) rebuildWork(ctx context.Context, tenant string) error {
	var lost []uint64
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		lanes, err := lanesIn(tx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		w := s.keep(tenant)
		for _, l := range lanes {
			w.lanes[l] = struct{}{}
		}
		soonest := func(key, _ []byte) bool {
			w.nextDue = earlier(dueTime(key), w.nextDue)
			return false
		}
		err = errors.Join(
			tx.Scan(bStopping, nil, nil, false, func(key, why []byte) bool {
				w.stopping[core.NewID(core.SessionPrefix, tenant, seqAt(key))] = &stopping{why: string(why)}
				return true
			}),
			tx.Scan(bDue, nil, nil, false, soonest),
			tx.Scan(bStartBy, nil, nil, false, soonest),
		)
		if err != nil {
			return err
		}
		from, to := span([]byte{Running[0]})
		return tx.Scan(bLive, from, to, false, func(key, _ []byte) bool {
			lost = append(lost, seqAt(key))
			return true
		})
	})
	if err != nil || s.opt.ReadOnly {
		return err
	}
	return s.recover(ctx, tenant, lost)
}

// recover takes the leases of the engine that died away. A task whose work had
// ended waits for a person and no worker: it goes on waiting.
func (s *Swarm) recover(ctx context.Context, tenant string, lost []uint64) error {
	return s.eachTask(ctx, core.Self(tenant, "recovery"), lost, func(tx *audit.Tx, seq uint64) error {
		var t Task
		if err := loadTask(tx, seq, &t); err != nil {
			return err
		}
		if t.Status != Running {
			return damagedTask(tenant, seq, fmt.Errorf("it is %s, and kept among the running", t.Status))
		}
		parked, err := tx.Get(bParked, key8(seq))
		if err != nil || parked != nil {
			return err
		}
		return s.orphaned(tx, &t)
	})
}

// Auditables are the records that reconcile compares with the audit log.
func (s *Swarm) Auditables() []audit.Auditable {
	return []audit.Auditable{auditedTasks{}, s.sessions.Auditable(), s.budgets.Auditable(), s.estops.Auditable()}
}

type auditedTasks struct{}

func (auditedTasks) Subject() string { return "task" }

func (auditedTasks) States(tx store.Tx, each func(id string, state any) error) error {
	var bad error
	err := tx.Scan(bTask, nil, nil, false, func(key, value []byte) bool {
		var t Task
		if len(key) == 8 && core.DecodeStored(value, &t) == nil { // else the digest differs
			bad = each(core.NewID(core.TaskPrefix, tx.Tenant(), seqAt(key)), t.appendState(nil))
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}

// Derives implements audit.Deriver.
func (auditedTasks) Derives() []string {
	names := []string{"#" + countWaiting, "#" + countStatus("*"), "#" + countOf(bOfAgent, "*"), "#" + countOf(bOfSes, "*")}
	for _, b := range []store.Bucket{bLive, bRare, bOfAgent, bOfSes, bChild} {
		names = append(names, string(b))
	}
	return names
}

// Derive implements audit.Deriver: the lists that tasks are in by their headers
// alone, and what is counted of them.
func (auditedTasks) Derive(tx store.Tx, d *audit.Derivation) error {
	counts := map[string]int64{}
	err := tx.Scan(bTask, nil, nil, false, func(key, value []byte) bool {
		var t Task
		if len(key) != 8 || core.DecodeStored(value, &t) != nil || len(t.Status) < 2 {
			return true // its digest differs
		}
		seq := seqAt(key)
		counts[countStatus(t.Status)]++
		if t.Waiting != "" {
			counts[countWaiting]++
		}
		switch {
		case !t.Status.Terminal():
			d.Row(bLive, liveKey(tx, t.Status, seq), nil)
		case rare(t.Status):
			d.Row(bRare, rareKey(tx, t.Status, seq), nil)
		}
		for _, ix := range t.indexes() {
			d.Row(ix.bucket, ix.key, nil)
			if ix.count != "" {
				counts[ix.count]++
			}
		}
		return true
	})
	for name, n := range counts {
		d.Count(name, n)
	}
	return err
}
