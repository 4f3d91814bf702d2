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
}

// add notes a change and applies it to what is in memory.
func (c *changes) add(now change, has *records) {
	c.bytes += len(now.bucket) + len(now.key) + len(now.record)
	c.list = append(c.list, now)
	now.apply(has)
}

func (c change) apply(has *records) {
	if c.record == nil {
		has.remove(c.bucket, c.key)
	} else {
		has.put(c.bucket, c.key, c.record)
	}
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

// columns are the last word on each key as arrays: those of removed keys and of
// records, in the order of the table's index.
func (c *changes) columns() (removed, put struct{ buckets, keys, values [][]byte }) {
	slices.SortStableFunc(c.list, func(a, b change) int {
		return cmp.Or(strings.Compare(string(a.bucket), string(b.bucket)), bytes.Compare(a.key, b.key))
	})
	for i, now := range c.list {
		if i+1 < len(c.list) && c.list[i+1].bucket == now.bucket && bytes.Equal(c.list[i+1].key, now.key) {
			continue
		}
		to := &put
		if now.record == nil {
			to = &removed
		}
		to.buckets = append(to.buckets, []byte(now.bucket))
		to.keys = append(to.keys, now.key)
		to.values = append(to.values, now.record)
	}
	return removed, put
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
