package task

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
	"swarmdeck/engine/record"
)

// spilled are the members of a result's output that name what is in files
// beside the data file, and their digests, in hex.
type spilled struct {
	File         string `json:"spill"`
	SHA256       string `json:"spill_sha256"`
	Stderr       string `json:"spill_stderr"`
	StderrSHA256 string `json:"spill_stderr_sha256"`
	// Place is where they lie.
	Place place.Place `json:"spill_place"`
}

// ReconcileSpill compares outputs that are in files with their results. It
// reads each file as a whole. Those on another machine are compared there.
func (b *Table) ReconcileSpill(ctx context.Context, tenant string) (deltas []audit.Delta, _ error) {
	const perLook = 256
	if b.opt.Spill == "" {
		return nil, nil
	}
	for from := []byte(nil); ; {
		type output struct {
			task string
			spilled
		}
		var some []output
		seen := 0
		err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			return tx.Scan(bResult, from, nil, false, func(key, value []byte) (bool, error) {
				seen++
				from = append(bytes.Clone(key), 0)
				var r struct {
					Output spilled `json:"output"`
				}
				// What is no such output, or can't be read, has its digest in the log.
				if len(key) == 8 && bytes.Contains(value, []byte(`"spill`)) && core.DecodeStored(value, &r) == nil {
					some = append(some, output{core.NewID(core.TaskPrefix, tenant, record.LastSeq(key)), r.Output})
				}
				return seen < perLook, nil
			})
		})
		if err != nil {
			return deltas, err
		}
		for _, o := range some {
			if t, err := b.Header(ctx, core.Self(tenant, "reader"), o.task); err != nil || !b.spills(&t) {
				continue
			}
			for _, f := range [][3]string{{"spill", o.File, o.SHA256}, {"spill_stderr", o.Stderr, o.StderrSHA256}} {
				path := filepath.Join(b.opt.Spill, tenant, filepath.Base(f[1])) // they move with the data file
				if f[1] == "" || o.Place.Away(b.opt.Place, "the output", path) != nil {
					continue
				}
				sum, err := digestOf(ctx, path)
				if err != nil {
					return deltas, err
				}
				if sum != f[2] {
					deltas = append(deltas, audit.Delta{Subject: "result", ID: o.task, Field: f[0], Log: f[2], Store: sum})
				}
			}
		}
		if seen < perLook {
			return deltas, nil
		}
	}
}

// spills reports a task whose result may name files: what others say of files
// is their own word.
func (b *Table) spills(t *Task) bool { return b.opt.Spills != nil && b.opt.Spills(t.Kind) }

// digestOf is the SHA-256 of a file in hex, "" when it is not there.
func digestOf(ctx context.Context, path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "no file", err
	}
	sum := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if _, err := io.CopyN(sum, f, 4<<20); errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
}
