package store_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
)

var ctx = context.Background()

const records = 400

func recordValue(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%04d", i), 10+i%40) }

// filled makes a data file with known records and returns its path.
func filled(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "data.db")
	db := expect.Of(store.Open(path, store.Options{}))(t)
	expect.No(t, db.CreateTenant(ctx, "t_a"))
	for i := 0; i < records; i += 20 {
		expect.No(t, db.Update(ctx, "t_a", func(tx store.Tx) error {
			for j := i; j < i+20; j++ {
				if err := tx.Put("x", fmt.Appendf(nil, "%04d", j), recordValue(j)); err != nil {
					return err
				}
				tx.Add("n", 1)
			}
			return nil
		}))
	}
	expect.No(t, db.Close())
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	return expect.Of(os.ReadFile(path))(t)
}

// unchanged checks that a refused opening wrote nothing.
func unchanged(t testing.TB, path string, before []byte) {
	t.Helper()
	expect.True(t, bytes.Equal(read(t, path), before), "%s was written to", path)
}
