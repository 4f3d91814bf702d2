// Package record is the one way to keep a noun. A Kind declares it once: what
// its records are called, what identifies one, what the audit log says of it,
// by what else it is found and how many there may be. From the declaration
// come loading, listing, saving, removing, following and reconciling.
//
// A save is one transaction: the record, its indexes, its count, an audit event
// that carries the digest of the whole stored record, and the change that
// watchers get after the commit. A record that can't be read is an error that
// names it, and hides no other.
package record

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Kind declares a noun whose records are T. It is not changed once it is used.
type Kind[T any] struct {
	Noun    string       // in errors: "operator"
	Subject string       // in the audit log and in changes; "" is the Noun
	Bucket  store.Bucket // key → record; its name is also that of the count
	// ID identifies a record in its tenant.
	ID func(*T) string
	// Key is where the record of an id is kept, nil when no record can have that
	// id. Without it the id is the key.
	Key func(tenant, id string) Key
	// Name is the id that a key stands for, for errors about records that can't
	// be decoded. Without it they are named by the key.
	Name func(tenant string, key []byte) string
	// Head points to the members that saving fills in.
	Head func(*T) Head
	// Stored is what the store keeps, where that is not the record's own JSON;
	// it must decode into a T. nil is the record.
	Stored func(*T) any
	// State is what events say of a record in words, a JSON object that holds no
	// secret; nil says nothing more than the digest of all that is stored.
	State func(*T) any
	// Limit is the most a tenant may have; 0 is any number.
	Limit   int
	Indexes []Index[T]

	// Ledger is what the methods that take a caller or a tenant work on.
	Ledger *audit.Ledger
	// Follow learns of every record: of those that are there when Read is
	// called, and of each that a commit saved, or removed (nil), in commit order
	// on the store's goroutine. It must be quick and must not change the record.
	Follow func(tenant, id string, v *T)
	// Unread learns in Read of each record that can't be decoded, by its name,
	// so that what it may have held back stays held back; nil ignores it.
	Unread func(tenant, name string)
}

// Head are the members of a record that saving fills in; those that it has not
// are nil.
type Head struct {
	Tenant           *string
	Created, Updated *time.Time
	Seq              *uint64 // of the newest audit event about the record
}

// Index finds records by something else than their id.
type Index[T any] struct {
	Bucket store.Bucket
	// Keys are the keys under which a record is found, none or more; the value
	// is the record's id.
	Keys func(*T) []Key
}

// Subject and count of a kind.
func (k *Kind[T]) subject() string {
	if k.Subject != "" {
		return k.Subject
	}
	return k.Noun
}

// Count is how many records the tenant has.
func (k *Kind[T]) Count(tx store.Tx) int64 { return tx.Counter(string(k.Bucket)) }

func (k *Kind[T]) encode(v *T) (data []byte, err error) {
	if k.Stored != nil {
		data, err = core.Encode(k.Stored(v))
	} else {
		data, err = core.Encode(v)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", k.Noun, k.ID(v), err)
	}
	return data, nil
}

func (k *Kind[T]) decode(tenant string, key, data []byte) (*T, error) {
	v := new(T)
	if err := core.DecodeStored(data, v); err != nil {
		return nil, k.damaged(tenant, key, err)
	}
	if id := k.ID(v); !bytes.Equal(k.key(tenant, id), key) {
		return nil, k.damaged(tenant, key, fmt.Errorf("it says that it is %q", id))
	}
	return v, nil
}

func (k *Kind[T]) damaged(tenant string, key []byte, err error) error {
	name := string(key)
	if k.Name != nil {
		name = k.Name(tenant, key)
	}
	return &core.Damaged{Noun: k.Noun, Key: name, Err: err}
}

func (k *Kind[T]) key(tenant, id string) Key {
	if k.Key != nil {
		return k.Key(tenant, id)
	}
	return Key(id)
}

// state is what an event says of a record: what the kind wants said.
func (k *Kind[T]) state(v *T) any {
	if k.State == nil {
		return nil
	}
	return k.State(v)
}

// Load reads one record; nil when there is none.
func (k *Kind[T]) Load(tx store.Tx, id string) (*T, error) {
	key := k.key(tx.Tenant(), id)
	if len(key) == 0 || len(key) > store.MaxKey {
		return nil, nil
	}
	data, err := tx.Get(k.Bucket, key)
	if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", k.Noun, id, err)
	}
	if data == nil {
		return nil, nil
	}
	return k.decode(tx.Tenant(), key, data)
}

// Need reads one record; core.NotFound when there is none.
func (k *Kind[T]) Need(tx store.Tx, id string) (*T, error) {
	v, err := k.Load(tx, id)
	if err == nil && v == nil {
		err = core.Missing(k.Noun, id)
	}
	return v, err
}

// maxNamed bounds the damaged records that one error names.
const maxNamed = 10

// Each visits the records in the order of their keys, until visit fails. Those
// that can't be decoded are passed over and named in the error, once all others
// have been visited.
func (k *Kind[T]) Each(tx store.Tx, visit func(*T) error) error {
	return k.each(tx, visit, func(error) {})
}

// each is Each; unread hears of every record that can't be decoded.
func (k *Kind[T]) each(tx store.Tx, visit func(*T) error, unread func(error)) error {
	var damaged []error
	var stop error
	bad := 0
	err := tx.Scan(k.Bucket, nil, nil, false, func(key, data []byte) bool {
		v, err := k.decode(tx.Tenant(), key, data)
		if err != nil {
			unread(err)
			if bad++; bad <= maxNamed {
				damaged = append(damaged, err)
			}
			return true
		}
		stop = visit(v)
		return stop == nil
	})
	if bad > maxNamed {
		damaged = append(damaged, fmt.Errorf("%d more can't be read", bad-maxNamed))
	}
	return errors.Join(append(damaged, err, stop)...)
}
