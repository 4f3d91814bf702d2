package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// mountSmall mounts a small tmpfs, where the test may.
func mountSmall(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "none", dir).CombinedOutput(); err != nil {
		t.Skipf("can't mount a tmpfs here: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", dir).CombinedOutput()
		expect.True(t, err == nil, "umount: %v %s", err, out)
	})
	return dir
}

// fillUp writes until it fails and returns how many records were
// acknowledged, and the error.
func fillUp(db *store.DB) (acked int, err error) {
	for ; acked < 100_000; acked++ {
		if err := db.Update(ctx, "t_a", func(tx store.Tx) error {
			tx.Add("more", 1)
			return tx.Put("more", fmt.Appendf(nil, "%06d", acked), make([]byte, 2000))
		}); err != nil {
			return acked, err
		}
	}
	return acked, nil
}

// refused checks a store that has no room: it says so, reads, and keeps what
// it has.
func refused(t testing.TB, db *store.DB, err error) {
	t.Helper()
	var full *store.FullError
	expect.True(t, errors.As(err, &full) && errors.Is(err, store.ErrFull) && full.Path == db.Path(), "the failing update: %v", err)
	expect.Err(t, db.Update(ctx, "t_a", put("late", 10)), store.ErrFull, "the next update")
	expect.Err(t, db.CreateTenant(ctx, "t_new"), store.ErrFull, "a new tenant")
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0, "read while full: %s, %d missing", wrong, missing)
	if db.Full() == nil || !db.Outage().To.IsZero() {
		t.Errorf("full: %v, outage %v", db.Full(), db.Outage())
	}
}

func put(key string, size int) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.Put("y", []byte(key), make([]byte, size)) }
}

func has(t testing.TB, db *store.DB, key string) bool {
	t.Helper()
	found := false
	if err := db.View(ctx, "t_a", func(tx store.Tx) error {
		v, err := tx.Get("y", []byte(key))
		found = v != nil
		return err
	}); err != nil {
		t.Error(err)
	}
	return found
}

