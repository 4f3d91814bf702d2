package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// begun says which tree was made under an id, so that it is found again after
// a crash whether it was put in its place or not. It is on disk before that.
type begun struct {
	Place string `json:"place_hex"` // it may hold any byte
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
}

// putting is one tree on its way to its place.
type putting struct {
	*store
	id    string
	place string // where it is to be
	over  bool   // in exchange for what is there
}

// stage is where the tree is made: beside its place, on the same file system.
func (p *putting) stage() string { return Stage(p.place, p.id) }

// Stage is where what is made under an id lies until it is moved to its place.
func Stage(place, id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(filepath.Dir(place), ".swarmdeck-"+hex.EncodeToString(sum[:8]))
}

func (p *putting) marker() string { return filepath.Join(p.dir, "begun", p.id) }

func (d *Driver) Restore(ctx context.Context, tenant, id string, snap dag.Snapshot, r dag.Resource, dest string) (dag.Resource, error) {
	p, err := d.putting(tenant, id, r, dest)
	if err != nil {
		return dag.Resource{}, err
	}
	sum, err := parseDigest(snap.ExternalRef.ID)
	if err != nil {
		return dag.Resource{}, err
	}
	p.sweeping.RLock()
	defer p.sweeping.RUnlock()
	all, err := p.tree(sum)
	if err != nil {
		return dag.Resource{}, err
	}
	err = p.put(ctx, func(dir int, name string) error {
		if err := p.build(ctx, dir, name, all); err != nil || !p.over {
			return err
		}
		return d.carry(ctx, p, dir, name, all)
	})
	if err != nil {
		return dag.Resource{}, fmt.Errorf("restore %s to %s: %w", snap.ID, p.place, err)
	}
	return Describe("files", "dir", p.place), nil
}

// putting finds out where a restore goes.
func (d *Driver) putting(tenant, id string, r dag.Resource, dest string) (*putting, error) {
	s, err := d.store(tenant)
	if err != nil {
		return nil, err
	}
	if err := CheckID(id); err != nil {
		return nil, err
	}
	path, err := PathOf(r)
	if err != nil {
		return nil, err
	}
	p := &putting{store: s, id: id, place: path, over: true}
	if dest != "" {
		if p.place, err = d.Dest(path, dest); err != nil {
			return nil, err
		}
		p.over = false
	} else if d.opt.Own != "" && inside(d.opt.Own, path) {
		return nil, core.Errorf(core.InvalidInput, "resource: %s holds the engine's own data and is not replaced; allowed: a destination of its own", path).With("field", "resource")
	}
	return p, nil
}

// Dest is where a destination leads: a place that is not the resource's nor in
// it, in a directory that is there.
func (d *Driver) Dest(path, dest string) (string, error) {
	const want = "a new path in a directory that is there, outside of what is restored"
	if dest == "" || len(dest) > maxPath || strings.IndexByte(dest, 0) >= 0 {
		return "", core.Invalid("to", dest, want)
	}
	if !filepath.IsAbs(dest) {
		dest = filepath.Join(d.opt.Dest, dest)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(dest)))
	if err != nil {
		return "", core.Errorf(core.InvalidInput, "to: %q can't be used: %v; allowed: %s", dest, reason(err), want).With("field", "to")
	}
	place := filepath.Join(dir, filepath.Base(dest))
	if place == "/" || inside(place, path) || inside(path, place) {
		return "", core.Invalid("to", dest, want)
	}
	return place, nil
}

// inside reports a path that is in a directory, or is that.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// put makes a tree beside its place and moves it there at once.
func (p *putting) put(ctx context.Context, build func(dir int, name string) error) error {
	parent, err := openBeneath(filepath.Dir(p.place), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	done, err := p.done(parent)
	if err != nil {
		return err
	}
	if done {
		return p.clean()
	}
	if _, err := lookAt(parent, filepath.Base(p.place)); err == nil != p.over {
		if p.over {
			return core.Errorf(core.NotFound, "resource: %s is not there any more; allowed: a destination of its own", p.place).With("field", "resource")
		}
		return core.Errorf(core.Conflict, "to: %s is there already; allowed: a new path", p.place).With("field", "to")
	}
	if err := os.Remove(p.marker()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := RemoveTree(p.stage()); err != nil {
		return fmt.Errorf("remove what was left of an earlier try: %w", err)
	}
	name := filepath.Base(p.stage())
	if err := build(parent, name); err != nil {
		_ = RemoveTree(p.stage()) // the next try does it otherwise
		return err
	}
	st, err := lookAt(parent, name)
	if err != nil {
		return err
	}
	if err := p.write(p.marker(), core.MustEncode(begun{hex.EncodeToString([]byte(p.place)), uint64(st.Dev), st.Ino})); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	flags := uint(unix.RENAME_NOREPLACE)
	if p.over {
		if err := unmounted(p.place); err != nil {
			_ = RemoveTree(p.stage()) // the next try does it otherwise
			return err
		}
		flags = unix.RENAME_EXCHANGE
	}
	if err := unix.Renameat2(parent, name, parent, filepath.Base(p.place), flags); err != nil {
		return fmt.Errorf("move the tree to its place: %w", err)
	}
	if err := unix.Fsync(parent); err != nil {
		return err
	}
	return p.clean()
}

// done reports whether the tree made under this id is in its place.
func (p *putting) done(parent int) (bool, error) {
	data, err := os.ReadFile(p.marker())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var b begun
	if err := core.DecodeStored(data, &b); err != nil {
		return false, fmt.Errorf("read what was begun under %s: %w", p.id, err)
	}
	if b.Place != hex.EncodeToString([]byte(p.place)) {
		return false, core.Errorf(core.Conflict, "id: %s was begun for another place", p.id).With("field", "id")
	}
	st, err := lookAt(parent, filepath.Base(p.place))
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil && uint64(st.Dev) == b.Dev && st.Ino == b.Ino, err
}

// clean removes what the exchange has left: the tree that was there before.
func (p *putting) clean() error {
	if !p.over {
		return nil
	}
	if err := RemoveTree(p.stage()); err != nil {
		return fmt.Errorf("remove the tree that was replaced: %w", err)
	}
	return nil
}

func lookAt(dir int, name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func (d *Driver) Undo(_ context.Context, tenant, id string, r dag.Resource, dest string) error {
	p, err := d.putting(tenant, id, r, dest)
	if err != nil {
		return err
	}
	parent, err := openBeneath(filepath.Dir(p.place), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	done, err := p.done(parent)
	if err != nil {
		return err
	}
	if done && !p.over {
		err = RemoveTree(p.place)
	}
	err = errors.Join(err, RemoveTree(p.stage()))
	if !done || !p.over {
		if gone := os.Remove(p.marker()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
