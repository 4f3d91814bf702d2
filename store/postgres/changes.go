package postgres

import (
	"bytes"
	"compress/flate"
	"fmt"

	"swarmdeck/store"
)

// changes are what one commit writes: the last word on each key.
type changes struct {
	list  []change
	index map[string]int // bucket and key to their place in list
	bytes int
}

type change struct {
	bucket      store.Bucket
	key, record []byte // no record: removed
}

// add notes a change and applies it to what is in memory.
func (c *changes) add(now change, has *records) {
	place := string(rune(len(now.bucket))) + string(now.bucket) + string(now.key)
	if c.index == nil {
		c.index = map[string]int{}
	}
	c.bytes += len(now.bucket) + len(now.key) + len(now.record)
	if i, ok := c.index[place]; ok {
		c.list[i] = now
	} else {
		c.index[place] = len(c.list)
		c.list = append(c.list, now)
	}
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

// columns are the changes as arrays: those of removed keys and of records.
func (c *changes) columns() (removed, put struct{ buckets, keys, values [][]byte }) {
	for _, now := range c.list {
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
