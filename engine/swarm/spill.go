package swarm

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
	"swarmdeck/engine/judge"
	"swarmdeck/store"
)

// spilled are the members of a result's output that name what is in files
// beside the data file, and their digests, in hex.
type spilled struct {
	File         string `json:"spill"`
	SHA256       string `json:"spill_sha256"`
	Stderr       string `json:"spill_stderr"`
	StderrSHA256 string `json:"spill_stderr_sha256"`
}

// ReconcileSpill compares outputs that are in files with their results. It
// reads each file as a whole.
func (s *Swarm) ReconcileSpill(ctx context.Context, tenant string) (deltas []audit.Delta, _ error) {
	const perLook = 256
	if s.opt.Spill == "" {
		return nil, nil
	}
	for from := []byte(nil); ; {
		type output struct {
			task string
			spilled
		}
		var some []output
		seen := 0
		err := s.store.View(ctx, tenant, func(tx store.Tx) error {
			return tx.Scan(bResult, from, nil, false, func(key, value []byte) bool {
				seen++
				from = append(bytes.Clone(key), 0)
				var r struct {
					Output spilled `json:"output"`
				}
				// What is no such output, or can't be read, has its digest in the log.
				if len(key) == 8 && bytes.Contains(value, []byte(`"spill`)) && core.DecodeStored(value, &r) == nil {
					some = append(some, output{core.NewID(core.TaskPrefix, tenant, seqAt(key)), r.Output})
				}
				return seen < perLook
			})
		})
		if err != nil {
			return deltas, err
		}
		for _, o := range some {
			// Only the engine's own results name files: an agent's may say anything.
			if t, err := s.Task(ctx, tenant, o.task); err != nil || t.Kind != judge.KindExec {
				continue
			}
			for _, f := range [][3]string{{"spill", o.File, o.SHA256}, {"spill_stderr", o.Stderr, o.StderrSHA256}} {
				if f[1] == "" {
					continue
				}
				sum, err := digestOf(ctx, filepath.Join(s.opt.Spill, tenant, filepath.Base(f[1]))) // they move with the data file
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
