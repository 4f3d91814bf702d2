package op

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"swarmdeck/store"
)

// beside is what lies beside a data file and belongs to it, by what its name has
// after that of the file: the key that signs the log, the key of the secrets,
// and outputs that are too large for the file.
func beside() []string { return []string{".key", ".secrets.key", ".run/spill"} }

// Backup is a backup's report with what was copied beside it.
type Backup struct {
	*store.Report
	With []string `json:"with,omitempty"` // paths
}

// backUp copies a data file by data, and what belongs to it. Outputs are copied
// before and after: those that leave meanwhile, and those that come.
func backUp(ctx context.Context, from, dest string, data func() (*store.Report, error)) (b Backup, err error) {
	made := []string{".key", ".secrets.key", ".run"}
	for _, name := range append([]string{""}, made...) {
		if _, err := os.Lstat(dest + name); err == nil {
			return b, fmt.Errorf("%s: %w", dest+name, fs.ErrExist)
		}
	}
	defer func() {
		if err != nil {
			for _, name := range made { // by this backup: there were none before
				err = errors.Join(err, os.RemoveAll(dest+name))
			}
		}
	}()
	if b.With, err = copyBeside(ctx, from, dest); err != nil {
		return b, err
	}
	if b.Report, err = data(); err != nil {
		return b, err
	}
	b.With, err = copyBeside(ctx, from, dest)
	return b, err
}

// putBack brings what lies beside a backup to the data file that was restored
// from it. What lay there is kept beside the data file that was.
func putBack(ctx context.Context, backup, path, kept string) ([]string, error) {
	if kept == "" {
		kept = path + ".before-restore"
	}
	for _, name := range beside() {
		_, err := os.Lstat(backup + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a backup without it: what is there may fit
		}
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(kept+name), 0o700), os.Rename(path+name, kept+name))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return copyBeside(ctx, backup, path)
}

// copyBeside copies what is not there yet and returns the paths of all.
func copyBeside(ctx context.Context, from, to string) (all []string, err error) {
	for _, name := range beside() {
		if err := copyTree(ctx, from+name, to+name); err != nil {
			return nil, err
		}
		if _, err := os.Lstat(to + name); err == nil {
			all = append(all, to+name)
		}
	}
	return all, nil
}

// copyTree copies what is not there yet of a file or directory that may be missing.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) { // it left meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		dest := to + path[len(from):]
		switch {
		case d.IsDir():
			return os.MkdirAll(dest, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(path, dest)
	})
}

// copyFile copies a file that is not there yet, for its owner alone.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}
