package resource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/record"
)

// Compensate implements control.Effect: the agent of the fork goes, and who
// lost something to it has that again.
func (e forking) Compensate(ctx context.Context, j control.Job) (control.Seen, error) {
	var a forkArgs
	if err := core.DecodeStored(j.Args, &a); err != nil {
		return control.Seen{}, err
	}
	if err := e.r.opt.Agents.Undo(ctx, j.Tenant, a.Made.Name, j.IntentID); err != nil {
		return control.Seen{}, err
	}
	origin := a.Made.Origin
	fork, err := e.r.since(ctx, j.Tenant, a.Made.Name)
	if err != nil {
		return control.Seen{}, err
	}
	source, err := e.r.since(ctx, j.Tenant, origin.AgentID)
	if err != nil {
		return control.Seen{}, err
	}
	err = e.r.opt.Ledger.Append(ctx, core.Self(j.Tenant, "resources"), func(tx *audit.Tx) error {
		if err := e.r.leaving(tx, a.Made.Name, fork); err != nil {
			return err
		}
		// Another agent of the source's name never had it.
		return e.r.returning(tx, j.IntentID, origin.AgentID, !source.IsZero() && source.Equal(origin.Since))
	})
	if err == nil && !e.restored(j, a) {
		err = e.r.clear(a.Made.Dir)
	}
	return control.Seen{Met: err == nil}, audit.Explain("take a fork back", err)
}

// restored reports whether a fork works in what a step before made, which goes
// with that step.
func (forking) restored(j control.Job, a forkArgs) bool {
	for _, p := range a.Parts {
		if out, err := earlier(j, p.Restored); p.Restored > 0 && (err != nil || out.Resource == nil || holds(out.Resource, a.Made.Dir)) {
			return true
		}
	}
	return false
}

// clear removes a directory of a fork, and those above it that were made for
// that fork, as far as nothing is in them.
func (r *Resources) clear(dir string) error {
	for ; r.ours(dir) && filepath.Dir(dir) != r.opt.Dir; dir = filepath.Dir(dir) { // a tenant's own stays
		err := os.Remove(dir)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the directory of a fork: %w", err)
		}
	}
	return nil
}

// since is when the agent of a name was created; zero when there is none.
func (r *Resources) since(ctx context.Context, tenant, name string) (time.Time, error) {
	a, err := r.opt.Agents.Agent(ctx, tenant, name)
	if errors.Is(err, core.Kind(core.NotFound)) {
		return time.Time{}, nil
	}
	return a.CreatedAt, err
}

// leaving takes from a name what it has. An agent that was created since keeps what it
// got.
func (r *Resources) leaving(tx *audit.Tx, name string, since time.Time) error {
	all, err := heldIn(tx, name)
	for _, k := range all {
		if err == nil && (since.IsZero() || k.Holders[name].Since.Time().Before(since)) {
			_, err = r.detaching(tx, name, k.Resource.ID)
		}
	}
	return err
}

// returning gives the source of a fork back what it lost by it. Done again it gives
// nothing.
func (r *Resources) returning(tx *audit.Tx, intent, source string, there bool) error {
	took := map[string]Hold{}
	if err := lost.Each(tx, record.Text(intent), func(id record.Parts, h Hold) (bool, error) {
		took[id.Text()] = h
		return true, nil
	}); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(took)) {
		h := took[id]
		if err := lost.Delete(tx, record.Text(intent).Last(id)); err != nil {
			return err
		}
		k, err := keptIn(tx, id)
		if err == nil && k != nil && there && k.Holders[source].Mode == "" { // else who has it got it since
			_, err = r.attaching(tx, source, k.Resource, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
