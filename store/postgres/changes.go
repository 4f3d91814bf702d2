package postgres

import (
	"bytes"
	"cmp"
	"compress/flate"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/store"
)

// changes are what one commit writes, in order.
type changes struct {
	list  []change
	bytes int
}

type change struct {
	bucket      store.Bucket
	key, record []byte // no record: removed
	fresh       bool   // before it there was no record for sure
}

// add notes a change and applies it to what is in memory.
func (c *changes) add(now change, has *records) {
	c.bytes += len(now.bucket) + len(now.key) + len(now.record)
	now.fresh = now.apply(has)
	c.list = append(c.list, now)
}

func (c change) apply(has *records) (fresh bool) {
	if c.record == nil {
		return has.remove(c.bucket, c.key)
	}
	return has.put(c.bucket, c.key, c.record)
}

// replay applies all changes to what is in memory, which had forgotten them.
func (c *changes) replay(has *records) {
	if c == nil {
		return
	}
	for _, now := range c.list {
		now.apply(has)
	}
}

// columns are records as arrays.
type columns struct{ buckets, keys, values [][]byte }

func (c *columns) add(one *change) {
	c.buckets, c.keys, c.values = append(c.buckets, []byte(one.bucket)), append(c.keys, one.key), append(c.values, one.record)
}

// columns are the last word on each key, in the order of the table's index: those that
// are removed, those that are new for sure, and those that may be there. What came and
// went within the commit is in none.
func (c *changes) columns() (gone, fresh, put columns) {
	order := make([]int32, len(c.list)) // sorting the changes themselves moves much more
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		if n := c.list[i].compare(&c.list[j]); n != 0 {
			return n
		}
		return cmp.Compare(i, j)
	})
	first := 0 // change of the key
	for n, i := range order {
		now := &c.list[i]
		if n+1 < len(order) && now.compare(&c.list[order[n+1]]) == 0 {
			continue
		}
		switch isNew := c.list[order[first]].fresh; {
		case now.record != nil && isNew:
			fresh.add(now)
		case now.record != nil:
			put.add(now)
		case !isNew:
			gone.add(now)
		}
		first = n + 1
	}
	return gone, fresh, put
}

// compare orders by key.
func (c *change) compare(other *change) int {
	if n := strings.Compare(string(c.bucket), string(other.bucket)); n != 0 {
		return n
	}
	return bytes.Compare(c.key, other.key)
}

// sureKey is the length up to which every key fits into PostgreSQL's index: an
// entry may have 2,704 bytes, tenant and bucket included.
const sureKey = 2300

// checkIndex refuses a long key that the index would refuse, which would take the
// whole commit down. Such an entry is compressed, by less than flate does.
func checkIndex(b store.Bucket, key []byte) error {
	if len(key) <= sureKey {
		return nil
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := w.Write(key); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if packed.Len() > sureKey/4 {
		return fmt.Errorf("bucket %s: key of %d bytes that don't compress; PostgreSQL's index takes at most %d", b, len(key), sureKey)
	}
	return nil
}
