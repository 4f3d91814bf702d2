package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"
)

// create makes a new data file under another name and publishes it whole.
// When another process was faster its file stands.
func create(path string, schema int) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	temp, err := tempName(path)
	if err != nil {
		return fmt.Errorf("%w: create: %w", ErrUnusable, err)
	}
	defer os.Remove(temp)
	db, err := bbolt.Open(temp, 0o600, &bbolt.Options{NoStatistics: true})
	if err != nil {
		return fmt.Errorf("%w: create: %w", ErrUnusable, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return writeIdentity(tx, schema) })
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("%w: create: %w", ErrUnusable, err)
	}
	if err := publish(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: create: %w", ErrUnusable, err)
	}
	return nil
}

// tempName makes an empty private file beside path.
func tempName(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// publish gives the finished file temp its name, durably, unless that is
// taken (fs.ErrExist).
func publish(temp, path string) error {
	err := os.Link(temp, path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return err
	case err != nil: // a file system without hard links
		if _, e := os.Lstat(path); e == nil {
			return fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes names durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // not every file system can, or has to
	}
	return errors.Join(err, d.Close())
}
