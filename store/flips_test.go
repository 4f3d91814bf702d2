package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestFlippedBitsNeverReadAsData flips one bit at a time: what is read is
// right or an error, what is missing the check notices, nothing panics, and a
// file that can't be opened is not written to.
func TestFlippedBitsNeverReadAsData(t *testing.T) {
	dir := t.TempDir()
	good := read(t, filled(t, dir))
	path := filepath.Join(dir, "flipped.db")
	end := 8192 + bytes.LastIndexByte(good[8192:], '9') // the rest is free
	r := rand.New(rand.NewPCG(3, 4))
	flips := 300
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
		expect.No(t, os.WriteFile(path, data, 0o600))
		report, checkErr := store.Check(ctx, path)
		unchanged(t, path, data)
		db, err := store.Open(path, store.Options{ReadOnly: i%2 == 0})
		if err != nil {
			expect.Err(t, err, store.ErrUnusable, "byte", at)
			unchanged(t, path, data)
			refused++
			continue
		}
		wrong, missing := compareRecords(db)
		expect.Is(t, wrong, "", "byte", at)
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
		return tx.Scan("x", nil, nil, false, func(k, v []byte) (bool, error) {
			i, err := strconv.Atoi(string(k))
			if err != nil || !bytes.Equal(v, recordValue(i)) {
				wrong = fmt.Sprintf("scan reads %q as %q", k, v)
			}
			seen++
			return true, nil
		})
	})
	if err != nil || seen != records {
		missing++
	}
	return wrong, missing
}

// TestADamagedRecordFailsTheUpdateThatMeetsIt: even one that ignores it.
func TestADamagedRecordFailsTheUpdateThatMeetsIt(t *testing.T) {
	path := filled(t, t.TempDir())
	data := read(t, path)
	at := bytes.LastIndex(data, recordValue(77))
	data[at+5] ^= 1
	expect.No(t, os.WriteFile(path, data, 0o600))
	r, err := store.Check(ctx, path)
	expect.True(t, err == nil && r.Found == 1 && errors.Is(r.Err(), store.ErrUnusable), "check: %+v, %v", r, err)
	db := openAt(t, path, store.Options{})
	key := []byte("0077")
	for name, meet := range map[string]func(store.Tx) error{
		"get": func(tx store.Tx) error { _, err := tx.Get("x", key); return err },
		"scan": func(tx store.Tx) error {
			return tx.Scan("x", nil, nil, false, func(_, _ []byte) (bool, error) { return true, nil })
		},
	} {
		expect.Err(t, db.View(ctx, "t_a", meet), store.ErrCorrupt, name, "in a view")
		if err := db.Update(ctx, "t_a", func(tx store.Tx) error {
			_ = meet(tx)
			return tx.Put("y", key, nil)
		}); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s in an update: %v", name, err)
		}
	}
	// Writing over it, or removing it, mends the bucket.
	expect.No(t, db.Update(ctx, "t_a", func(tx store.Tx) error { return tx.Put("x", key, recordValue(77)) }))
	wrong, missing := compareRecords(db)
	expect.True(t, wrong == "" && missing == 0, "%s, %d missing", wrong, missing)
}
