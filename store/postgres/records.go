package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/btree"

	"swarmdeck/store"
)

// records is what is in memory of one tenant. Of each bucket it holds the rows
// of some ranges of keys, and knows which: within a span, a key that has no row
// is absent. A copy shares its nodes with the original until one of them changes.
type records struct {
	buckets map[store.Bucket]*resident
	size    int64 // bytes, roughly
	listed  bool  // a bucket of which nothing is here is empty
}

type resident struct {
	rows  *btree.BTreeG[row]
	spans *btree.BTreeG[span] // in order; none touches another
	size  int64
}

// row is one record, its value with its checksum in front.
type row struct{ key, record []byte }

// span is a range of keys [from, to); a nil to means no bound.
type span struct{ from, to []byte }

// overhead is about what an entry takes besides its bytes.
const overhead = 96

func (r row) size() int64  { return int64(len(r.key)+len(r.record)) + overhead }
func (s span) size() int64 { return int64(len(s.from)+len(s.to)) + overhead }

func newRecords() *records { return &records{buckets: map[store.Bucket]*resident{}} }

// copy is a second one with the same content.
func (r *records) copy() *records {
	out := &records{buckets: make(map[store.Bucket]*resident, len(r.buckets)), size: r.size, listed: r.listed}
	for name, b := range r.buckets {
		out.buckets[name] = &resident{rows: b.rows.Copy(), spans: b.spans.Copy(), size: b.size}
	}
	return out
}

// of returns what is in memory of a bucket.
func (r *records) of(name store.Bucket) *resident {
	b := r.buckets[name]
	if b == nil {
		quiet := btree.Options{NoLocks: true} // the moment's mutex is enough
		b = &resident{
			rows:  btree.NewBTreeGOptions(func(a, b row) bool { return bytes.Compare(a.key, b.key) < 0 }, quiet),
			spans: btree.NewBTreeGOptions(func(a, b span) bool { return bytes.Compare(a.from, b.from) < 0 }, quiet),
		}
		if r.listed {
			b.cover([]byte{}, nil)
			r.size += b.size
		}
		r.buckets[name] = b
	}
	return b
}

// shrink forgets the largest buckets until half of a bound is left, when it was
// passed.
func (r *records) shrink(bound int64) {
	if r.size <= bound {
		return
	}
	r.listed = false
	for r.size > bound/2 && len(r.buckets) > 0 {
		var name store.Bucket
		largest := int64(-1)
		for n, b := range r.buckets {
			if b.size > largest {
				name, largest = n, b.size
			}
		}
		r.size -= largest
		delete(r.buckets, name)
	}
}

// put makes a record known, and says whether there was none for sure.
func (r *records) put(name store.Bucket, key, record []byte) (fresh bool) {
	r.change(name, func(b *resident) {
		there := b.set(row{key: key, record: record})
		fresh = b.cover(key, after(key)) && !there
	})
	return fresh
}

// remove makes the absence of a record known, and says whether it was so for sure.
func (r *records) remove(name store.Bucket, key []byte) (absent bool) {
	r.change(name, func(b *resident) {
		old, there := b.rows.Delete(row{key: key})
		if there {
			b.size -= old.size()
		}
		absent = b.cover(key, after(key)) && !there
	})
	return absent
}

// fill adds all rows of a span, as the database has them. What is known already
// is newer.
func (r *records) fill(name store.Bucket, rows []row, from, to []byte) {
	r.change(name, func(b *resident) {
		for _, found := range rows {
			if _, known := b.span(found.key); !known {
				b.set(found)
			}
		}
		b.cover(from, to)
	})
}

func (r *records) change(name store.Bucket, fn func(*resident)) {
	b := r.of(name)
	before := b.size
	fn(b)
	r.size += b.size - before
}

// set puts a row in, and says whether there was one.
func (b *resident) set(now row) (there bool) {
	old, there := b.rows.Set(now)
	if there {
		b.size -= old.size()
	}
	b.size += now.size()
	return there
}

// span returns the span that a key lies in.
func (b *resident) span(key []byte) (in span, ok bool) {
	b.spans.Descend(span{from: key}, func(s span) bool {
		in, ok = s, s.to == nil || bytes.Compare(key, s.to) < 0
		return false
	})
	return in, ok
}

// below returns the span that the keys just below a bound lie in; nil is the end
// of all keys.
func (b *resident) below(bound []byte) (in span, ok bool) {
	if bound == nil {
		last, some := b.spans.Max()
		return last, some && last.to == nil
	}
	b.spans.Descend(span{from: bound}, func(s span) bool {
		if bytes.Equal(s.from, bound) {
			return true
		}
		in, ok = s, s.to == nil || bytes.Compare(s.to, bound) >= 0
		return false
	})
	return in, ok
}

