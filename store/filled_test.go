package store_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
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
