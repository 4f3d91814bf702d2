package record

import (
	"bytes"
	"context"
	"errors"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Query is what a page of a kind shows. The greatest keys come first: of
// numbered kinds the newest records.
type Query[T any] struct {
	// Filter is checked. Its page counts, and of a numbered kind its times: those
	// of a record's making.
	core.Filter
	// Along is the bucket of an index, "" for none, and Word the word by which it
	// finds the records.
	Along store.Bucket
	Word  string
	// Match lets a record pass; nil lets all, and the total needs no look at them.
	Match func(*T) (bool, error)
	// Hints are in the bytes of each record that Match lets pass.
	Hints [][]byte
}

// Page reads one page. What it costs without Match and Along does not depend on
// how many records there are.
func (k *Kind[T]) Page(ctx context.Context, tx store.Tx, q Query[T]) (core.Page[T], error) {
	total, skip := -1, q.Offset()
	bucket, under := k.Bucket, Key(nil)
	if q.Along != "" {
		bucket, under = q.Along, Text(q.Word)
	}
	from, to := under.Under()
	untimed := q.Since.IsZero() && q.Until.IsZero()
	if k.Number != nil && (q.Along == "" || !untimed) {
		lo, hi, err := k.Span(tx, q.Filter)
		if err != nil {
			return core.Page[T]{}, err
		}
		if q.Along == "" && q.Match == nil {
			total, skip = int(hi-lo), 0
			hi -= min(hi-lo, uint64(q.Offset()))
		}
		from, to = append(Key(nil), under...).Seq(lo), append(Key(nil), under...).Seq(hi)
	} else if q.Match == nil {
		if total = int(k.Count(tx)); q.Along != "" {
			total = int(k.Counted(tx, k.counter(q.Along), q.Word))
		}
	}
	var items []T
	n, seen := 0, 0
	var bad error
	err := tx.Scan(bucket, from, to, true, func(key, data []byte) bool {
		if seen++; seen%1024 == 0 && ctx.Err() != nil {
			bad = ctx.Err()
			return false
		}
		if total >= 0 && (n < skip || len(items) == q.Size) {
			n++
			return len(items) < q.Size
		}
		if bucket != k.Bucket {
			key = key[len(under):]
			if data, bad = tx.Get(k.Bucket, key); data == nil {
				return bad == nil
			}
		}
		var v *T
		if v, bad = k.matched(&q, tx.Tenant(), key, data); v == nil {
			return bad == nil
		}
		if n >= skip && len(items) < q.Size {
			items = append(items, *v)
		}
		n++
		return total < 0 || len(items) < q.Size
	})
	if total < 0 {
		total = n
	}
	return core.NewPage(items, q.Filter, total), errors.Join(err, bad)
}

// matched is a stored record if it is wanted, else nil.
func (k *Kind[T]) matched(q *Query[T], tenant string, key, data []byte) (*T, error) {
	for _, h := range q.Hints {
		if !bytes.Contains(data, h) {
			return nil, nil
		}
	}
	v, err := k.decode(tenant, key, data)
	if err != nil || q.Match == nil {
		return v, err
	}
	if ok, err := q.Match(v); !ok || err != nil {
		return nil, err
	}
	return v, nil
}

// counter begins the names of an index's counters.
func (k *Kind[T]) counter(index store.Bucket) string {
	for i := range k.Indexes {
		if k.Indexes[i].Bucket == index {
			return k.Indexes[i].Count
		}
	}
	return ""
}

// Span is the half-open range of the numbers of the records that were made
// within the filter's times, of a numbered kind: greater ones were made later.
func (k *Kind[T]) Span(tx store.Tx, f core.Filter) (lo, hi uint64, err error) {
	n := int(k.Count(tx))
	first := k.Newest(tx) + 1 - uint64(n)
	from, to, err := f.Span(n, func(i int) (time.Time, error) {
		v, err := k.Glance(tx, Seq(first+uint64(i)))
		if err == nil && v == nil {
			err = core.Errorf(core.Internal, "%s number %d is missing", k.Noun, first+uint64(i))
		}
		if err != nil {
			return time.Time{}, err
		}
		return *k.Head(v).Created, nil
	})
	return first + uint64(from), first + uint64(to), err
}
