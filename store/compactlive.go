package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// How an open store is compacted.
const (
	maxDirty  = 2 << 20 // rows that are remembered as changed since they were copied
	fewDirty  = 2000    // so many are copied while writers wait
	mostDirty = 50_000  // so many too, when ever more change
	rounds    = 12      // until then
	swapPause = 20 * time.Millisecond
)

// errBusy says that more was written than the copy could follow.
var errBusy = errors.New("more is written than the copy can follow; try again when there is less to do")

// dirty are the rows that were written since a compaction began: tenant, bucket
// and key, with a zero byte after the first two.
type dirty struct {
	rows map[string]struct{}
	lost bool // there were too many
	name []byte
}

func (d *dirty) add(tenant string, b Bucket, key []byte) {
	if d == nil || d.lost {
		return
	}
	d.name = append(append(append(append(append(d.name[:0], tenant...), 0), b...), 0), key...)
	if _, known := d.rows[string(d.name)]; known {
		return
	}
	if len(d.rows) >= maxDirty {
		d.lost, d.rows = true, nil
		return
	}
	d.rows[string(d.name)] = struct{}{}
}

// take hands over what has come together.
func (d *dirty) take() (map[string]struct{}, error) {
	if d.lost {
		return nil, errBusy
	}
	rows := d.rows
	d.rows = map[string]struct{}{}
	return rows, nil
}

// Compact rewrites the open data file without its free pages while work goes
// on. A copy is made and followed up with what is written meanwhile; writers
// wait only while the last rows of that are copied and the copy takes the file's
// name. A kill at any instant leaves one of the two files under the name, whole
// and with all that was acknowledged. It returns the sizes before and after, in
// bytes.
func (db *DB) Compact(ctx context.Context) (before, after int64, err error) {
	if before, after, err = db.compact(ctx); err != nil {
		return 0, 0, fmt.Errorf("compact data file %s: %w", db.path, err)
	}
	return before, after, nil
}

func (db *DB) compact(ctx context.Context) (before, after int64, err error) {
	if db.readOnly {
		return 0, 0, ErrReadOnly
	}
	if !db.compacting.TryLock() {
		return 0, 0, errors.New("it is being compacted already")
	}
	defer db.compacting.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // the store's end waits for readers, of which the copy is one
		select {
		case <-db.room.hurried:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	info, err := os.Stat(db.path)
	if err != nil {
		return 0, 0, err
	}
	temp := compactTemp(db.path)
	copied := &compaction{db: db, temp: temp, mode: info.Mode().Perm()}
	defer func() {
		if !copied.placed {
			err = errors.Join(err, copied.drop())
		}
	}()
	if err := db.between(ctx, func(w *writer) error {
		w.dirty = &dirty{rows: map[string]struct{}{}}
		return nil
	}); err != nil {
		return 0, 0, err
	}
	defer func() { // where the writer has ended there is nothing to stop
		_ = db.between(context.WithoutCancel(ctx), func(w *writer) error { w.dirty = nil; return nil })
	}()
	if err := copied.copy(ctx); err != nil {
		return 0, 0, err
	}
	if err := copied.followUp(ctx); err != nil {
		return 0, 0, err
	}
	now, err := os.Stat(db.path)
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), now.Size(), nil
}

// compactTemp is the name of the copy that an open store makes. Only the owner
// of the data file makes one: what stands there at open is left from a kill.
func compactTemp(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".compact")
}

// between runs fn on the writer's goroutine, between two commits.
func (db *DB) between(ctx context.Context, fn func(*writer) error) error {
	done := make(chan error, 1)
	select {
	case db.asides <- func(w *writer) { done <- fn(w) }:
		return <-done
	case <-db.stopped:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compaction is one copy on its way to become the file.
type compaction struct {
	db     *DB
	temp   string
	mode   os.FileMode
	bolt   *bbolt.DB
	file   *os.File
	placed bool
}

// drop ends a copy that does not become the file.
func (c *compaction) drop() error {
	var err error
	if c.bolt != nil {
		err = c.bolt.Close()
	}
	if bad := os.Remove(c.temp); !errors.Is(bad, os.ErrNotExist) {
		err = errors.Join(err, bad)
	}
	return err
}

// copy copies what is in the file now, and checks the copy.
func (c *compaction) copy(ctx context.Context) error {
	if err := os.Remove(c.temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := initBolt(c.temp); err != nil {
		return err
	}
	if err := os.Chmod(c.temp, c.mode); err != nil {
		return err
	}
	var err error
	if c.bolt, c.file, err = mapBolt(c.temp, false, 0); err != nil {
		return err
	}
	c.bolt.AllocSize = 1 << 20
	out := &copier{ctx: ctx, dst: c.bolt}
	if err := c.db.read(ctx, out.all); err != nil {
		return err
	}
	r, err := surveyFile(ctx, c.file)
	if err != nil {
		return err
	}
	r.OK = r.Found == 0
	return r.Err()
}

// initBolt makes an empty file one of bbolt's.
func initBolt(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoStatistics: true})
	if err != nil {
		return err
	}
	return db.Close()
}

// followUp copies what was written meanwhile until little is left, and has the
// copy take the file's place.
func (c *compaction) followUp(ctx context.Context) error {
	for round := 0; ; round++ {
		var rows map[string]struct{}
		err := c.db.between(ctx, func(w *writer) (err error) {
			few := len(w.dirty.rows) <= fewDirty || round >= rounds && len(w.dirty.rows) <= mostDirty
			if few {
				return c.place(ctx, w)
			}
			rows, err = w.dirty.take()
			return err
		})
		switch {
		case err != nil || c.placed:
			return err
		case round > 100*rounds:
			return errBusy
		}
		if err := c.update(ctx, rows); err != nil {
			return err
		}
		if len(rows) <= fewDirty { // somebody reads the file's pages themselves
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(swapPause):
			}
		}
	}
}

