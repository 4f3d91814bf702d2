package resource

import (
	"context"
	"errors"
	"maps"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/place"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// What is looked after here, in a tenant. The record tells the same and more,
// but may have been brought from elsewhere.
const (
	resources record.Rows[kept]     = "resource"          // by id
	heldBy    record.Rows[struct{}] = "resource.held"     // agent, resource id
	snapshots record.Rows[shot]     = "resource.snapshot" // by id
	shots     record.Rows[string]   = "resource.shots"    // resource id, n → snapshot id
	states    record.Rows[state]    = "resource.state"    // resource id, pos
	forks     record.Rows[string]   = "resource.fork"     // intent of a fork whose agent is there → name
	lost      record.Rows[Hold]     = "resource.lost"     // that intent, id of a resource that its source lost to the fork
)

// kept is a resource that is looked after.
type kept struct {
	Resource dag.Resource    `json:"resource"`
	Place    place.Place     `json:"place,omitempty"` // where it was seen first, on a database
	Holders  map[string]Hold `json:"holders"`         // by agent
}

// Hold is how an agent has a resource.
type Hold struct {
	Mode  dag.Mode `json:"mode"`
	Mount string   `json:"mount,omitempty"`
	Since dag.Time `json:"since"`
}

// shot is a snapshot that was taken here.
type shot struct {
	Snapshot dag.Snapshot `json:"snapshot"`
	Resource dag.Resource `json:"resource"` // as it was then
	AgentID  string       `json:"agent_id"`
	Notes    []string     `json:"notes,omitempty"`
	Auto     bool         `json:"auto,omitzero"`   // nobody asked for it: it goes when it is old
	N        uint64       `json:"n"`               // its place among the snapshots of the tenant
	Place    place.Place  `json:"place,omitempty"` // where it is kept, on a database
}

// state says that a resource was so at a place of the record.
type state struct {
	Snapshot string `json:"snapshot"`
	During   bool   `json:"during,omitzero"` // while a call was under way
}

// log notes in the log what changed about a resource.
func log(tx *audit.Tx, what, resource string, detail map[string]any) error {
	_, err := tx.Record(audit.Entry{Type: "resource." + what, Subject: "resource", ID: resource, Detail: detail})
	return err
}

// keptIn reads a resource, nil when it is not looked after.
func keptIn(tx store.Tx, id string) (*kept, error) { return rowIn(tx, resources, id) }

// shotIn reads a snapshot, nil when it is not here.
func shotIn(tx store.Tx, id string) (*shot, error) { return rowIn(tx, snapshots, id) }

func rowIn[T any](tx store.Tx, rows record.Rows[T], id string) (*T, error) {
	row, there, err := rows.Get(tx, record.Key(id))
	if err != nil || !there {
		return nil, err
	}
	return &row, nil
}

// kept reads a resource that is looked after.
func (r *Resources) kept(ctx context.Context, tenant, id string) (kept, error) {
	return rowOf(ctx, r, tenant, resources, "resource", id)
}

func (r *Resources) shot(ctx context.Context, tenant, id string) (shot, error) {
	return rowOf(ctx, r, tenant, snapshots, "snapshot", id)
}

// rowOf reads a row of the book that must be there; what names it in errors.
func rowOf[T any](ctx context.Context, r *Resources, tenant string, rows record.Rows[T], what, id string) (row T, err error) {
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		found, there, err := rows.Get(tx, record.Key(id))
		if err == nil && !there {
			err = core.Missing(what, id).With("field", what)
		}
		row = found
		return err
	})
	return row, audit.Explain("read a "+what, err)
}

// held are the resources that an agent has, of those looked after.
func (r *Resources) held(ctx context.Context, tenant, agent string) (all []kept, err error) {
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		all, err = heldIn(tx, agent)
		return err
	})
	return all, audit.Explain("list the resources", err)
}

func heldIn(tx store.Tx, agent string) (all []kept, err error) {
	err = heldBy.Each(tx, record.Text(agent), func(id record.Parts, _ struct{}) (bool, error) {
		k, err := keptIn(tx, id.Text())
		if k != nil {
			all = append(all, *k)
		}
		return err == nil, err
	})
	return all, err
}

// save writes a resource with its holders.
func save(tx store.Tx, k kept) error { return resources.Put(tx, record.Key(k.Resource.ID), k) }

// hold notes that an agent has a resource from now on, or no longer.
func hold(tx *audit.Tx, k *kept, agent string, h *Hold) error {
	what := "detached"
	if h != nil {
		what = "attached"
	}
	if err := log(tx, what, k.Resource.ID, map[string]any{"agent_id": agent, "name": k.Resource.Name}); err != nil {
		return err
	}
	key := record.Text(agent).Last(k.Resource.ID)
	holders := maps.Clone(k.Holders)
	if holders == nil {
		holders = map[string]Hold{}
	}
	k.Holders = holders
	if h == nil {
		delete(holders, agent)
		return errors.Join(heldBy.Delete(tx, key), save(tx, *k))
	}
	holders[agent] = *h
	return errors.Join(heldBy.Put(tx, key, struct{}{}), save(tx, *k))
}

// stateAt finds the states next to a place of the record: the newest up to it,
// and the oldest after it. A state whose snapshot is gone is none.
func stateAt(tx store.Tx, resource string, pos uint64) (before, after *state, beforeAt, afterAt uint64, err error) {
	read := func(from, to uint64, reverse bool) (found *state, at uint64, err error) {
		err = tx.Scan(store.Bucket(states), record.Text(resource).Seq(from), record.Text(resource).Seq(to), reverse, func(key, _ []byte) (bool, error) {
			s, _, err := states.Get(tx, key)
			if err != nil {
				return false, err
			}
			if _, there, err := snapshots.Get(tx, record.Key(s.Snapshot)); err != nil || !there {
				return err == nil, err
			}
			found, at = &s, record.LastSeq(key)
			return false, nil
		})
		return found, at, err
	}
	if before, beforeAt, err = read(0, pos+1, true); err != nil {
		return nil, nil, 0, 0, err
	}
	after, afterAt, err = read(pos+1, ^uint64(0), false)
	return before, after, beforeAt, afterAt, err
}

// statesOf are the keys of the states of a resource that a snapshot holds.
func statesOf(tx store.Tx, resource, snapshot string) (keys []record.Key, err error) {
	err = states.Each(tx, record.Text(resource), func(pos record.Parts, s state) (bool, error) {
		if s.Snapshot == snapshot {
			keys = append(keys, record.Text(resource).Seq(pos.Seq()))
		}
		return true, nil
	})
	return keys, err
}
