package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store/internal/group"
)

// FuzzSurvey feeds the checker damaged files: it must end, without a panic.
func FuzzSurvey(f *testing.F) {
	path := filepath.Join(f.TempDir(), "data.db")
	db := expect.Of(Open(path, Options{}))(f)
	ctx := context.Background()
	expect.No(f, db.CreateTenant(ctx, "t_a"))
	expect.No(f, db.Update(ctx, "t_a", func(tx Tx) error {
		for i := range 200 {
			if err := tx.Put("x", fmt.Appendf(nil, "%03d", i), make([]byte, 150)); err != nil {
				return err
			}
		}
		return tx.Put("y", []byte("large"), make([]byte, 9000))
	}))
	expect.No(f, db.Close())
	good := expect.Of(os.ReadFile(path))(f)
	m := expect.Of(findMeta(bytes.NewReader(good), int64(len(good))))(f)
	good = good[:m.pages*m.pageSize]
	f.Add([]byte{})
	f.Add([]byte{0x00, 0x20, 0x10, 0xff})
	f.Add([]byte{0x00, 0x40, 0x0c, 0x01, 0x00, 0x60, 0x0a, 0xff})
	// Four bytes of the input change one byte of the file: place and value.
	f.Fuzz(func(t *testing.T, edits []byte) {
		data := bytes.Clone(good)
		for ; len(edits) >= 4; edits = edits[4:] {
			at := int(binary.LittleEndian.Uint32(append(bytes.Clone(edits[:3]), 0))) % len(data)
			data[at] = edits[3]
		}
		for i := range 2 { // with valid sums the contents get looked at
			b := data[i*4096+pageHeader:]
			sum := fnv.New64a()
			sum.Write(b[:metaSum])
			binary.NativeEndian.PutUint64(b[metaSum:], sum.Sum64())
		}
		r := bytes.NewReader(data)
		m, err := findMeta(r, int64(len(data)))
		if err != nil {
			return
		}
		identityOf(r, m)
		report := expect.Of(surveyPages(ctx, r, m))(t)
		expect.True(t, (report.Found == 0) == (len(report.Problems) == 0), "%d found, %d told", report.Found, len(report.Problems))
	})
}

func FuzzUnwrap(f *testing.F) {
	f.Add([]byte("key"), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		seed := group.SeedOf("t_a", "x")
		record := group.Wrap(nil, seed, key, value)
		got, err := group.Unwrap(seed, "x", key, record)
		expect.Must(t, err == nil && bytes.Equal(got, value), "%q, %v", got, err)
		expect.Fails(t, expect.Fault(group.Unwrap(group.SeedOf("t_b", "x"), "x", key, record)), "another tenant's record passes")
		_, _ = group.Unwrap(seed, "x", key, value)
	})
}
