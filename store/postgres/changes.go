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

func (c *columns) add(one change) {
	c.buckets, c.keys, c.values = append(c.buckets, []byte(one.bucket)), append(c.keys, one.key), append(c.values, one.record)
}

// columns are the last word on each key, in the order of the table's index: those that
// are removed, those that are new for sure, and those that may be there. What came and
// went within the commit is in none.
func (c *changes) columns() (gone, fresh, put columns) {
	slices.SortStableFunc(c.list, func(a, b change) int {
		return cmp.Or(strings.Compare(string(a.bucket), string(b.bucket)), bytes.Compare(a.key, b.key))
	})
	first := 0 // change of the key
	for i, now := range c.list {
		if i+1 < len(c.list) && c.list[i+1].bucket == now.bucket && bytes.Equal(c.list[i+1].key, now.key) {
			continue
		}
		switch isNew := c.list[first].fresh; {
		case now.record != nil && isNew:
			fresh.add(now)
		case now.record != nil:
			put.add(now)
		case !isNew:
			gone.add(now)
		}
		first = i + 1
	}
	return gone, fresh, put
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
