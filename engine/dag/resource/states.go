package resource

import (
	"context"
	"errors"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
)

const (
	// Patience is how long a tool call waits for the states before it to be kept,
	// of all that its agent may write. What takes longer is copied meanwhile, and
	// kept again before calls from when that is done.
	Patience = 5 * time.Second
	// copyPatience is how long such a copy may take.
	copyPatience = 10 * time.Minute
	// keepMost is how many states of one resource are kept that nobody asked
	// for; the oldest go, keepStep at a time.
	keepMost = 200
	keepStep = 50
)

// Position is the place of the newest event of a tenant's record: that of a state
// which is taken from now on, as long as nothing has its effect.
func (r *Resources) Position(ctx context.Context, tenant string) (at uint64, err error) {
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		at = dag.Pos(tx)
		return nil
	})
	return at, audit.Explain("read the end of the record", err)
}

// note keeps that a resource was so at a place of the record.
func note(tx *audit.Tx, resource string, at uint64, s state) error {
	if err := log(tx, "state", resource, map[string]any{"snapshot_id": s.Snapshot}); err != nil {
		return err
	}
	key := record.Text(resource).Seq(at)
	_, again, err := states.Get(tx, key)
	if err != nil {
		return err
	}
	if !again {
		tx.Add(countStates(resource), 1)
	}
	return states.Put(tx, key, s)
}

// Begin looks after the directory that an agent works in, before a run of it.
func (r *Resources) Begin(ctx context.Context, tenant, name string) error {
	agent, err := r.opt.Agents.Agent(ctx, tenant, name)
	if err != nil {
		return err
	}
	if err := r.inherited(ctx, core.Self(tenant, "resources"), agent); err != nil || agent.Dir == "" || agent.Elsewhere {
		return err
	}
	_, err = r.workdir(ctx, core.Self(tenant, "resources"), agent)
	return err
}

