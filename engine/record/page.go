package record

import (
	"context"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Query is what a page of a kind shows. The greatest keys come first: of
// numbered kinds the newest records.
type Query[P any] struct {
	// Filter narrows the page as Fits says, and by times where the kind is numbered:
	// those of a record's making.
	Filter core.Filter
	// Along is the bucket of an index, "" for the first that the filter names a word
	// of, and Word the word by which it finds the records.
	Along store.Bucket
	Word  string
	// Among are the numbers that are looked at, in order; nil is all.
	Among []uint64
	// Match lets a record pass that fits; nil lets all. Where nothing else narrows,
	// the total needs no look at them.
	Match func(P) (bool, error)
	// Raw is a look at a stored record, before Match; nil lets all pass.
	Raw func(data []byte) bool
}

// narrow checks the filter, and leaves to Match what no index and no number tells.
func (q *Query[P]) narrow(k *Kind[P]) (err error) {
	if q.Filter, err = q.Filter.Check(); err != nil || k.Fits == nil {
		return err
	}
	f, also := q.Filter, q.Match
	for status := range strings.SplitSeq(f.Status, ",") {
		if f.Status != "" && k.Statuses != nil && !slices.Contains(k.Statuses, status) {
			return core.Invalid("status", status, strings.Join(k.Statuses, ", "))
		}
	}
	rest := f
	if k.Number != nil && k.head(fresh[P]()).Created != nil {
		rest.Since, rest.Until = time.Time{}, time.Time{}
	} else {
		q.Filter.Since, q.Filter.Until = time.Time{}, time.Time{}
	}
	for i := range k.Indexes {
		if x := &k.Indexes[i]; x.By != nil && q.Along == "" {
			if word := x.By(&rest); *word != "" && !strings.Contains(*word, ",") {
				q.Along, q.Word, *word = x.Bucket, *word, ""
			}
		}
	}
	if rest.Narrows() {
		q.Match = func(v P) (bool, error) {
			if fits := k.Fits(v, f); !fits || also == nil {
				return fits, nil
			}
			return also(v)
		}
	}
	return nil
}

// Find is Page in a transaction of its own.
func (k *Kind[P]) Find(ctx context.Context, tenant string, q Query[P]) (page core.Page[P], err error) {
	err = k.Ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		page, err = k.Page(ctx, tx, q)
		return err
	})
	return page, err
}

// Page reads one page. Records that can't be read are left out, and the ledger is
// told of them. What it costs without Match and Along does not depend on
// how many records there are.
func (k *Kind[P]) Page(ctx context.Context, tx store.Tx, q Query[P]) (core.Page[P], error) {
	if err := q.narrow(k); err != nil {
		return core.Page[P]{}, err
	}
	p := pager[P]{k: k, tx: tx, q: &q, total: -1, skip: q.Filter.Offset()}
	bucket, under := k.Bucket, Key(nil)
	if q.Along != "" {
		bucket, under = q.Along, Text(q.Word)
	}
	from, to := under.Under()
	lo, hi := uint64(0), uint64(0)
	if k.Number != nil && (q.Along == "" || !q.Filter.Since.IsZero() || !q.Filter.Until.IsZero()) {
		var err error
		if lo, hi, err = k.Span(tx, q.Filter); err != nil {
			return core.Page[P]{}, err
		}
		if q.Along == "" && q.Match == nil {
			p.total, p.skip = int(hi-lo), 0
			hi -= min(hi-lo, uint64(q.Filter.Offset()))
		}
		from, to = append(Key(nil), under...).Seq(lo), append(Key(nil), under...).Seq(hi)
	} else if q.Match == nil {
		if p.total = int(k.Count(tx)); q.Along != "" {
			p.total = int(k.Counted(tx, countOf(k.Indexes, q.Along), q.Word))
		}
	}
	visit := func(key, data []byte) (bool, error) {
		if p.seen++; p.seen%1024 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		return p.take(key[len(under):], data)
	}
	var err error
	if q.Among == nil {
		err = tx.Scan(bucket, from, to, true, visit)
	}
	for i, more := len(q.Among)-1, true; i >= 0 && more && err == nil; i-- {
		if n := q.Among[i]; lo <= n && n < hi {
			more, err = visit(Seq(n), nil)
		}
	}
	if p.total < 0 {
		p.total = p.n
	}
	return core.NewPage(p.items, q.Filter, p.total), err
}

// pager gathers a page.
type pager[P any] struct {
	k     *Kind[P]
	tx    store.Tx
	q     *Query[P]
	total int // -1 until it is counted
	skip  int // records before the page
	n     int // records that are wanted, so far
	seen  int // records that were looked at
	items []P
}

// take looks at the record at a key; data is nil where it is to be read. It
// returns false when the page is there.
func (p *pager[P]) take(key Key, data []byte) (more bool, err error) {
	if p.total >= 0 && p.n < p.skip {
		p.n++
		return true, nil
	}
	if p.q.Along != "" || p.q.Among != nil {
		if data, err = p.tx.Get(p.k.Bucket, key); err != nil || data == nil {
			return err == nil, err
		}
	}
	if p.q.Raw != nil && !p.q.Raw(data) {
		return true, nil
	}
	v, err := p.k.decode(p.tx.Tenant(), key, data)
	switch {
	case err != nil: // damaged: it hides no other
		p.k.Ledger.Unread(p.tx.Tenant(), p.k.subject(), err)
		if p.q.Match != nil {
			return true, nil
		}
	case p.q.Match != nil:
		if ok, err := p.q.Match(v); !ok || err != nil {
			return err == nil, err
		}
	}
	if !isNil(v) && p.n >= p.skip && p.n < p.skip+p.q.Filter.Size {
		p.items = append(p.items, v)
	}
	p.n++
	return p.total < 0 || p.n < p.skip+p.q.Filter.Size, nil
}

// countOf begins the names of an index's counters.
func countOf[P any](indexes []Index[P], index store.Bucket) string {
	for i := range indexes {
		if indexes[i].Bucket == index {
			return indexes[i].Count
		}
	}
	return ""
}

// Span is the half-open range of the numbers of the records that were made
// within the filter's times, of a numbered kind: greater ones were made later.
func (k *Kind[P]) Span(tx store.Tx, f core.Filter) (lo, hi uint64, err error) {
	n := int(k.Count(tx))
	first := k.Newest(tx) + 1 - uint64(n)
	from, to, err := f.Span(n, func(i int) (time.Time, error) {
		for ; i >= 0; i-- { // one that can't be read was made after those before it
			v, err := k.Glance(tx, Seq(first+uint64(i)))
			if !isNil(v) {
				return *k.head(v).Created, nil
			}
			if err != nil && len(core.DamagedIn(err)) == 0 {
				return time.Time{}, err
			}
		}
		return time.Time{}, nil
	})
	return first + uint64(from), first + uint64(to), err
}
