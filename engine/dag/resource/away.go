package resource

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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