// cover adds [from, to) to the spans, and says whether it was in one.
func (b *resident) cover(from, to []byte) (known bool) {
	if in, ok := b.span(from); ok && (in.to == nil || to != nil && bytes.Compare(to, in.to) <= 0) {
		return true
	}
	whole := span{from: from, to: to}
	var merged []span
	if in, ok := b.touching(from); ok {
		merged = append(merged, in)
		whole.from = in.from
		whole.to = later(whole.to, in.to)
	}
	b.spans.Ascend(span{from: from}, func(s span) bool {
		if whole.to != nil && bytes.Compare(s.from, whole.to) > 0 {
			return false
		}
		merged = append(merged, s)
		whole.to = later(whole.to, s.to)
		return true
	})
	for _, s := range merged {
		if _, ok := b.spans.Delete(s); ok {
			b.size -= s.size()
		}
	}
	b.spans.Set(whole)
	b.size += whole.size()
	return false
}

// touching returns the span before a key that reaches up to it or beyond.
func (b *resident) touching(key []byte) (span, bool) {
	if len(key) == 0 {
		return span{}, false
	}
	return b.below(key)
}

// later is the greater of two upper bounds.
func later(a, b []byte) []byte {
	if a == nil || b == nil {
		return nil
	}
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

// after is the first key behind another.
func after(key []byte) []byte { return append(key[:len(key):len(key)], 0) }

// What is read of each bucket when a tenant is taken: so many of its first and of its last
// rows, the values of either having so many bytes. Most buckets are known whole by that,
// and new rows come behind the last ones.
const (
	aheadFirst, aheadFirstBytes = 32, 32 << 10
	aheadLast, aheadLastBytes   = 128, 64 << 10
	aheadTime                   = 2 * time.Second
)

// aheadSQL reads, in one statement, some rows of each bucket, together with whether the
// tenant still is as the moment says. $4 and $5 bound the first rows of a bucket, $6 and $7
// the last ones, of which found says how many there are within $6.
const aheadSQL = `with recursive has(bucket) as (
	(select bucket from kv where tenant = $1 order by bucket limit 1)
	union all
	select (select kv.bucket from kv where tenant = $1 and kv.bucket > has.bucket order by kv.bucket limit 1) from has where has.bucket is not null
)
select o.epoch = $2 and o.commit = $3, b.bucket, r.last, r.key, r.value, r.found
from owner o left join has b on b.bucket is not null left join lateral (
	with head as materialized (
		select key, value from (
			select key, value, sum(octet_length(value)) over (order by key) - octet_length(value) as before
			from (select key, value from kv where tenant = $1 and kv.bucket = b.bucket order by key limit $4) as first
		) as measured where before < $5
	)
	select false as last, key, value, 0::bigint as found from head
	union all
	select true, key, value, found from (
		select key, value, count(*) over () as found, sum(octet_length(value)) over (order by key desc) - octet_length(value) as before
		from (select key, value from kv where tenant = $1 and kv.bucket = b.bucket and key > (select key from head order by key desc limit 1) order by key desc limit $6) as last
	) as measured where before < $7
) as r on true where o.tenant = $1 order by b.bucket, r.key`

// readAhead reads into memory, in one round trip, what the engine that opens a tenant asks
// for first: most of it are small buckets and the ends of large ones, of which each would
// cost a round trip. What a lost connection keeps from it is read when it is asked for.
func (m *moment) readAhead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	got, err := m.t.db.query(ctx, nil, aheadSQL, []byte(m.t.name), m.epoch, m.commit,
		int64(aheadFirst), int64(aheadFirstBytes), int64(aheadLast), int64(aheadLastBytes))
	switch {
	case errors.Is(err, errLost):
		return nil
	case err != nil:
		return fmt.Errorf("read tenant %.80q: %w", m.t.name, err)
	case len(got) == 0 || !truth(got[0][0]):
		return m.t.fenced()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(got) > 0 && got[0][1] != nil {
		name := string(got[0][1])
		n := 1
		for n < len(got) && string(got[n][1]) == name {
			n++
		}
		m.has.ends(store.Bucket(name), got[:n])
		got = got[n:]
	}
	m.has.listed = true
	return nil
}

// ends adds the first and the last rows of a bucket.
func (r *records) ends(name store.Bucket, got [][][]byte) {
	var first, last []row
	for _, c := range got {
		if in := (row{key: c[3], record: c[4]}); truth(c[2]) {
			last = append(last, in)
		} else {
			first = append(first, in)
		}
	}
	if n := int64(len(last)); n == 0 || n == integer(got[len(got)-1][5]) && n < aheadLast {
		r.fill(name, append(first, last...), []byte{}, nil)
		return
	}
	r.fill(name, first, []byte{}, after(first[len(first)-1].key))
	r.fill(name, last, last[0].key, nil)
}
