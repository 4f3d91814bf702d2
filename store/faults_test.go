package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/store"
)

var ctx = context.Background()

const records = 400

func recordValue(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%04d", i), 10+i%40) }

// filled makes a data file with known records and returns its path.
func filled(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "data.db")
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.CreateTenant(ctx, "t_a"); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < records; i += 20 {
		if err := db.Update(ctx, "t_a", func(tx store.Tx) error {
			for j := i; j < i+20; j++ {
				if err := tx.Put("x", fmt.Appendf(nil, "%04d", j), recordValue(j)); err != nil {
					return err
				}
				tx.Add("n", 1)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unchanged checks that a refused opening wrote nothing.
func unchanged(t testing.TB, path string, before []byte) {
	t.Helper()
	if !bytes.Equal(read(t, path), before) {
		t.Errorf("%s was written to", path)
	}
}

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
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{true, false} {
			db, err := store.Open(path, store.Options{ReadOnly: readOnly})
			if err == nil {
				_ = db.Close()
				t.Errorf("%s: opened", name)
			} else if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r, err := store.Check(ctx, path); err == nil && r.OK {
			t.Errorf("%s: passes the check", name)
		}
		unchanged(t, path, data)
	}
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, store.ErrUnusable) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := store.Open(filepath.Join(dir, "none.db"), store.Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, store.ErrUnusable) {
		t.Errorf("a missing file, read-only: %v", err)
	}
}

// TestFlippedBitsNeverReadAsData flips one bit at a time: what is read is
// right or an error, what is missing the check notices, nothing panics, and a
// file that can't be opened is not written to.
func TestFlippedBitsNeverReadAsData(t *testing.T) {
	dir := t.TempDir()
	good := read(t, filled(t, dir))
	path := filepath.Join(dir, "flipped.db")
	end := 8192 + bytes.LastIndexByte(good[8192:], '9') // the rest is free
	r := rand.New(rand.NewPCG(3, 4))
	flips := 600
	if testing.Short() {
		flips = 100
	}
	refused, noticed, harmless := 0, 0, 0
	for i := range flips {
		at := r.IntN(end)
		switch i % 6 {
		case 0:
			at = r.IntN(8192) % 4096 % 96 // the meta pages' contents
			at += 4096 * r.IntN(2)
		case 1:
			at = r.IntN(end/4096)*4096 + r.IntN(200) // a page's header
		}
		data := bytes.Clone(good)
		data[at] ^= 1 << r.IntN(8)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		report, checkErr := store.Check(ctx, path)
		unchanged(t, path, data)
		db, err := store.Open(path, store.Options{ReadOnly: i%2 == 0})
		if err != nil {
			if !errors.Is(err, store.ErrUnusable) {
				t.Errorf("byte %d: %v", at, err)
			}
			unchanged(t, path, data)
			refused++
			continue
		}
		wrong, missing := compareRecords(db)
		if wrong != "" {
			t.Errorf("byte %d: %s", at, wrong)
		}
		sound := checkErr == nil && report.OK
		switch {
		case missing > 0 && sound:
			t.Errorf("byte %d: %d records can't be read, and the check is content", at, missing)
		case !sound:
			noticed++
		default:
			harmless++
		}
		_ = db.Close()
	}
	t.Logf("%d flips: %d refused at open, %d noticed by the check, %d in unused bytes", flips, refused, noticed, harmless)
}

// compareRecords reads everything in both ways. It returns what read wrongly,
// and how many records did not read at all.
func compareRecords(db *store.DB) (wrong string, missing int) {
	_ = db.View(ctx, "t_a", func(tx store.Tx) error {
		for i := range records {
			v, err := tx.Get("x", fmt.Appendf(nil, "%04d", i))
			switch {
			case err != nil || v == nil:
				missing++
			case !bytes.Equal(v, recordValue(i)):
				wrong = fmt.Sprintf("record %d reads %q", i, v)
			}
		}
		return nil
	})
	seen := 0
	err := db.View(ctx, "t_a", func(tx store.Tx) error {
		if n := tx.Counter("n"); n != records && n != 0 {
			wrong = fmt.Sprintf("counter reads %d", n)
		}
		return tx.Scan("x", nil, nil, false, func(k, v []byte) bool {
			i, err := strconv.Atoi(string(k))
			if err != nil || !bytes.Equal(v, recordValue(i)) {
				wrong = fmt.Sprintf("scan reads %q as %q", k, v)
			}
			seen++
			return true
		})
	})
	if err != nil || seen != records {
		missing++
	}
	return wrong, missing
}

func TestFileCutShortUnderAnOpenStoreIsAnError(t *testing.T) {
	path := filled(t, t.TempDir())
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.Truncate(path, 16<<10); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err = db.View(ctx, "t_a", func(tx store.Tx) error {
			return tx.Scan("x", nil, nil, false, func(_, _ []byte) bool { return true })
		})
		if !errors.Is(err, store.ErrUnusable) {
			t.Errorf("view: %v", err)
		}
		err = db.Update(ctx, "t_a", func(tx store.Tx) error { return tx.Put("x", []byte("0000"), nil) })
		if !errors.Is(err, store.ErrUnusable) {
			t.Errorf("update: %v", err)
		}
	}
}

func TestReadOnlyOpensWriteNothing(t *testing.T) {
	path := filled(t, t.TempDir())
	before := read(t, path)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	a := openAt(t, path, store.Options{ReadOnly: true})
	b := openAt(t, path, store.Options{ReadOnly: true}) // readers share
	for _, db := range []*store.DB{a, b} {
		if wrong, missing := compareRecords(db); wrong != "" || missing != 0 {
			t.Errorf("%s, %d missing", wrong, missing)
		}
		if err := db.Update(ctx, "t_a", func(store.Tx) error { return nil }); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("update: %v", err)
		}
		if err := db.CreateTenant(ctx, "t_b"); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("create: %v", err)
		}
	}
	if _, err := store.Open(path, store.Options{}); !errors.Is(err, store.ErrLocked) && !errors.Is(err, os.ErrPermission) {
		t.Errorf("writable beside readers: %v", err)
	}
	unchanged(t, path, before)
}

