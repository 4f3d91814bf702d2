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

// ahead keeps the file written with zeros for some way past its used part. A
// sync of pages on blocks that were written before is one of data alone; pages
// in a hole make the file system commit its journal too, for most of the
// sync's time.
type ahead struct {
	end   int64 // of what is known to be written
	zeros []byte
	done  chan error // one slot; nil while nothing is under way
}

const (
	aheadLeast = 512 << 10 // what most commits stay within
	aheadMost  = 2 << 20   // of writing that is over before most commits are
)

// start writes zeros, beside the updates of a commit, when little is left past
// the used part of the file. No page of any commit is there before wait has
// returned.
func (a *ahead) start(f *os.File, used int64) {
	a.end = max(a.end, used)
	if a.end-used >= aheadLeast {
		return
	}
	a.done = make(chan error, 1)
	go func() { a.done <- a.keep(f, used) }()
}

// wait ends what start began.
func (a *ahead) wait() error {
	if a.done == nil {
		return nil
	}
	err := <-a.done
	a.done = nil
	return err
}

// keep writes zeros. Without room for at least aheadLeast of them it fails with
// what the system says of that (lacksRoom); whether the commit under way still
// fits is its own affair. What was written before is the reserve then.
func (a *ahead) keep(f *os.File, used int64) error {
	if a.zeros == nil {
		a.zeros = make([]byte, aheadLeast)
	}
	was, lack := a.end, error(nil)
	for to := used + min(growth(used), aheadMost); a.end < to; {
		n, err := f.WriteAt(a.zeros[:min(int64(len(a.zeros)), to-a.end)], a.end)
		a.end += int64(n)
		if err != nil {
			lack = err
			break
		}
	}
	if err := f.Sync(); err != nil {
		a.end = was
		return fmt.Errorf("grow the file: %w", err)
	}
	if a.end-used < aheadLeast && lacksRoom(lack) {
		return fmt.Errorf("grow the file: %w", lack)
	}
	return nil
}
