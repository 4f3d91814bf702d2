package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Rows is a bucket of values that have no history of their own: the event of
// the change that wrote them tells of them. Numbers are kept in eight bytes,
// texts, bytes and JSON as they are, anything else as its JSON.
type Rows[V any] store.Bucket

// Get reads one value; false when there is none.
func (r Rows[V]) Get(tx store.Tx, key Key) (v V, found bool, err error) {
	data, err := r.Data(tx, key)
	if err != nil || data == nil {
		return v, false, err
	}
	v, err = r.decode(key, data)
	return v, err == nil, err
}

// Data reads one value as it is stored, nil when there is none. It is the store's,
// while the transaction lasts.
func (r Rows[V]) Data(tx store.Tx, key Key) ([]byte, error) { return readRow(tx, string(r), key) }

func readRow(tx store.Tx, bucket string, key Key) ([]byte, error) {
	data, err := tx.Get(store.Bucket(bucket), key)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return nil, &core.Damaged{Noun: bucket, Key: string(key), Err: err}
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", bucket, err)
	}
	return data, nil
}

// Put writes one value. Those of derived rows go to the Derived of an audit.Tx.
func (r Rows[V]) Put(tx store.Tx, key Key, v V) error {
	row, err := r.Row(key, v)
	if err != nil {
		return err
	}
	return row.Put(tx)
}

// Row is a value that is ready to be written.
type Row struct {
	bucket store.Bucket
	key    Key
	data   []byte
}

// Row makes one value ready, where encoding it in the transaction would hold up
// others.
func (r Rows[V]) Row(key Key, v V) (Row, error) {
	data, err := r.encode(v)
	return Row{store.Bucket(r), key, data}, err
}

// Put writes the value.
func (r Row) Put(tx store.Tx) error { return tx.Put(r.bucket, r.key, r.data) }

// PutNew writes the value unless there is one: its key says all that it says.
func (r Row) PutNew(tx store.Tx) error {
	if there, err := tx.Get(r.bucket, r.key); err != nil || there != nil {
		return err
	}
	return r.Put(tx)
}

// Expect tells a derivation of a value that must be there.
func (r Rows[V]) Expect(d *audit.Derivation, key Key, v V) error {
	data, err := r.encode(v)
	if err == nil {
		d.Row(store.Bucket(r), key, data)
	}
	return err
}

func (r Rows[V]) encode(v V) ([]byte, error) { return encodeRow(string(r), v) }

func encodeRow(bucket string, v any) ([]byte, error) {
	switch v := v.(type) {
	case uint64:
		return Seq(v), nil
	case string:
		return []byte(v), nil
	case core.Raw:
		return v, nil
	case []byte:
		return v, nil
	case struct{}: // the key says it all
		return nil, nil
	}
	data, err := core.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode for %s: %w", bucket, err)
	}
	return data, nil
}

// Delete removes one value; none is fine.
func (r Rows[V]) Delete(tx store.Tx, key Key) error { return tx.Delete(store.Bucket(r), key) }

// Each visits the values under a key in order, until visit returns false or
// fails. rest is what the keys have more.
func (r Rows[V]) Each(tx store.Tx, under Key, visit func(rest Parts, v V) (more bool, err error)) error {
	return r.Within(tx, under, nil, nil, false, func(rest Parts, f Found[V]) (bool, error) {
		v, err := f.Value()
		if err != nil {
			return false, err
		}
		return visit(rest, v)
	})
}

// Found is a value as it is stored.
type Found[V any] struct {
	Data []byte // the store's, while the transaction lasts
	key  Key
	rows Rows[V]
}

// Value decodes the value.
func (f Found[V]) Value() (V, error) { return f.rows.decode(f.key, f.Data) }

// Within visits the values under a key, until visit returns false or fails: those
// whose keys have more from one on and below another, nil for no bound, the
// greatest first if back.
func (r Rows[V]) Within(tx store.Tx, under, from, to Key, back bool, visit func(rest Parts, f Found[V]) (more bool, err error)) error {
	return scanWithin(tx, store.Bucket(r), under, from, to, back, func(key, data []byte) (bool, error) {
		return visit(key[len(under):], Found[V]{data, key, r})
	})
}

func scanWithin(tx store.Tx, b store.Bucket, under, from, to Key, back bool, visit func(key, data []byte) (more bool, err error)) error {
	lo, hi := under.Under()
	if from != nil {
		lo = slices.Concat(under, from)
	}
	if to != nil {
		hi = slices.Concat(under, to)
	}
	return tx.Scan(b, lo, hi, back, visit)
}

// Drop removes all under a key.
func (r Rows[V]) Drop(tx store.Tx, under Key) error { return dropRows(tx, store.Bucket(r), under) }

func dropRows(tx store.Tx, b store.Bucket, under Key) error {
	var keys []Key
	from, to := under.Under()
	err := tx.Scan(b, from, to, false, func(key, _ []byte) (bool, error) {
		keys = append(keys, append(Key(nil), key...))
		return true, nil
	})
	for _, key := range keys {
		err = errors.Join(err, tx.Delete(b, key))
	}
	return err
}

func (r Rows[V]) decode(key, data []byte) (v V, err error) {
	err = decodeRow(string(r), key, data, &v)
	return v, err
}

func decodeRow(bucket string, key, data []byte, to any) error {
	switch to := to.(type) {
	case *uint64:
		if len(data) != 8 {
			return &core.Damaged{Noun: bucket, Key: string(key), Err: fmt.Errorf("%d bytes, not 8", len(data))}
		}
		*to = binary.BigEndian.Uint64(data)
	case *string:
		*to = string(data)
	case *core.Raw:
		*to = append(core.Raw{}, data...)
	case *[]byte:
		*to = append([]byte{}, data...)
	case *struct{}:
	default:
		if err := core.DecodeStored(data, to); err != nil {
			return &core.Damaged{Noun: bucket, Key: string(key), Err: err}
		}
	}
	return nil
}

// Fetch reads one row into v where no Kind keeps it; core.NotFound when it is
// not there, core.Damaged when it can't be read. noun and id name it.
func Fetch(tx store.Tx, b store.Bucket, key []byte, noun, id string, v any) error {
	data, err := tx.Get(b, key)
	if errors.Is(err, store.ErrCorrupt) {
		return &core.Damaged{Noun: noun, Key: id, Err: err}
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", noun, id, err)
	}
	if data == nil {
		return core.Missing(noun, id)
	}
	if err := core.DecodeStored(data, v); err != nil {
		return &core.Damaged{Noun: noun, Key: id, Err: err}
	}
	return nil
}