func TestReadOnlyFileSystemIsAClearError(t *testing.T) {
	dir := mountSmall(t, "2m")
	path := filled(t, dir)
	if out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput(); err != nil {
		t.Skipf("remount: %v %s", err, out)
	}
	if _, err := store.Open(path, store.Options{}); !errors.Is(err, store.ErrUnusable) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("open: %v", err)
	}
	db := openAt(t, path, store.Options{ReadOnly: true})
	if wrong, missing := compareRecords(db); wrong != "" || missing != 0 {
		t.Errorf("%s, %d missing", wrong, missing)
	}
}

func TestSecondOwnerIsToldWhoHasTheFile(t *testing.T) {
	path := filled(t, t.TempDir())
	db := openAt(t, path, store.Options{})
	for _, opt := range []store.Options{{}, {ReadOnly: true}} {
		_, err := store.Open(path, opt)
		if !errors.Is(err, store.ErrLocked) {
			t.Fatalf("second open: %v", err)
		}
		if _, e := os.Stat("/proc/locks"); e == nil && !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
			t.Errorf("the owner is not named: %v", err)
		}
	}
	for name, err := range map[string]error{
		"check":   second(store.Check(ctx, path)),
		"backup":  second(store.Backup(ctx, path, path+".copy")),
		"stats":   second(store.ReadStats(ctx, path)),
		"restore": second(store.Restore(ctx, path, filled(t, t.TempDir()))),
	} {
		if !errors.Is(err, store.ErrLocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := store.Compact(ctx, path); !errors.Is(err, store.ErrLocked) {
		t.Errorf("compact: %v", err)
	}
	if wrong, missing := compareRecords(db); wrong != "" || missing != 0 {
		t.Errorf("%s, %d missing", wrong, missing)
	}
}

func second[T any](_ T, err error) error { return err }

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
