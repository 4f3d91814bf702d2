package store_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

func TestFilesThatAreNoDataFilesAreRefusedUntouched(t *testing.T) {
	dir := t.TempDir()
	good := read(t, filled(t, dir))
	for name, data := range map[string][]byte{
		"empty":             {},
		"one byte":          {0},
		"text":              []byte(strings.Repeat("hello\n", 5000)),
		"zeros":             make([]byte, 64<<10),
		"half a page":       good[:2000],
		"one page":          good[:4096],
		"two pages":         good[:8192],
		"cut in the middle": good[:60<<10],
		"both metas gone":   append(make([]byte, 8192), good[8192:]...),
	} {
		path := filepath.Join(dir, "bad.db")
		expect.No(t, os.WriteFile(path, data, 0o600))
		for _, readOnly := range []bool{true, false} {
			db, err := store.Open(path, store.Options{ReadOnly: readOnly})
			if err == nil {
				_ = db.Close()
				t.Errorf("%s: opened", name)
			} else if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", name, err)
			}
		}
		r, err := store.Check(ctx, path)
		expect.True(t, err != nil || !r.OK, "%s: passes the check", name)
		unchanged(t, path, data)
	}
	_, err := store.Open(dir, store.Options{})
	expect.Err(t, err, store.ErrUnusable, "a directory")
	_, err = store.Open(filepath.Join(dir, "none.db"), store.Options{ReadOnly: true})
	expect.True(t, errors.Is(err, os.ErrNotExist) && errors.Is(err, store.ErrUnusable), "a missing file, read-only: %v", err)
}

func TestFileCutShortUnderAnOpenStoreIsAnError(t *testing.T) {
	path := filled(t, t.TempDir())
	db, err := store.Open(path, store.Options{})
	expect.No(t, err)
	defer db.Close()
	expect.No(t, os.Truncate(path, 16<<10))
	for range 2 {
		err = db.View(ctx, "t_a", func(tx store.Tx) error {
			return tx.Scan("x", nil, nil, false, func(_, _ []byte) (bool, error) { return true, nil })
		})
		expect.Err(t, err, store.ErrUnusable, "view")
		err = db.Update(ctx, "t_a", func(tx store.Tx) error { return tx.Put("x", []byte("0000"), nil) })
		expect.Err(t, err, store.ErrUnusable, "update")
	}
}

func TestReadOnlyOpensWriteNothing(t *testing.T) {
	path := filled(t, t.TempDir())
	before := read(t, path)
	expect.No(t, os.Chmod(path, 0o400))
	a := openAt(t, path, store.Options{ReadOnly: true})
	b := openAt(t, path, store.Options{ReadOnly: true}) // readers share
	for _, db := range []*store.DB{a, b} {
		wrong, missing := compareRecords(db)
		expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
		expect.Err(t, db.Update(ctx, "t_a", func(store.Tx) error { return nil }), store.ErrReadOnly, "update")
		expect.Err(t, db.CreateTenant(ctx, "t_b"), store.ErrReadOnly, "create")
	}
	_, err := store.Open(path, store.Options{})
	expect.True(t, errors.Is(err, store.ErrLocked) || errors.Is(err, os.ErrPermission), "writable beside readers: %v", err)
	unchanged(t, path, before)
}

func TestReadOnlyFileSystemIsAClearError(t *testing.T) {
	dir := mountSmall(t, "2m")
	path := filled(t, dir)
	if out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput(); err != nil {
		t.Skipf("remount: %v %s", err, out)
	}
	_, err := store.Open(path, store.Options{})
	expect.True(t, errors.Is(err, store.ErrUnusable) && errors.Is(err, syscall.EROFS), "open: %v", err)
	db := openAt(t, path, store.Options{ReadOnly: true})
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
}

func TestSecondOwnerIsToldWhoHasTheFile(t *testing.T) {
	path := filled(t, t.TempDir())
	db := openAt(t, path, store.Options{})
	for _, opt := range []store.Options{{}, {ReadOnly: true}} {
		_, err := store.Open(path, opt)
		expect.Must(t, errors.Is(err, store.ErrLocked), "second open: %v", err)
		_, e := os.Stat("/proc/locks")
		expect.True(t, e != nil || strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())), "the owner is not named: %v", err)
	}
	for name, err := range map[string]error{
		"check":   second(store.Check(ctx, path)),
		"backup":  second(store.Backup(ctx, path, path+".copy")),
		"stats":   second(store.ReadStats(ctx, path)),
		"restore": second(store.Restore(ctx, path, filled(t, t.TempDir()))),
	} {
		expect.Err(t, err, store.ErrLocked, name)
	}
	_, _, err := store.Compact(ctx, path)
	expect.Err(t, err, store.ErrLocked, "compact")
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
}

func second[T any](_ T, err error) error { return err }
