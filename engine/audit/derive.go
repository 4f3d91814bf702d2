package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Deriver is an Auditable that also knows what follows from audited rows. It
// visits each row that derived buckets must have, and each counter that is not
// zero, from audited rows alone. Rows come in any order, each once. Where an audited
// row can't be read, which is told of that row, Derive fails with a core.Damaged: what
// follows from it is not compared.
type Deriver interface {
	Auditable
	// Derives names those buckets and counters as Declare wants them.
	Derives() []string
	Derive(tx store.Tx, d *Derivation) error
}

// Register has Reconcile compare records of these kinds, and declares what the
// derivers among them derive. Services call it before their first change.
func (l *Ledger) Register(kinds ...Auditable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range kinds {
		name := k.Subject()
		if d, ok := k.(Deriver); ok {
			l.declare(Derived, d.Derives())
			name += " " + strings.Join(d.Derives(), " ")
		}
		l.kinds[name] = k // made anew over the same ledger, it takes the place of the former
	}
}

// Derivation is told what must be there.
type Derivation struct {
	row func(b store.Bucket, key, value []byte)
}

// Row must be in a derived bucket.
func (d *Derivation) Row(b store.Bucket, key, value []byte) { d.row(b, key, value) }

// Count must be the value of a derived counter.
func (d *Derivation) Count(name string, n int64) {
	if n != 0 {
		d.row(counters, []byte(name), strconv.AppendInt(nil, n, 10))
	}
}

// rows compares what the tenant holds with what the log and the derivers say:
// each row of an audited bucket with its digest, and each derived bucket as a
// whole first, by a sum over its rows that their order doesn't matter for.
func (r *replay) rows(ctx context.Context, tx store.Tx, declared *classes, derivers []Deriver) error {
	known := declared.derivedBy(derivers)
	if err := r.additional(tx); err != nil {
		return err
	}
	inventory, ok := tx.(store.Inventory)
	if !ok {
		return fmt.Errorf("reconcile: %T can't list what it holds", tx)
	}
	buckets, err := inventory.Buckets()
	if err != nil {
		return err
	}
	sums := map[string]uint64{} // by bucket, or by counter; what is there less what must be
	var text []byte
	visit := func(b store.Bucket, class Class, key, value []byte) {
		switch class {
		case Audited:
			if b != counters {
				text = appendSum(text[:0], sha256.Sum256(value))
				value = text
			}
			r.row(appendKey(append(append([]byte{}, b...), ' '), key), value)
		case Derived:
			if b != counters || known.counter(string(key)) == Derived {
				sums[string(b)] += r.hash(b, key, value)
			}
		}
	}
	for _, b := range buckets {
		if class := declared.bucket(b); class != Volatile && !provenElsewhere(b) && class == known.bucket(b) {
			n := 0
			err := tx.Scan(b, nil, nil, false, func(key, value []byte) (bool, error) {
				n++
				visit(b, class, key, value)
				if n%1024 == 1 {
					return true, ctx.Err()
				}
				return true, nil
			})
			if err != nil {
				return err
			}
		}
	}
	err = inventory.Counters(func(name string, n int64) {
		if n != 0 {
			visit(counters, declared.counter(name), []byte(name), strconv.AppendInt(nil, n, 10))
		}
	})
	if err != nil {
		return err
	}
	expect := func(row func(b store.Bucket, key, value []byte)) error {
		for _, d := range derivers {
			if err := d.Derive(tx, &Derivation{row}); err != nil && len(core.DamagedIn(err)) == 0 {
				return err
			}
		}
		return nil
	}
	unsure := map[string]bool{}
	for _, d := range derivers {
		err := d.Derive(tx, &Derivation{func(b store.Bucket, key, value []byte) { sums[string(b)] -= r.hash(b, key, value) }})
		if damaged := core.DamagedIn(err); len(damaged) > 0 {
			for _, name := range append(d.Derives(), string(counters)) {
				unsure[name] = true
			}
			r.unreadable(d.Subject(), damaged[0].Key, damaged[0])
		} else if err != nil {
			return err
		}
	}
	for b, sum := range sums {
		if sum != 0 && !unsure[b] {
			if err := r.different(tx, inventory, known, store.Bucket(b), expect); err != nil {
				return err
			}
		}
	}
	return nil
}

