package resource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Shown is a snapshot as it is shown.
type Shown struct {
	dag.Snapshot `json:",embed"`
	AgentID      string   `json:"agent_id"`
	Notes        []string `json:"notes,omitempty"` // what is not in it
	Auto         bool     `json:"auto,omitzero"`   // kept before a tool call
}

func shownOf(s shot) Shown { return Shown{s.Snapshot, s.AgentID, s.Notes, s.Auto} }

func countSnapshots(resource string) string { return "resource.snapshots." + resource }
func countStates(resource string) string    { return "resource.states." + resource }

const countShots = "resource.shots"

// idOf is the id under which a driver does a step.
func idOf(prefix, key string) string {
	sum := sha256.Sum256([]byte(key))
	return prefix + hex.EncodeToString(sum[:8])
}

// Snapshot keeps the state that a resource has now.
func (r *Resources) Snapshot(ctx context.Context, by core.Caller, id string) (Shown, error) {
	k, err := r.kept(ctx, by.Tenant, id)
	if err != nil {
		return Shown{}, err
	}
	if !k.Resource.Can(dag.CanSnapshot) {
		return Shown{}, core.Errorf(core.Conflict, "resource: unsupported: %s has not the capability snapshot", id).With("field", "resource").With("outcome", "unsupported")
	}
	result, err := r.intend(ctx, by, k, actSnapshot, stepArgs{Resource: id})
	if err != nil {
		return Shown{}, err
	}
	r.mu.Lock()
	delete(r.tooSlow, [2]string{by.Tenant, id}) // it is tried again at the next call
	r.mu.Unlock()
	s, err := r.shot(ctx, by.Tenant, result.Snapshot)
	return shownOf(s), err
}

// stepArgs are the arguments of this package's actions.
type stepArgs struct {
	Resource string `json:"resource"`
	Snapshot string `json:"snapshot,omitempty"` // "" of a restore: the one of step Taken
	Taken    int    `json:"taken,omitzero"`     // step that took it, from 1
	Dest     string `json:"dest,omitempty"`
}

// stepResult is what they come to.
type stepResult struct {
	Snapshot string        `json:"snapshot,omitempty"`
	Resource *dag.Resource `json:"resource,omitzero"` // that a restore made
}

// earlier is what a step before came to, by its number from 1.
func earlier(j control.Job, step int) (out stepResult, err error) {
	if step < 1 || step > len(j.Earlier) {
		return out, core.Invalid("step", step, fmt.Sprintf("one of the %d before", len(j.Earlier)))
	}
	return out, core.DecodeStored(j.Earlier[step-1], &out)
}

// intend has one step done, and waits for it.
func (r *Resources) intend(ctx context.Context, by core.Caller, k kept, action string, a stepArgs) (out stepResult, err error) {
	done, err := r.bringAbout(ctx, by, control.Spec{
		AgentID: someHolder(k), Subject: "resource:" + k.Resource.ID,
		Steps: []control.Step{{Action: action, Args: core.MustEncode(a)}},
	})
	if err != nil {
		return out, err
	}
	return out, core.DecodeStored(done.Steps[0].Result, &out)
}

// someHolder is the agent that an intent about a resource is recorded with.
func someHolder(k kept) string {
	if s := k.Resource.Scope; s != nil && s.AgentID != "" {
		return s.AgentID
	}
	for name := range k.Holders {
		return name
	}
	return "operator"
}

// snapshotting is the effect of actSnapshot.
type snapshotting struct{ r *Resources }

func (e snapshotting) Probe(ctx context.Context, j control.Job) (control.Seen, error) {
	s, err := e.r.shot(ctx, j.Tenant, idOf("snap-", j.Key))
	if errors.Is(err, core.Kind(core.NotFound)) {
		return control.Seen{Why: "there is no snapshot yet"}, nil
	}
	if err != nil {
		return control.Seen{}, err
	}
	return e.seen(s)
}

func (e snapshotting) seen(s shot) (control.Seen, error) {
	made, err := created(s)
	return control.Seen{Met: true, Result: core.MustEncode(stepResult{Snapshot: s.Snapshot.ID}), Events: []dag.Event{made}}, err
}

// created tells of a snapshot. It is the same event each time.
func created(s shot) (dag.Event, error) {
	return dag.NewEvent(dag.Head{TS: s.Snapshot.CreatedAt, AgentID: s.AgentID, Nodes: []dag.Node{dag.NewNode(&s.Snapshot)}},
		&dag.SnapshotCreated{ResourceRef: s.Snapshot.ResourceRef, SnapshotRef: s.Snapshot.ID, Outcome: dag.OutcomeOK})
}

func (e snapshotting) Act(ctx context.Context, j control.Job) (control.Seen, error) {
	var a stepArgs
	if err := core.DecodeStored(j.Args, &a); err != nil {
		return control.Seen{}, err
	}
	k, err := e.r.kept(ctx, j.Tenant, a.Resource)
	if err != nil {
		return control.Seen{}, err
	}
	id := idOf("snap-", j.Key)
	s, err := e.r.take(ctx, core.Self(j.Tenant, "resources"), k, shot{AgentID: j.AgentID}, id)
	if err != nil {
		now := dag.At(e.r.opt.Ledger.Clock().Now())
		fault := core.AsError(err)
		told, bad := dag.NewEvent(dag.Head{TS: now, AgentID: j.AgentID}, &dag.SnapshotCreated{
			ResourceRef: a.Resource, SnapshotRef: id, Outcome: dag.OutcomeError, Error: &dag.Fault{Code: string(fault.Code), Message: fault.Message},
		})
		return control.Seen{Events: []dag.Event{told}}, errors.Join(err, bad)
	}
	return e.seen(s)
}

