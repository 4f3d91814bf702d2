package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// Backup copies the open store to a new file dest, mode 0600, while work goes
// on: the copy is one moment's state. It is checked before it gets its name,
// and never replaces a file. The report is the copy's.
func (db *DB) Backup(ctx context.Context, dest string) (*Report, error) {
	r, err := db.backup(ctx, dest)
	if err != nil {
		return nil, fmt.Errorf("back up %s to %s: %w", db.path, dest, err)
	}
	return r, nil
}

// Backup is DB.Backup for a data file that no process has open.
func Backup(ctx context.Context, path, dest string) (*Report, error) {
	db, err := open(path, Options{ReadOnly: true, anySchema: true})
	if err != nil {
		return nil, fmt.Errorf("open data file %s: %w", path, err)
	}
	defer db.Close()
	return db.Backup(ctx, dest)
}

func (db *DB) backup(ctx context.Context, dest string) (*Report, error) {
	if err := vacant(dest); err != nil {
		return nil, err
	}
	return build(ctx, dest, func(f *os.File) error {
		return db.read(ctx, func(tx *bbolt.Tx) error {
			_, err := tx.WriteTo(untilDone{ctx, f})
			return err
		})
	}, func(temp string) error { return publish(temp, dest) })
}

// Fresh makes a new data file dest, mode 0600, that fill fills. It is checked before it
// gets its name, and never replaces a file.
func Fresh(ctx context.Context, dest string, fill func(*DB) error) (*Report, error) {
	r, err := fresh(ctx, dest, fill)
	if err != nil {
		return nil, fmt.Errorf("make data file %s: %w", dest, err)
	}
	return r, nil
}

func fresh(ctx context.Context, dest string, fill func(*DB) error) (*Report, error) {
	if err := vacant(dest); err != nil {
		return nil, err
	}
	temp, err := tempName(dest)
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	if err := os.Remove(temp); err != nil { // an empty file is no data file
		return nil, err
	}
	db, err := open(temp, Options{})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fill(db), db.Close()); err != nil {
		return nil, err
	}
	r, err := check(ctx, temp)
	if err != nil {
		return nil, err
	}
	r.Path = dest
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r, publish(temp, dest)
}

// vacant fails when a file of that name exists.
func vacant(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w; choose another name or remove it", path, fs.ErrExist)
	}
	return nil
}

// build writes a data file beside path under another name, syncs and checks
// it, and hands it to place. Whatever fails, nothing stays behind.
func build(ctx context.Context, path string, write func(*os.File) error, place func(temp string) error) (*Report, error) {
	temp, err := tempName(path)
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	f, err := os.OpenFile(temp, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	r, err := surveyFile(ctx, f)
	if err != nil {
		return nil, err
	}
	r.OK, r.Path = r.Found == 0, path
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r, place(temp)
}

// untilDone is a writer that stops with its context.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

func (u untilDone) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// Restore puts the backup from in the place of the data file at path. No
// process may have that open (ErrLocked). The backup is copied and the copy
// checked first; a backup with any damage is refused and nothing changes. The
// file that stood there is kept, under the returned name ("" when there was
// none): it may be the damaged one. The epoch ends above both files', so that
// no token of either is valid any more.
func Restore(ctx context.Context, path, from string) (kept string, err error) {
	kept, err = restore(ctx, path, from)
	if err != nil {
		return "", fmt.Errorf("restore %s from %s: %w", path, from, err)
	}
	return kept, nil
}

func restore(ctx context.Context, path, from string) (kept string, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	source, err := lockFile(from, false)
	if err != nil {
		return "", err
	}
	defer source.Close()
	var epoch uint64
	old, err := lockFile(path, true)
	switch {
	case err == nil:
		defer old.Close()
		if sameFile(source, old) {
			return "", fmt.Errorf("%w: the backup is the data file itself", ErrUnusable)
		}
		epoch = epochOf(old)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	_, err = build(ctx, path, func(f *os.File) error {
		if _, err := io.Copy(untilDone{ctx, f}, source); err != nil {
			return err
		}
		r, err := surveyFile(ctx, f)
		if err != nil {
			return err
		}
		if r.OK = r.Found == 0; !r.OK {
			return r.Err()
		}
		return raiseEpoch(f.Name(), epoch)
	}, func(temp string) error {
		if old == nil {
			return publish(temp, path)
		}
		kept, err = exchange(temp, path)
		return err
	})
	return kept, err
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// epochOf reads the epoch of a file that may be damaged.
func epochOf(f *os.File) uint64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	m, err := findMeta(f, info.Size())
	if err != nil {
		return 0
	}
	return identityOf(f, m).epoch
}

// raiseEpoch lifts a file's epoch above its own and another.
func raiseEpoch(path string, other uint64) error {
	db, _, err := openBolt(path, false, false)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		id, err := readIdentity(tx)
		if err != nil {
			return err
		}
		id.epoch = max(id.epoch, other) + 1
		return id.write(tx)
	})
	return errors.Join(err, db.Close())
}

// exchange moves temp to path, the file there to a dated name beside it.
func exchange(temp, path string) (kept string, err error) {
	stamp := path + ".before-restore-" + time.Now().UTC().Format("20060102T150405Z")
	for i := 0; ; i++ {
		kept = stamp
		if i > 0 {
			kept = fmt.Sprintf("%s-%d", stamp, i)
		}
		err := os.Link(path, kept)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil { // a file system without hard links
			if err := os.Rename(path, kept); err != nil {
				return "", err
			}
		}
		break
	}
	if err := os.Rename(temp, path); err != nil {
		return "", err
	}
	return kept, syncDir(filepath.Dir(path))
}