// inherited takes away what an earlier agent of the name had.
func (r *Resources) inherited(ctx context.Context, by core.Caller, agent Agent) error {
	all, err := r.held(ctx, by.Tenant, agent.Name)
	if err != nil {
		return err
	}
	for _, k := range all {
		if h := k.Holders[agent.Name]; h.Since.Time().Before(agent.CreatedAt) {
			if _, err := r.Detach(ctx, by, agent.Name, k.Resource.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// workdir attaches an agent's directory, unless something it has holds it.
func (r *Resources) workdir(ctx context.Context, by core.Caller, agent Agent) (*kept, error) {
	all, err := r.held(ctx, by.Tenant, agent.Name)
	if err != nil {
		return nil, err
	}
	if k, _ := holding(all, agent.Dir); k != nil {
		return k, nil
	}
	res, err := r.look(ctx, agent.Dir)
	if err != nil {
		return nil, err
	}
	k, err := r.attach(ctx, by, agent.Name, res, Hold{Mode: dag.ReadWrite})
	return &k, err
}

// Writable are the paths of the files and directories that an agent has to write.
func (r *Resources) Writable(ctx context.Context, tenant, agent string) (paths []string, err error) {
	all, err := r.held(ctx, tenant, agent)
	for _, k := range all {
		if path := metadataOf(&k.Resource).Path; path != "" && k.Resource.Kind == dag.ResourceFile && k.Holders[agent].Mode == dag.ReadWrite {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// Keep keeps the states of what an agent may write, before a tool call or at
// the end of a run, as those that there were at a place of the record (Position);
// during says that a call is under way. It returns when Patience is over. What is
// not kept by then, or can't be, is told once, and left from then on: until its
// copy, which goes on as long as ctx, is done, or somebody asks for it.
func (r *Resources) Keep(ctx context.Context, tenant, agent string, at uint64, during bool) error {
	all, err := r.held(ctx, tenant, agent)
	if err != nil {
		return err
	}
	over := time.NewTimer(Patience)
	defer over.Stop()
	late := make(chan struct{}) // closed when nobody waits any more
	var errs []error
	for _, k := range all {
		id := [2]string{tenant, k.Resource.ID}
		if r.left(id) || k.Holders[agent].Mode != dag.ReadWrite || !k.Resource.Can(dag.CanSnapshot) || k.Resource.Kind != dag.ResourceFile {
			continue
		}
		done := make(chan error, 1)
		go func() { done <- r.keepNow(ctx, tenant, agent, k, at, during, late) }()
		select {
		case err = <-done:
		case <-over.C:
			r.leave(id, true)
			close(late)
			what := core.Errorf(core.Unavailable, "the state of %s is not kept before each call until it is copied, which takes longer than %v", k.Resource.Name, Patience)
			go func() { r.leave(id, <-done != nil) }()
			return errors.Join(append(errs, what)...)
		}
		if err != nil && ctx.Err() == nil {
			r.leave(id, true)
			errs = append(errs, audit.Explain("the state of "+k.Resource.Name+" is not kept before each call any more", err))
		}
	}
	return errors.Join(errs...)
}

// Copying says how far the states under way of what an agent may write have come: how
// many files were read, and how many are to be.
func (r *Resources) Copying(ctx context.Context, tenant, agent string) (done, all int) {
	held, err := r.held(ctx, tenant, agent)
	if err != nil {
		return 0, 0
	}
	for _, k := range held {
		if d, ok := r.opt.Drivers[metadataOf(&k.Resource).Driver].(Copying); ok {
			one, of := d.Copying(k.Resource)
			done, all = done+one, all+of
		}
	}
	return done, all
}

// left reports whether the state of a resource is not kept before each call.
func (r *Resources) left(id [2]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tooSlow[id]
}

func (r *Resources) leave(id [2]string, left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tooSlow[id] = left
}

// keepNow keeps one state, unless nothing has changed. It changes nothing
// outside of what is kept, and so needs no intent. One that is late is noted where
// the record is by then, as taken while calls were under way.
func (r *Resources) keepNow(ctx context.Context, tenant, agent string, k kept, at uint64, during bool, late <-chan struct{}) error {
	d, err := r.driverHere(&k)
	if err != nil {
		return err
	}
	last, n, err := r.newest(ctx, tenant, k.Resource.ID)
	if err != nil {
		return err
	}
	var ref *dag.ExtRef
	if last != nil && r.keptAway(last) == nil {
		ref = &last.Snapshot.ExternalRef
	}
	by := core.Self(tenant, "resources")
	id := idOf("auto-", tenant+" "+k.Resource.ID+" "+agent+" "+r.opt.Ledger.Clock().Now().Format(time.RFC3339Nano))
	limited, stop := context.WithTimeoutCause(ctx, copyPatience, core.Errorf(core.Unavailable, "it takes longer than %v", copyPatience))
	defer stop()
	got, err := d.Snapshot(limited, tenant, id, k.Resource, ref)
	if err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return err
	}
	place := func(tx *audit.Tx) (uint64, bool) {
		select {
		case <-late:
			return dag.Pos(tx), true
		default:
			return at, during
		}
	}
	if ref != nil && got.Ref == *ref {
		err = r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
			at, during := place(tx)
			return note(tx, k.Resource.ID, at, state{Snapshot: last.Snapshot.ID, During: during})
		})
		return audit.Explain("note a state", err)
	}
	if _, err := r.noted(ctx, by, k, shot{AgentID: agent, Auto: true}, id, got, place); err != nil {
		return err
	}
	if n > keepMost+keepStep {
		return r.prune(ctx, by, k.Resource.ID)
	}
	return nil
}

// newest is the newest snapshot of a resource; nil when there is none. n is how
// many states there are.
func (r *Resources) newest(ctx context.Context, tenant, id string) (s *shot, n int64, err error) {
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		n = tx.Counter(countStates(id))
		at, _, _, _, err := stateAt(tx, id, ^uint64(0)-1)
		if err != nil || at == nil {
			return err
		}
		s, err = shotIn(tx, at.Snapshot)
		return err
	})
	return s, n, audit.Explain("read the newest state", err)
}

// prune gives the oldest states up, with their snapshots when nobody asked for
// these and no newer state is the same.
func (r *Resources) prune(ctx context.Context, by core.Caller, id string) error {
	drop := map[string]bool{}
	err := r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		clear(drop)
		n := int(tx.Counter(countStates(id))) - keepMost
		var old []uint64
		err := states.Each(tx, record.Text(id), func(pos record.Parts, s state) (bool, error) {
			if len(old) < n {
				old = append(old, pos.Seq())
				drop[s.Snapshot] = true
			} else {
				delete(drop, s.Snapshot)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		for _, pos := range old {
			if err := states.Delete(tx, record.Text(id).Seq(pos)); err != nil {
				return err
			}
		}
		tx.Add(countStates(id), -int64(len(old)))
		if len(old) > 0 {
			if err := log(tx, "states_dropped", id, map[string]any{"states": len(old)}); err != nil {
				return err
			}
		}
		for name := range drop {
			s, err := shotIn(tx, name)
			if err != nil {
				return err
			}
			if s == nil || !s.Auto {
				delete(drop, name)
			}
		}
		return nil
	})
	if err != nil {
		return audit.Explain("give old states up", err)
	}
	for name := range drop {
		if err := r.forget(ctx, by, name); err != nil {
			return err
		}
	}
	k, err := r.kept(ctx, by.Tenant, id)
	if err != nil {
		return err
	}
	d, err := r.driver(&k.Resource)
	if err != nil {
		return err
	}
	return d.Sweep(ctx, by.Tenant)
}
