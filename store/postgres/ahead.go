package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/store"
)

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
