package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

func TestCreationIsPrivateAndMakesItsDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "data.db")
	db := openAt(t, path, store.Options{})
	info := expect.Of(os.Stat(path))(t)
	expect.True(t, info.Mode().Perm() == 0o600, "mode %v", info.Mode())
	dir, err := os.Stat(filepath.Dir(path))
	expect.True(t, err == nil && dir.Mode().Perm() == 0o700, "directory %v, %v", dir.Mode(), err)
	if db.Path() != path || db.Epoch() != 1 || db.Schema() != 0 {
		t.Errorf("%s, epoch %d, schema %d", db.Path(), db.Epoch(), db.Schema())
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	expect.True(t, len(left) == 0, "left behind: %v", left)
}

func TestManyCreatorsMakeOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	var mu sync.Mutex
	var owner *store.DB
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			db, err := store.Open(path, store.Options{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && owner == nil:
				owner = db
			case err == nil:
				t.Error("two owners")
				_ = db.Close()
			case !errors.Is(err, store.ErrLocked):
				t.Errorf("open: %v", err)
			}
		})
	}
	wg.Wait()
	expect.Must(t, owner != nil, "no owner")
	expect.No(t, owner.Close())
}

func TestSymbolicLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	path := filled(t, dir)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	_, _, err := store.Compact(ctx, link)
	expect.No(t, err)
	info, err := os.Lstat(link)
	expect.True(t, err == nil && info.Mode()&fs.ModeSymlink != 0, "the link was replaced: %v, %v", info.Mode(), err)
	db := openAt(t, link, store.Options{})
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
}

func TestCheckCountsEverything(t *testing.T) {
	path := filled(t, t.TempDir())
	r, err := store.Check(ctx, path)
	expect.Must(t, err == nil && r.OK && r.Err() == nil, "%+v, %v", r, err)
	expect.True(t, len(r.Tenants) == 1 && r.Tenants[0] == "t_a" && r.Epoch == 1 && r.Layout >= 1, "%+v", r)
	for _, b := range r.Buckets {
		if b.Tenant == "t_a" && b.Bucket == "x" && b.Records != records {
			t.Errorf("%+v", b)
		}
	}
	db := openAt(t, path, store.Options{})
	hot, err := db.Check(ctx)
	expect.True(t, err == nil && hot.OK && hot.Epoch == 2, "hot: %+v, %v", hot, err)
	s, err := db.Stats(ctx)
	if err != nil || len(s.Tenants) != 1 || s.Tenants[0].Counters["n"] != records || s.Size == 0 || s.Pages != hot.Pages || s.FreePages != hot.FreePages {
		t.Errorf("stats: %+v, %v", s, err)
	}
}

