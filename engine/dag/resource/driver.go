package resource

import (
	"context"
	"encoding/hex"
	"maps"
	"os"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
)

// Driver looks after resources of one kind: it knows what is there, keeps its
// state, and makes it again. Drivers provide it.
//
// What changes something is given an id. Done again under the same id, after a
// crash or a failure, it goes on or finds that it is done: it never has its
// effect twice, and nobody sees it half done.
//
// An error of the code INVALID_INPUT, NOT_FOUND, CONFLICT or DENIED is an
// answer; any other may be gone when it is tried again.
type Driver interface {
	// Look finds what a target stands for: id, kind, name, what can be done
	// with it, and what the driver has to know of it as metadata. The metadata
	// of one that is a file or directory has its "path".
	Look(ctx context.Context, target string) (dag.Resource, error)
	// Probe looks whether it is there.
	Probe(ctx context.Context, r dag.Resource) (dag.Liveness, error)
	// Snapshot keeps the state that the resource has, under an id. When that is
	// the state of a snapshot that is kept already, whose reference is last, it
	// may keep nothing and return that reference.
	Snapshot(ctx context.Context, tenant, id string, r dag.Resource, last *dag.ExtRef) (Taken, error)
	// Restore makes the state of a snapshot again: as the resource dest, which
	// is not there yet, or in the place of the resource itself when dest is "".
	Restore(ctx context.Context, tenant, id string, s dag.Snapshot, r dag.Resource, dest string) (dag.Resource, error)
	// Undo takes back what Restore did under an id: a new resource goes, and
	// what was left half done. One that was replaced stays replaced.
	Undo(ctx context.Context, tenant, id string, r dag.Resource, dest string) error
	// Drop gives a snapshot up; Sweep frees what no snapshot needs any more.
	Drop(ctx context.Context, tenant string, s dag.Snapshot) error
	Sweep(ctx context.Context, tenant string) error
}

// Taken is a snapshot as its driver has it.
type Taken struct {
	Method      string
	Ref         dag.ExtRef // the same for the same state
	Consistency string
	Size        int64    // bytes of the state
	Notes       []string // what is not in it, for people
}

// Handled is a Driver whose resources can only be held, such as processes.
type Handled interface {
	Handle(r dag.Resource) dag.Handle
}

// Copying is a Driver that knows how far the snapshot of a resource under way has come:
// how many of its files were read, and how many are to be; 0 of 0 with none under way.
type Copying interface {
	Copying(r dag.Resource) (done, all int)
}

// metadata is what a driver keeps in a resource's metadata that all share.
type metadata struct {
	Driver string `json:"driver"`
	Path   string `json:"path,omitempty"`     // of a file or directory
	Hex    string `json:"path_hex,omitempty"` // the same, of one that is not printable
}

func metadataOf(r *dag.Resource) (m metadata) {
	_ = core.DecodeStored(r.Metadata, &m) // what is none names no driver
	if raw, err := hex.DecodeString(m.Hex); err == nil && m.Hex != "" {
		m.Path = string(raw)
	}
	return m
}

// Metadata is the metadata of a resource that a driver looks after.
func Metadata(driver, path string, more map[string]string) core.Raw {
	all := map[string]string{"driver": driver}
	if path != "" {
		all["path"] = path
	}
	for k, v := range more {
		all[k] = v
	}
	return core.MustEncode(all)
}

// away is the error of a resource of another machine that is not on this one too: that it
// can't be seen from here says nothing about it. A path may be of both.
func (r *Resources) away(k *kept) error {
	path := metadataOf(&k.Resource).Path
	err := k.Place.Away(r.opt.Place, k.Resource.ID, path)
	if err == nil || path == "" {
		return err
	}
	if _, bad := os.Lstat(path); bad == nil {
		return nil
	}
	return err
}

// driverHere is what looks after a resource that can be seen from here.
func (r *Resources) driverHere(k *kept) (Driver, error) {
	d, err := r.driver(&k.Resource)
	if err == nil {
		err = r.away(k)
	}
	return d, err
}

// keptAway is the error of a snapshot that another machine keeps.
func (r *Resources) keptAway(s *shot) error {
	return s.Place.Away(r.opt.Place, "the snapshot "+s.Snapshot.ID, "")
}

// mostCounted bounds how many snapshots are looked at to tell of those elsewhere.
const mostCounted = 10_000

// Fault tells of snapshots of a tenant that other machines keep; nil where none does.
func (r *Resources) Fault(ctx context.Context, tenant string) error {
	there, seen := map[string]int{}, 0
	err := r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return snapshots.Each(tx, nil, func(_ record.Parts, s shot) (bool, error) {
			if r.keptAway(&s) != nil {
				there[s.Place.Host()]++
			}
			seen++
			return seen < mostCounted, nil
		})
	})
	if err != nil || len(there) == 0 {
		return audit.Explain("count the snapshots", err)
	}
	n, on := 0, ""
	for _, host := range slices.Sorted(maps.Keys(there)) {
		n += there[host]
		on = strings.TrimPrefix(on+", "+host, ", ")
	}
	return core.Errorf(core.Unavailable, "%d snapshots of what agents work on are kept on %s: they can be restored, and forked from, when an engine there has the tenant", n, on)
}
