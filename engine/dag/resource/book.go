package resource

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/store"
)

// Buckets of a tenant: what is looked after here. The record tells the same
// and more, but may have been brought from elsewhere.
const (
	bResource store.Bucket = "resource"          // id → kept
	bHeld     store.Bucket = "resource.held"     // agent, 0, resource id → nothing
	bSnapshot store.Bucket = "resource.snapshot" // id → shot
	bShots    store.Bucket = "resource.shots"    // resource id, 0, n → snapshot id
	bState    store.Bucket = "resource.state"    // resource id, 0, pos → state
	bFork     store.Bucket = "resource.fork"     // intent of a fork whose agent is there → name
	bLost     store.Bucket = "resource.lost"     // that intent, 0, id of a resource that its source lost to the fork → Hold
)

// kept is a resource that is looked after.
type kept struct {
	Resource dag.Resource    `json:"resource"`
	Holders  map[string]Hold `json:"holders"` // by agent
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
	Auto     bool         `json:"auto,omitzero"` // nobody asked for it: it goes when it is old
	N        uint64       `json:"n"`             // its place among the snapshots of the tenant
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

// numberKey leads to an entry of a resource's list.
func numberKey(resource string, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(resource), 0), pos)
}

// pairKey leads to what a name has of an id.
func pairKey(name, id string) []byte { return append(append([]byte(name), 0), id...) }

func get[T any](tx store.Tx, b store.Bucket, key, what string) (*T, error) {
	data, err := tx.Get(b, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", what, key, err)
	}
	if data == nil {
		return nil, nil
	}
	v := new(T)
	if err := core.DecodeStored(data, v); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", what, key, err)
	}
	return v, nil
}

func put(tx store.Tx, b store.Bucket, key []byte, v any) error {
	data, err := core.Encode(v)
	if err != nil {
		return fmt.Errorf("encode for %s: %w", b, err)
	}
	return tx.Put(b, key, data)
}

// kept reads a resource that is looked after.
func (r *Resources) kept(ctx context.Context, tenant, id string) (out kept, err error) {
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		k, err := get[kept](tx, bResource, id, "resource")
		if err == nil && k == nil {
			err = core.Missing("resource", id).With("field", "resource")
		}
		if err == nil {
			out = *k
		}
		return err
	})
	return out, explain("read a resource", err)
}

func (r *Resources) shot(ctx context.Context, tenant, id string) (out shot, err error) {
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		s, err := get[shot](tx, bSnapshot, id, "snapshot")
		if err == nil && s == nil {
			err = core.Missing("snapshot", id).With("field", "snapshot")
		}
		if err == nil {
			out = *s
		}
		return err
	})
	return out, explain("read a snapshot", err)
}

// held are the resources that an agent has, of those looked after.
func (r *Resources) held(ctx context.Context, tenant, agent string) (all []kept, err error) {
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		all, err = heldIn(tx, agent)
		return err
	})
	return all, explain("list the resources", err)
}

func heldIn(tx store.Tx, agent string) (all []kept, err error) {
	ids, err := below(tx, bHeld, agent)
	for _, id := range ids {
		k, err := get[kept](tx, bResource, id, "resource")
		if err != nil {
			return nil, err
		}
		if k != nil {
			all = append(all, *k)
		}
	}
	return all, err
}

// below are the ids that stand after a name in a bucket.
func below(tx store.Tx, b store.Bucket, name string) (ids []string, err error) {
	from := pairKey(name, "")
	err = tx.Scan(b, from, append([]byte(name), 1), false, func(key, _ []byte) bool {
		ids = append(ids, string(key[len(from):]))
		return true
	})
	return ids, err
}

// save writes a resource with its holders.
func save(tx store.Tx, k kept) error { return put(tx, bResource, []byte(k.Resource.ID), k) }

// hold notes that an agent has a resource from now on, or no longer.
func hold(tx *audit.Tx, k *kept, agent string, h *Hold) error {
	what := "detached"
	if h != nil {
		what = "attached"
	}
	if err := log(tx, what, k.Resource.ID, map[string]any{"agent_id": agent, "name": k.Resource.Name}); err != nil {
		return err
	}
	key := pairKey(agent, k.Resource.ID)
	holders := maps.Clone(k.Holders)
	if holders == nil {
		holders = map[string]Hold{}
	}
	k.Holders = holders
	if h == nil {
		delete(holders, agent)
		return errors.Join(tx.Delete(bHeld, key), save(tx, *k))
	}
	holders[agent] = *h
	return errors.Join(tx.Put(bHeld, key, []byte{}), save(tx, *k))
}

// stateAt finds the states next to a place of the record: the newest up to it,
// and the oldest after it. A state whose snapshot is gone is none.
func stateAt(tx store.Tx, resource string, pos uint64) (before, after *state, beforeAt, afterAt uint64, err error) {
	read := func(from, to uint64, reverse bool) (found *state, at uint64, err error) {
		var bad error
		err = tx.Scan(bState, numberKey(resource, from), numberKey(resource, to), reverse, func(key, data []byte) bool {
			var s state
			if bad = core.DecodeStored(data, &s); bad != nil {
				return false
			}
			var shot []byte
			if shot, bad = tx.Get(bSnapshot, []byte(s.Snapshot)); shot != nil {
				found, at = &s, binary.BigEndian.Uint64(key[len(key)-8:])
			}
			return bad == nil && found == nil
		})
		return found, at, errors.Join(err, bad)
	}
	if before, beforeAt, err = read(0, pos+1, true); err != nil {
		return nil, nil, 0, 0, err
	}
	after, afterAt, err = read(pos+1, ^uint64(0), false)
	return before, after, beforeAt, afterAt, err
}

// statesOf are the keys of the states of a resource that a snapshot holds.
func statesOf(tx store.Tx, resource, snapshot string) (keys [][]byte, err error) {
	var bad error
	err = tx.Scan(bState, numberKey(resource, 0), numberKey(resource, ^uint64(0)), false, func(key, data []byte) bool {
		var s state
		if bad = core.DecodeStored(data, &s); s.Snapshot == snapshot {
			keys = append(keys, bytes.Clone(key))
		}
		return bad == nil
	})
	return keys, errors.Join(err, bad)
}