// Compensate implements control.Effect: a snapshot that a failed fork took is
// given up.
func (e snapshotting) Compensate(ctx context.Context, j control.Job) (control.Seen, error) {
	err := e.r.forget(ctx, core.Self(j.Tenant, "resources"), idOf("snap-", j.Key))
	return control.Seen{Met: err == nil}, err
}

// take takes a snapshot and notes it; one that is noted already is returned.
func (r *Resources) take(ctx context.Context, by core.Caller, k kept, s shot, id string) (shot, error) {
	d, err := r.driverHere(&k)
	if err != nil {
		return s, err
	}
	got, err := d.Snapshot(ctx, by.Tenant, id, k.Resource, nil)
	if err != nil {
		return s, fmt.Errorf("take a snapshot of %s: %w", k.Resource.ID, err)
	}
	return r.noted(ctx, by, k, s, id, got, func(tx *audit.Tx) (uint64, bool) { return dag.Pos(tx), false })
}

// noted takes a snapshot that a driver has into the book. place says of what place
// of the record it is, and whether a call was under way.
func (r *Resources) noted(ctx context.Context, by core.Caller, k kept, s shot, id string, got Taken, place func(*audit.Tx) (at uint64, during bool)) (shot, error) {
	restorable := k.Resource.Restorable()
	err := r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		known, err := shotIn(tx, id)
		if err != nil || known != nil {
			if known != nil {
				s = *known
			}
			return err
		}
		s.Resource, s.Notes, s.Place = k.Resource, got.Notes, r.opt.Place
		s.Snapshot = dag.Snapshot{
			ID: id, ResourceRef: k.Resource.ID, Method: got.Method, ExternalRef: got.Ref, Consistency: got.Consistency,
			SizeBytes: &got.Size, CreatedAt: dag.At(tx.Now()), Restorable: &restorable,
		}
		tx.Add(countSnapshots(k.Resource.ID), 1)
		s.N = uint64(tx.Add(countShots, 1))
		if err := snapshots.Put(tx, record.Key(id), s); err != nil {
			return err
		}
		if err := shots.Put(tx, record.Text(k.Resource.ID).Seq(s.N), id); err != nil {
			return err
		}
		if s.Auto { // no intent tells of it
			told, err := created(s)
			if err != nil {
				return err
			}
			if _, err := r.opt.DAG.EmitIn(tx, told); err != nil {
				return err
			}
		}
		at, during := place(tx)
		return note(tx, k.Resource.ID, at, state{Snapshot: id, During: during})
	})
	return s, audit.Explain("note a snapshot", err)
}

// forget gives a snapshot up, with the states that it holds. What another machine keeps of
// it stays there.
func (r *Resources) forget(ctx context.Context, by core.Caller, id string) error {
	s, err := r.shot(ctx, by.Tenant, id)
	if errors.Is(err, core.Kind(core.NotFound)) {
		return nil
	}
	if err != nil {
		return err
	}
	d, err := r.driver(&s.Resource)
	if err != nil {
		return err
	}
	err = r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if known, err := shotIn(tx, id); err != nil || known == nil {
			return err
		}
		held, err := statesOf(tx, s.Snapshot.ResourceRef, id)
		if err != nil {
			return err
		}
		if err := log(tx, "snapshot_dropped", s.Snapshot.ResourceRef, map[string]any{"snapshot_id": id, "states": len(held)}); err != nil {
			return err
		}
		for _, key := range held {
			if err := states.Delete(tx, key); err != nil {
				return err
			}
		}
		tx.Add(countStates(s.Snapshot.ResourceRef), -int64(len(held)))
		tx.Add(countSnapshots(s.Snapshot.ResourceRef), -1)
		return errors.Join(shots.Delete(tx, record.Text(s.Snapshot.ResourceRef).Seq(s.N)), snapshots.Delete(tx, record.Key(id)))
	})
	if err != nil {
		return audit.Explain("give a snapshot up", err)
	}
	if r.keptAway(&s) != nil {
		return nil
	}
	return d.Drop(ctx, by.Tenant, s.Snapshot)
}

// Snapshots lists the snapshots of a resource, newest first.
func (r *Resources) Snapshots(ctx context.Context, tenant, id string, f core.Filter) (core.Page[Shown], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[Shown]{}, err
	}
	if _, err := r.kept(ctx, tenant, id); err != nil {
		return core.Page[Shown]{}, err
	}
	var items []Shown
	total := 0
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		total = int(tx.Counter(countSnapshots(id)))
		n := 0
		from, to := record.Text(id).Under()
		return tx.Scan(store.Bucket(shots), from, to, true, func(_, name []byte) (bool, error) {
			if n++; n <= f.Offset() {
				return true, nil
			}
			s, err := shotIn(tx, string(name))
			if s != nil {
				items = append(items, shownOf(*s))
			}
			return err == nil && len(items) < f.Size, err
		})
	})
	if err != nil {
		return core.Page[Shown]{}, audit.Explain("list the snapshots", err)
	}
	return core.NewPage(items, f, total), nil
}
