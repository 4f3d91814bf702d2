package store_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

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
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
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

// spoiled checks a store whose commit failed.
func spoiled(t testing.TB, db *store.DB, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrUnusable) {
		t.Errorf("the failing update: %v", err)
	}
	if err := db.Update(ctx, "t_a", func(store.Tx) error { return nil }); !errors.Is(err, store.ErrUnusable) {
		t.Errorf("the next update: %v", err)
	}
	if err := db.View(ctx, "t_a", func(store.Tx) error { return nil }); !errors.Is(err, store.ErrUnusable) {
		t.Errorf("the next view: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// survived checks a file whose last owner ran out of room.
func survived(t testing.TB, path string, acked int) {
	t.Helper()
	if r, err := store.Check(ctx, path); err != nil {
		t.Error(err)
	} else if err := r.Err(); err != nil {
		t.Error(err)
	}
	db, err := store.Open(path, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if wrong, missing := compareRecords(db); wrong != "" || missing != 0 {
		t.Errorf("%s, %d missing", wrong, missing)
	}
	if err := db.View(ctx, "t_a", func(tx store.Tx) error {
		n := 0
		err := tx.Scan("more", nil, nil, false, func(_, _ []byte) bool { n++; return true })
		if n < acked || n > acked+1 || tx.Counter("more") != int64(n) {
			t.Errorf("%d acknowledged, %d there, counter %d", acked, n, tx.Counter("more"))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestFullDiskFailsTheCommitAndHarmsNothing(t *testing.T) {
	dir := mountSmall(t, "4m")
	path := filled(t, dir)
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	acked, err := fillUp(db)
	if acked == 0 || err == nil {
		t.Fatalf("%d records, %v", acked, err)
	}
	spoiled(t, db, err)
	survived(t, path, acked)
	// With the disk still full nothing gets worse, with room it goes on.
	if db, err := store.Open(path, store.Options{}); err == nil {
		_ = db.Close()
	} else if !errors.Is(err, store.ErrUnusable) {
		t.Errorf("open on the full disk: %v", err)
	}
	survived(t, path, acked)
	if _, err := store.Backup(ctx, path, filepath.Join(dir, "copy.db")); err == nil {
		t.Error("a backup on the full disk succeeded")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=16m", dir).CombinedOutput(); err != nil {
		t.Skipf("remount: %v %s", err, out)
	}
	again := openAt(t, path, store.Options{})
	if err := again.Update(ctx, "t_a", func(tx store.Tx) error { return tx.Put("x", []byte("more"), nil) }); err != nil {
		t.Error(err)
	}
}

func TestFileSizeLimitFailsTheCommitAndHarmsNothing(t *testing.T) {
	const child = "SWARMDECK_LIMITED_FILE"
	if path := os.Getenv(child); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 3 << 20, Max: 3 << 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		acked, err := fillUp(db)
		fmt.Printf("acked %d\n", acked)
		spoiled(t, db, err)
		return
	}
	path := filled(t, t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	var acked int
	if _, err := fmt.Sscanf(string(out), "acked %d", &acked); err != nil || acked == 0 {
		t.Fatalf("child said: %s", out)
	}
	survived(t, path, acked)
}