func TestHotBackupIsOneMomentAndComesBack(t *testing.T) {
	dir := t.TempDir()
	path := filled(t, dir)
	db := openAt(t, path, store.Options{})
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; stop.Err() == nil; i++ {
				err := db.Update(ctx, "t_a", func(tx store.Tx) error {
					n := tx.Add("pairs", 1)
					key := fmt.Appendf(nil, "%08d", n)
					return errors.Join(tx.Put("left", key, make([]byte, 500)), tx.Put("right", key, nil))
				})
				if err != nil {
					t.Errorf("worker %d: %v", w, err)
					return
				}
			}
		})
	}
	var copies []string
	for i := range 5 {
		dest := filepath.Join(dir, fmt.Sprintf("copy%d.db", i))
		if r, err := db.Backup(ctx, dest); err != nil || !r.OK {
			t.Fatalf("%+v, %v", r, err)
		}
		if r, err := db.Check(ctx); err != nil || !r.OK {
			t.Errorf("check under load: %+v, %v", r, err)
		}
		_, err := db.Stats(ctx)
		expect.No(t, err, "stats under load")
		copies = append(copies, dest)
	}
	cancel()
	wg.Wait()
	for _, c := range copies {
		info, err := os.Stat(c)
		expect.True(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v", info, err)
		to := filepath.Join(t.TempDir(), "restored.db")
		kept, err := store.Restore(ctx, to, c)
		expect.Must(t, err == nil && kept == "", "%q, %v", kept, err)
		back := openAt(t, to, store.Options{})
		wrong, missing := compareRecords(back)
		expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
		if back.Epoch() <= db.Epoch() {
			t.Errorf("epoch %d after %d", back.Epoch(), db.Epoch())
		}
		if err := back.View(ctx, "t_a", func(tx store.Tx) error {
			var left, right int64
			err := errors.Join(
				tx.Scan("left", nil, nil, false, func(_, _ []byte) (bool, error) { left++; return true, nil }),
				tx.Scan("right", nil, nil, false, func(_, _ []byte) (bool, error) { right++; return true, nil }))
			n := tx.Counter("pairs")
			expect.True(t, left == right && left == n, "%d left, %d right, counter %d", left, right, n)
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	expect.Err(t, expect.Fault(db.Backup(ctx, copies[0])), fs.ErrExist, "over an old backup")
	expect.Err(t, expect.Fault(db.Backup(ctx, path)), fs.ErrExist, "over itself")
	expect.Err(t, expect.Fault(db.Backup(stop, filepath.Join(dir, "late.db"))), context.Canceled, "cancelled")
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	expect.True(t, len(left) == 0, "left behind: %v", left)
}

func TestRestoreKeepsTheOldFileAndRefusesDamage(t *testing.T) {
	dir := t.TempDir()
	path := filled(t, dir)
	backup := filepath.Join(dir, "copy.db")
	_, err := store.Backup(ctx, path, backup)
	expect.No(t, err)
	for range 5 { // owners come and go
		expect.No(t, openAt(t, path, store.Options{}).Close())
	}
	before := read(t, path)

	bad := read(t, backup)
	bad[len(bad)-5000] ^= 0x10
	for i := 3 * 4096; i < len(bad); i += 4096 {
		bad[i+300] ^= 1
	}
	damaged := filepath.Join(dir, "damaged.db")
	expect.No(t, os.WriteFile(damaged, bad, 0o600))
	for _, from := range []string{damaged, filepath.Join(dir, "none.db"), path} {
		_, err = store.Restore(ctx, path, from)
		expect.Fails(t, err, "restored from", from)
		unchanged(t, path, before)
	}

	kept := expect.Of(store.Restore(ctx, path, backup))(t)
	unchanged(t, kept, before)
	db := openAt(t, path, store.Options{})
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
	if db.Epoch() <= 6 {
		t.Errorf("epoch %d: an owner before the restore had 6", db.Epoch())
	}
	expect.No(t, db.Close())
	// A data file damaged beyond reading can be replaced too, twice a second.
	for range 2 {
		expect.No(t, os.WriteFile(path, []byte("nonsense"), 0o600))
		_, err = store.Restore(ctx, path, backup)
		expect.No(t, err, "over nonsense")
	}
	files, _ := filepath.Glob(path + ".before-restore-*")
	expect.True(t, len(files) == 3, "kept: %v", files)
}

func TestCompactGivesSpaceBackAndKeepsEverything(t *testing.T) {
	path := filled(t, t.TempDir())
	db := expect.Of(store.Open(path, store.Options{}))(t)
	for _, remove := range []bool{false, true} {
		expect.No(t, db.Update(ctx, "t_a", func(tx store.Tx) error {
			for i := range 3000 {
				key := fmt.Appendf(nil, "%06d", i)
				if remove {
					if err := tx.Delete("bulk", key); err != nil {
						return err
					}
				} else if err := tx.Put("bulk", key, make([]byte, 1000)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	epoch := db.Epoch()
	expect.No(t, db.Close())
	before, after, err := store.Compact(ctx, path)
	expect.No(t, err)
	info, e := os.Stat(path)
	expect.True(t, e == nil && info.Size() == after && after*2 <= before, "%d before, %d after, %v", before, after, e)
	r, err := store.Check(ctx, path)
	expect.True(t, err == nil && r.OK && r.Epoch == epoch, "%+v, %v", r, err)
	again := openAt(t, path, store.Options{})
	wrong, missing := compareRecords(again)
	expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
}

func TestCompactLeavesNoSpaceAhead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	expect.Of(store.Backup(ctx, filled(t, dir), path))(t)
	before, after, err := store.Compact(ctx, path)
	expect.True(t, err == nil && after <= before, "%d before, %d after, %v", before, after, err)
	again, same, err := store.Compact(ctx, path)
	expect.True(t, err == nil && again == after && same == after, "again: %d before, %d after, %v", again, same, err)
	expect.No(t, openAt(t, path, store.Options{}).Close())
}

func TestABackupThatHasNoPlaceIsNoFaultOfTheDataFile(t *testing.T) {
	path := filled(t, t.TempDir())
	_, err := store.Backup(ctx, path, filepath.Join(t.TempDir(), "no", "copy.db"))
	expect.True(t, errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrUnusable), "%v", err)
	_, err = store.Backup(ctx, path, path)
	expect.True(t, errors.Is(err, fs.ErrExist) && !errors.Is(err, store.ErrUnusable), "%v", err)
}

func TestCompactAcceptsAFileWithOneDamagedMetaPage(t *testing.T) {
	path := filled(t, t.TempDir())
	data := read(t, path)
	data[4096*1+30] ^= 4
	expect.No(t, os.WriteFile(path, data, 0o600))
	if _, err := store.Open(path, store.Options{}); !errors.Is(err, store.ErrUnusable) {
		t.Fatalf("open: %v", err)
	}
	_, _, err := store.Compact(ctx, path)
	expect.No(t, err)
	expect.No(t, openAt(t, path, store.Options{}).Close())
}

func TestCompactRefusesDamageAndLeavesTheFile(t *testing.T) {
	dir := t.TempDir()
	data := read(t, filled(t, dir))
	for i := 4 * 4096; i < 80<<10; i += 1000 {
		data[i] ^= 0x20
	}
	path := filepath.Join(dir, "bad.db")
	expect.No(t, os.WriteFile(path, data, 0o600))
	_, _, err := store.Compact(ctx, path)
	expect.Fails(t, err, "compacted")
	unchanged(t, path, data)
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	expect.True(t, len(left) == 0, "left behind: %v", left)
	// The lock is free again.
	_, err = store.Check(ctx, path)
	expect.True(t, !errors.Is(err, store.ErrLocked), "%v", err)
}
