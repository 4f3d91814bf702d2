package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// compactStep is how many bytes are copied per transaction.
const compactStep = 16 << 20

// Compact rewrites a data file that no process has open (ErrLocked) without
// its free pages. The new file is checked before it takes the old one's
// place; on any error the old file stands as it was. A file of which one meta
// page is damaged, and which Open refuses for that, is whole again afterwards,
// perhaps without its newest commit. It returns the sizes before and after, in
// bytes.
func Compact(ctx context.Context, path string) (before, after int64, err error) {
	before, after, err = compact(ctx, path)
	if err != nil {
		return 0, 0, fmt.Errorf("compact data file %s: %w", path, err)
	}
	return before, after, nil
}

func compact(ctx context.Context, path string) (before, after int64, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	src, file, err := openBolt(path, false, true)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if src != nil { // else bbolt may hold its locks after a panic
			err = errors.Join(err, src.Close())
			return
		}
		_ = abandon(file)
	}()
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	if _, err := build(ctx, path, func(f *os.File) error {
		if err := copyLive(f.Name(), src); err != nil {
			if errors.Is(err, errDamaged) {
				src = nil
			}
			return err
		}
		now, err := f.Stat()
		if err == nil {
			after = now.Size()
		}
		return err
	}, func(temp string) error {
		if err := os.Chmod(temp, info.Mode().Perm()); err != nil {
			return err
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
		return syncDir(filepath.Dir(path))
	}); err != nil {
		return 0, 0, err
	}
	return info.Size(), after, nil
}

var errDamaged = errors.New("damaged page")

// copyLive copies what is reachable in src to the empty file at path.
func copyLive(path string, src *bbolt.DB) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %w: %v", ErrUnusable, errDamaged, r)
		}
	}()
	dst, err := bbolt.Open(path, 0o600, &bbolt.Options{NoStatistics: true})
	if err != nil {
		return err
	}
	dst.AllocSize = 1 << 20
	var used int64
	err = bbolt.Compact(dst, src, compactStep)
	if err == nil {
		err = dst.View(func(tx *bbolt.Tx) error {
			used = tx.Size()
			return nil
		})
	}
	if err := errors.Join(err, dst.Close()); err != nil {
		return err
	}
	return os.Truncate(path, used) // the file was grown ahead of its use
}