// survived checks a file whose last owner ran out of room.
func survived(t testing.TB, path string, acked int) {
	t.Helper()
	if r, err := store.Check(ctx, path); err != nil {
		t.Error(err)
	} else if err := r.Err(); err != nil {
		t.Error(err)
	}
	db := expect.Of(store.Open(path, store.Options{ReadOnly: true}))(t)
	defer db.Close()
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
	if err := db.View(ctx, "t_a", func(tx store.Tx) error {
		n := 0
		err := tx.Scan("more", nil, nil, false, func(_, _ []byte) (bool, error) { n++; return true, nil })
		expect.True(t, n >= acked && n <= acked+1 && tx.Counter("more") == int64(n), "%d acknowledged, %d there, counter %d", acked, n, tx.Counter("more"))
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestFullDiskRefusesWritesUntilThereIsRoom(t *testing.T) {
	dir := mountSmall(t, "4m")
	path := filled(t, dir)
	heard := make(chan *store.FullError, 8)
	db := expect.Of(store.Open(path, store.Options{OnFull: func(full *store.FullError) { heard <- full }}))(t)
	acked, err := fillUp(db)
	expect.Must(t, acked != 0 && err != nil, "%d records, %v", acked, err)
	refused(t, db, err)
	full := <-heard
	expect.True(t, full != nil && full.Free >= 0, "heard %v", full)
	// What stops something is still recorded; who can wait does.
	reserve := store.IfFull(ctx, store.UseReserve)
	for i := range 20 {
		expect.No(t, db.Update(reserve, "t_a", put(fmt.Sprint("stop ", i), 500)), "stop", i)
	}
	waits := make(chan error, 3)
	patient := store.IfFull(ctx, store.Wait)
	go func() { waits <- db.Update(patient, "t_a", put("waited", 10)) }()
	brief, end := context.WithTimeout(patient, time.Millisecond) // passes while the disk is full
	defer end()
	go func() { waits <- db.Update(brief, "t_a", put("waited longer", 10)) }()
	quits, quit := context.WithCancel(patient)
	go func() { waits <- db.Update(quits, "t_a", put("gone", 10)) }()
	quit()
	expect.Err(t, <-waits, context.Canceled, "who no longer wants to wait")
	expect.Fails(t, expect.Fault(store.Backup(ctx, path, filepath.Join(dir, "copy.db"))), "a backup on the full disk succeeded")
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	expect.True(t, len(left) == 0, "left behind: %v", left)
	out, err := exec.Command("mount", "-o", "remount,size=16m", dir).CombinedOutput()
	expect.Must(t, err == nil, "remount: %v %s", err, out)
	for range 2 {
		expect.No(t, <-waits, "who waited")
	}
	full = <-heard
	expect.True(t, full == nil, "heard %v", full)
	expect.No(t, db.Update(ctx, "t_a", put("after", 10)))
	for key, want := range map[string]bool{"stop 19": true, "waited": true, "waited longer": true, "after": true, "gone": false, "late": false} {
		expect.True(t, has(t, db, key) == want, "%s is there: %t", key, !want)
	}
	if o := db.Outage(); db.Full() != nil || o.To.Before(o.From) || db.Stalled() != o.To.Sub(o.From) {
		t.Errorf("afterwards: %v, %v, %v", db.Full(), o, db.Stalled())
	}
	expect.No(t, db.Close())
	survived(t, path, acked)
}

func TestCommitTooLargeForTheDiskHasNotHappened(t *testing.T) {
	dir := mountSmall(t, "6m")
	path := filled(t, dir)
	db := openAt(t, path, store.Options{})
	var runs int
	large := func(tx store.Tx) error {
		runs++
		for i := range 8 {
			if err := tx.Put("y", fmt.Appendf(nil, "large %d", i), make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	}
	err := db.Update(ctx, "t_a", large)
	expect.Must(t, errors.Is(err, store.ErrFull) && runs == 1, "after %d runs: %v", runs, err)
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0 && !has(t, db, "large 0"), "%s, %d missing", wrong, missing)
	// What is small goes on as soon as the store has looked again.
	expect.No(t, db.Update(store.IfFull(ctx, store.Wait), "t_a", put("small", 10)))
	waits := expect.Later(func() error { return db.Update(store.IfFull(ctx, store.Wait), "t_a", large) })
	out, err := exec.Command("mount", "-o", "remount,size=32m", dir).CombinedOutput()
	expect.Must(t, err == nil, "remount: %v %s", err, out)
	err = <-waits
	expect.True(t, err == nil && has(t, db, "large 7"), "with room: %v", err)
}

func TestWaitingForRoomEndsWithTheStore(t *testing.T) {
	for name, end := range map[string]func(*store.DB){
		"hurry": func(db *store.DB) { db.Hurry() },
		"close": func(db *store.DB) { _ = db.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			db := expect.Of(store.Open(filled(t, mountSmall(t, "4m")), store.Options{}))(t)
			defer db.Close()
			_, err := fillUp(db)
			expect.Must(t, errors.Is(err, store.ErrFull), "%v", err)
			waits := expect.Later(func() error { return db.Update(store.IfFull(ctx, store.Wait), "t_a", put("x", 1)) })
			end(db)
			err = <-waits
			expect.True(t, errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrClosed), "%v", err)
		})
	}
}

func TestAFullDiskIsOpened(t *testing.T) {
	dir := mountSmall(t, "4m")
	path := filled(t, dir)
	db := expect.Of(store.Open(path, store.Options{}))(t)
	acked, err := fillUp(db)
	refused(t, db, err)
	expect.No(t, db.Close())
	err = os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 4<<20), 0o600)
	expect.Must(t, errors.Is(err, syscall.ENOSPC), "%v", err)
	for range 3 { // each opening is a commit
		db = expect.Of(store.Open(path, store.Options{}))(t)
		expect.No(t, db.Update(store.IfFull(ctx, store.UseReserve), "t_a", put("stop", 500)))
		expect.No(t, db.Close())
	}
	survived(t, path, acked)
}

func TestFileSizeLimitIsMetLikeAFullDisk(t *testing.T) {
	const child = "SWARMDECK_LIMITED_FILE"
	if path := os.Getenv(child); path != "" {
		limit := syscall.Rlimit{Cur: 3 << 20, Max: 64 << 20}
		expect.No(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		db := expect.Of(store.Open(path, store.Options{}))(t)
		acked, err := fillUp(db)
		fmt.Printf("acked %d\n", acked)
		refused(t, db, err)
		expect.No(t, db.Update(store.IfFull(ctx, store.UseReserve), "t_a", put("stop", 500)))
		limit.Cur = limit.Max
		expect.No(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		expect.No(t, db.Update(store.IfFull(ctx, store.Wait), "t_a", put("waited", 500)))
		expect.No(t, db.Close())
		return
	}
	path := filled(t, t.TempDir())
	self := expect.Of(os.Executable())(t)
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"="+path)
	out, err := cmd.CombinedOutput()
	expect.No(t, err, "child", out)
	var acked int
	_, err = fmt.Sscanf(string(out), "acked %d", &acked)
	expect.Must(t, err == nil && acked != 0, "child said: %s", out)
	survived(t, path, acked)
}