// provenElsewhere are the log's own buckets: verify proves what they hold.
func provenElsewhere(b store.Bucket) bool {
	return b == Events || b == heads || b == tree || b == base || b == issued
}

// additional lists the rows of the log's own buckets that verify has no use
// for, and so would not miss either.
func (r *replay) additional(tx store.Tx) error {
	s, err := readSealing(tx)
	if len(core.DamagedIn(err)) > 0 {
		return nil // fromBase told of it
	}
	if err != nil {
		return err
	}
	next := uint64(tlog.StoredHashIndex(0, int64(s.Upto)))
	stay, err := staying(tx, s.Upto)
	if err != nil {
		return err
	}
	whole := func(key, value []byte) (bool, error) {
		if _, stays := slices.BinarySearch(stay, seqOf(key)); stays && len(key) == 8 && len(value) == tlog.HashSize {
			return true, nil
		}
		if len(key) != 8 || binary.BigEndian.Uint64(key) != next || len(value) == 0 || len(value)%tlog.HashSize != 0 {
			r.delta(derived(tree, key, "", value))
			return true, nil
		}
		next += uint64(len(value) / tlog.HashSize)
		return true, nil
	}
	known := func(key, value []byte) (bool, error) {
		if !slices.ContainsFunc([][]byte{checkpointKey, verifiersKey, sealedKey, endorsedKey}, func(k []byte) bool { return bytes.Equal(key, k) }) {
			r.delta(derived(heads, key, "", value))
		}
		return true, nil
	}
	size := func(key, value []byte) (bool, error) {
		if len(key) != 8 || len(value) != tlog.HashSize || seqOf(key) > uint64(tx.Counter(counter)) {
			r.delta(derived(issued, key, "", value))
		}
		return true, nil
	}
	return errors.Join(tx.Scan(issued, nil, nil, false, size), tx.Scan(tree, nil, nil, false, whole), tx.Scan(heads, nil, nil, false, known))
}

// derivedBy is what the derivers that were given derive: other derived buckets
// are left out.
func (c *classes) derivedBy(derivers []Deriver) *classes {
	var known *classes
	for _, d := range derivers {
		known = known.with(Derived, d.Derives())
	}
	return known
}

func (r *replay) hash(b store.Bucket, key, value []byte) uint64 {
	r.name = append(append(r.name[:0], b...), 0)
	r.name = append(strconv.AppendInt(r.name, int64(len(key)), 10), ' ')
	r.name = append(append(r.name, key...), value...)
	return maphash.Bytes(r.seed, r.name)
}

// different names the rows in which a derived bucket is not as it must be. It
// keeps that bucket's rows in memory.
func (r *replay) different(tx store.Tx, inventory store.Inventory, known *classes, b store.Bucket, expect func(func(store.Bucket, []byte, []byte)) error) error {
	want := map[string][]byte{}
	err := expect(func(of store.Bucket, key, value []byte) {
		if of == b {
			want[string(key)] = bytes.Clone(value)
		}
	})
	if err != nil {
		return err
	}
	check := func(key, value []byte) (bool, error) {
		should, ok := want[string(key)]
		switch delete(want, string(key)); {
		case !ok:
			r.delta(derived(b, key, "", value))
		case !bytes.Equal(should, value):
			r.delta(derived(b, key, shown(should), value))
		}
		return true, nil
	}
	if b == counters {
		err = inventory.Counters(func(name string, n int64) {
			if n != 0 && known.counter(name) == Derived {
				_, _ = check([]byte(name), strconv.AppendInt(nil, n, 10))
			}
		})
	} else {
		err = tx.Scan(b, nil, nil, false, check)
	}
	for key, should := range want {
		r.delta(derived(b, []byte(key), shown(should), nil))
	}
	return err
}

func derived(b store.Bucket, key []byte, should string, value []byte) Delta {
	d := Delta{Subject: string(b), ID: readable(string(appendKey(nil, key))), Field: "row", Log: should}
	if value != nil {
		d.Store = shown(value)
	}
	return d
}

// shown is a value as a delta has it, never "".
func shown(value []byte) string {
	if slices.ContainsFunc(value, func(c byte) bool { return c < ' ' || c > '~' }) || len(value) == 0 {
		return fmt.Sprintf("%q", core.Clip(string(value)))
	}
	return core.Clip(string(value))
}