// place has the copy become the file, while the writer stands still. From the
// rename on the old file gets nothing more.
func (c *compaction) place(ctx context.Context, w *writer) error {
	if err := w.db.fatal(); err != nil {
		return err
	}
	rows, err := w.dirty.take()
	if err == nil {
		err = c.update(ctx, rows)
	}
	if err == nil {
		err = c.identity(ctx)
	}
	if err == nil {
		err = c.file.Sync()
	}
	if err != nil || !c.db.swap.TryLock() {
		return err
	}
	defer c.db.swap.Unlock()
	if err := os.Rename(c.temp, c.db.path); err != nil {
		return err
	}
	c.placed = true
	w.dirty = nil
	if err := syncDir(filepath.Dir(c.db.path)); err != nil {
		// Nobody knows which file would be there after a power cut.
		w.db.fail(w.doubtful(err))
		return err
	}
	old := c.db.bolt
	c.db.bolt, c.db.file = c.bolt, c.file
	w.ahead.end = 0
	c.db.closings.Go(func() { _ = old.Close() }) // it waits for its readers; nothing is written there any more
	return nil
}

// update copies rows as they are now.
func (c *compaction) update(ctx context.Context, rows map[string]struct{}) error {
	names := slices.Sorted(maps.Keys(rows))
	for some := range slices.Chunk(names, 4096) {
		err := c.db.read(ctx, func(src *bbolt.Tx) error {
			return c.bolt.Update(func(dst *bbolt.Tx) error {
				for _, name := range some {
					if err := updateRow(dst, src, name); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// identity copies the file's own records as they are now: tenants may have been
// marked meanwhile.
func (c *compaction) identity(ctx context.Context) error {
	return c.db.read(ctx, func(src *bbolt.Tx) error {
		return c.bolt.Update(func(dst *bbolt.Tx) error {
			if err := dst.DeleteBucket(identityKey); err != nil {
				return err
			}
			to, err := dst.CreateBucket(identityKey)
			if err != nil {
				return err
			}
			return src.Bucket(identityKey).ForEach(to.Put)
		})
	})
}

func updateRow(dst, src *bbolt.Tx, name string) error {
	tenant, rest, _ := strings.Cut(name, "\x00")
	bucket, key, _ := strings.Cut(rest, "\x00")
	from := src.Bucket(tenantKey(tenant))
	if from == nil {
		return nil // its creation came to nothing
	}
	to, err := dst.CreateBucketIfNotExists(tenantKey(tenant))
	if err != nil || bucket == "" {
		return err
	}
	var value []byte
	if from = from.Bucket([]byte(bucket)); from != nil {
		value = from.Get([]byte(key))
		if to, err = to.CreateBucketIfNotExists([]byte(bucket)); err != nil {
			return err
		}
	} else if to = to.Bucket([]byte(bucket)); to == nil {
		return nil
	}
	if value == nil {
		return to.Delete([]byte(key))
	}
	return to.Put([]byte(key), value)
}

// copier copies all buckets of a transaction to another file, in several
// transactions of that.
type copier struct {
	ctx   context.Context
	dst   *bbolt.DB
	tx    *bbolt.Tx
	bytes int
}

func (c *copier) all(src *bbolt.Tx) (err error) {
	if c.tx, err = c.dst.Begin(true); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = c.tx.Rollback() // the copy is thrown away
		}
	}()
	defer guard(&err, "copy", "")
	err = src.ForEach(func(name []byte, b *bbolt.Bucket) error { return c.bucket([][]byte{bytes.Clone(name)}, b) })
	if err != nil {
		return err
	}
	return c.tx.Commit()
}

func (c *copier) bucket(path [][]byte, src *bbolt.Bucket) error {
	dst, err := c.open(path)
	if err != nil {
		return err
	}
	n := 0
	return src.ForEach(func(k, v []byte) error {
		if v == nil {
			return c.bucket(append(slices.Clip(path), bytes.Clone(k)), src.Bucket(k))
		}
		if n++; n%1024 == 0 && c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		if c.bytes += len(k) + len(v); c.bytes > compactStep {
			c.bytes = 0
			if err := c.tx.Commit(); err != nil {
				return err
			}
			if c.tx, err = c.dst.Begin(true); err != nil {
				return err
			}
			if dst, err = c.open(path); err != nil {
				return err
			}
		}
		return dst.Put(k, v)
	})
}

// open is a bucket of the copy, made when it is not there yet.
func (c *copier) open(path [][]byte) (b *bbolt.Bucket, err error) {
	for i, name := range path {
		if i == 0 {
			b, err = c.tx.CreateBucketIfNotExists(name)
		} else {
			b, err = b.CreateBucketIfNotExists(name)
		}
		if err != nil {
			return nil, err
		}
	}
	b.FillPercent = 0.95 // keys come in order
	return b, nil
}
