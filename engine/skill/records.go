package skill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// records are those of one kind: numbered from 1 without gaps, and named by
// UUIDs that hold the number.
type records[T any] struct {
	bucket store.Bucket // number → record
	kind   string       // "subagent"
	field  string       // "agent_id"
	id     func(*T) string
}

func subagents() records[Subagent] {
	return records[Subagent]{bAgent, "subagent", "agent_id", func(a *Subagent) string { return a.AgentID }}
}

func executions() records[Execution] {
	return records[Execution]{bExec, "execution", "execution_id", func(e *Execution) string { return e.ExecutionID }}
}

// load reads a record of the tenant by its id. The whole id counts: its random
// part is no ornament.
func (r records[T]) load(tx store.Tx, id string) (*T, error) {
	n, err := core.LocalUUID(r.field, tx.Tenant(), id)
	if err != nil {
		return nil, err
	}
	v, err := r.at(tx, n)
	if err != nil {
		return nil, err
	}
	if v == nil || r.id(v) != id {
		return nil, core.Missing(r.kind, id)
	}
	return v, nil
}

// at reads a record by its number; nil when there is none.
func (r records[T]) at(tx store.Tx, n uint64) (*T, error) {
	data, err := tx.Get(r.bucket, numberKey(n))
	if err != nil || data == nil {
		return nil, err
	}
	v, err := r.decode(data)
	if err != nil {
		return nil, &core.Damaged{Noun: r.kind, Key: fmt.Sprint("number ", n), Err: err}
	}
	return v, nil
}

func (r records[T]) decode(data []byte) (*T, error) {
	v := new(T)
	if err := core.DecodeStored(bytes.Clone(data), v); err != nil {
		return nil, fmt.Errorf("decode %s: %w", r.kind, err)
	}
	return v, nil
}

// each calls fn for every record, oldest first.
func (r records[T]) each(tx store.Tx, fn func(*T) error) error {
	var bad error
	err := tx.Scan(r.bucket, nil, nil, false, func(_, value []byte) bool {
		var v *T
		if v, bad = r.decode(value); bad == nil {
			bad = fn(v)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}

// along calls fn for the records that an index lists between two of its keys,
// which end in their numbers.
func (r records[T]) along(tx store.Tx, index store.Bucket, from, to []byte, fn func(*T) error) error {
	var damaged []error
	var stop error
	err := tx.Scan(index, from, to, false, func(key, _ []byte) bool {
		v, err := r.at(tx, numberAt(key))
		switch {
		case len(core.DamagedIn(err)) > 0:
			damaged = append(damaged, err)
		case err != nil:
			stop = err
		case v != nil:
			stop = fn(v)
		}
		return stop == nil
	})
	return errors.Join(append(damaged, err, stop)...)
}

// numberKey is a number as a key: 8 bytes, big-endian.
func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// numberAt is the number that a key ends in.
func numberAt(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// numberSpan is the range of keys that begin with a number.
func numberSpan(n uint64) (from, to []byte) { return numberKey(n), numberKey(n + 1) }

// wordKey puts a word before a number. Words hold no zero byte.
func wordKey(word string, n uint64) []byte {
	b := make([]byte, 0, len(word)+9)
	b = append(append(b, word...), 0)
	return binary.BigEndian.AppendUint64(b, n)
}

// wordSpan is the range of keys that begin with a word and a zero byte.
func wordSpan(word string) (from, to []byte) {
	return append([]byte(word), 0), append([]byte(word), 1)
}

// taskNumber is the number in a task's id, which the swarm made.
func taskNumber(id string) uint64 {
	_, _, n, _ := core.ParseID(id)
	return n
}
