package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/safeopen"
)

// Method is the method of the snapshots (model 4).
const Method = "fs_copy"

// refKind is the kind of a snapshot's external reference.
const refKind = "tree"

// Options of New.
type Options struct {
	// Dir is where snapshots are kept, in a directory for each tenant. It must
	// be given. Contents are shared with a tree only on the same file system.
	Dir string
	// Dest is where relative destinations and targets start from; "" is the
	// working directory.
	Dest string
	// Own is the engine's data file: it, and files of that name with . or - and
	// more, are never read or replaced.
	Own string
	// Limits of one tree; the zero value means DefaultLimits.
	Limits Limits
	// Spare is the free space, in bytes, that snapshots leave on the disk; 0
	// means 512 MiB.
	Spare uint64
	// Most is what the snapshots of one tenant may take, in bytes; 0 means 24
	// GiB. Shared blocks count as if they were not.
	Most int64
}

// Driver keeps files and directories.
type Driver struct {
	opt Options
	own *safeopen.Own // nil without Options.Own

	grain time.Duration // of the clocks of file systems

	mu      sync.Mutex
	stores  map[string]*store    // by tenant
	copying map[string]*progress // by place
}

var _ resource.Driver = (*Driver)(nil)

// New makes a driver. It reads and writes nothing yet.
func New(opt Options) (*Driver, error) {
	if opt.Dir == "" {
		return nil, core.Invalid("dir", "", "a directory")
	}
	for _, p := range []*string{&opt.Dir, &opt.Dest} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
		*p = abs
	}
	var own *safeopen.Own
	if opt.Own != "" {
		abs, err := filepath.Abs(opt.Own)
		if err != nil {
			return nil, fmt.Errorf("find the data file: %w", err)
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(dir, filepath.Base(abs))
		}
		opt.Own = abs
		if own, err = safeopen.OwnFiles(abs); err != nil {
			return nil, err
		}
	}
	if opt.Limits == (Limits{}) {
		opt.Limits = DefaultLimits()
	}
	opt.Limits.File = cmp.Or(opt.Limits.File, DefaultLimits().File)
	opt.Spare = cmp.Or(opt.Spare, 512<<20)
	opt.Most = cmp.Or(opt.Most, 24<<30)
	return &Driver{opt: opt, own: own, grain: grain, stores: map[string]*store{}, copying: map[string]*progress{}}, nil
}

func (d *Driver) store(tenant string) (*store, error) {
	if err := core.CheckTenant(tenant); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.stores[tenant]; s != nil {
		return s, nil
	}
	s, err := openStore(filepath.Join(d.opt.Dir, tenant))
	if err == nil {
		d.stores[tenant] = s
	}
	return s, err
}

// maxPath is how long a path may be.
const maxPath = 4000

// Place is the clean absolute path, without links, that a target stands for.
func (d *Driver) Place(field, target string) (string, error) {
	const want = "the path of a file or directory that is there"
	if target == "" || len(target) > maxPath || strings.IndexByte(target, 0) >= 0 {
		return "", core.Invalid(field, target, want)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(d.opt.Dest, target)
	}
	path, err := filepath.EvalSymlinks(target)
	if err != nil {
		return "", core.Errorf(core.InvalidInput, "%s: %q can't be used: %v; allowed: %s", field, target, reason(err), want).With("field", field)
	}
	if err := d.own.CheckWork(path); err != nil {
		return "", err
	}
	return path, nil
}

// reason is an error without the path in it.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

func (d *Driver) Look(_ context.Context, target string) (dag.Resource, error) {
	path, err := d.Place("target", target)
	if err != nil {
		return dag.Resource{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return dag.Resource{}, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return dag.Resource{}, core.Invalid("target", target, "a file or a directory")
	}
	if path == "/" {
		return dag.Resource{}, core.Invalid("target", target, "a directory below /")
	}
	return Describe("files", "dir", path), nil
}

// Describe is a path as a resource that a driver can keep; prefix begins its id.
func Describe(driver, prefix, path string) dag.Resource {
	sum := sha256.Sum256([]byte(path))
	return dag.Resource{
		ID: prefix + "-" + hex.EncodeToString(sum[:6]), Kind: dag.ResourceFile, Name: Printable(path),
		Capabilities: []dag.Capability{dag.CanSnapshot, dag.CanRestore, dag.CanFork, dag.CanShare},
		Metadata:     resource.Metadata(driver, Printable(path), exact(path)),
	}
}

// Printable is a path as it can be shown and recorded; PathOf finds the path
// again.
func Printable(path string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == '\ufffd' { // the record takes none of these
			return '?'
		}
		return r
	}, strings.ToValidUTF8(path, "?"))
	const most = 500
	if len(clean) > most {
		clean = "…" + strings.ToValidUTF8(clean[len(clean)-most:], "")
	}
	return clean
}

// exact keeps a path that does not read as itself.
func exact(path string) map[string]string {
	if Printable(path) == path {
		return nil
	}
	return map[string]string{"path_hex": hex.EncodeToString([]byte(path))}
}

// PathOf is the path of a resource that Look described.
func PathOf(r dag.Resource) (string, error) {
	var m struct {
		Path string `json:"path"`
		Hex  string `json:"path_hex"`
	}
	if err := core.DecodeStored(r.Metadata, &m); err != nil {
		return "", fmt.Errorf("read the metadata of resource %s: %w", r.ID, err)
	}
	if raw, err := hex.DecodeString(m.Hex); err == nil && len(raw) > 0 {
		m.Path = string(raw)
	}
	if !filepath.IsAbs(m.Path) || filepath.Clean(m.Path) != m.Path || m.Path == "/" {
		return "", core.Errorf(core.InvalidInput, "resource: %s has no path", r.ID).With("field", "resource")
	}
	return m.Path, nil
}

func (d *Driver) Probe(_ context.Context, r dag.Resource) (dag.Liveness, error) {
	path, err := PathOf(r)
	if err != nil {
		return dag.LiveUnknown, err
	}
	fd, err := openBeneath(path, unix.O_PATH)
	switch {
	case err == nil:
		_ = unix.Close(fd)
		return dag.Alive, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return dag.Dead, nil
	}
	return dag.LiveUnknown, err
}

func (d *Driver) Snapshot(ctx context.Context, tenant, id string, r dag.Resource, last *dag.ExtRef) (resource.Taken, error) {
	s, err := d.store(tenant)
	if err != nil {
		return resource.Taken{}, err
	}
	if err := CheckID(id); err != nil {
		return resource.Taken{}, err
	}
	s.sweeping.RLock()
	defer s.sweeping.RUnlock()
	done, err := s.receipt(id)
	if err == nil {
		return taken(done), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return resource.Taken{}, err
	}
	path, err := PathOf(r)
	if err != nil {
		return resource.Taken{}, err
	}
	took, err := d.take(ctx, s, id, path, last)
	if err != nil {
		return resource.Taken{}, err
	}
	return taken(took), nil
}

// take keeps a tree: it looks through all of it, and reads and writes what has changed
// since it was seen last.
func (d *Driver) take(ctx context.Context, s *store, id, path string, last *dag.ExtRef) (receipt, error) {
	w := &walker{ctx: ctx, limits: d.opt.Limits, own: d.opt.Own, among: d.own.Among()}
	began := time.Now()
	all, err := w.walk(path)
	if err != nil {
		return receipt{}, err
	}
	was := s.recall(path)
	var known []entry
	if was != nil {
		known = was.all
	}
	b := &batch{store: s, room: func() error { return d.room(s) }, fresh: map[string]string{}}
	defer b.drop()
	r := reader{walker: w, batch: b}
	some := match(known, all)
	defer d.begins(path, &r.done, len(some))()
	if all, err = r.read(all, some); err != nil {
		return receipt{}, err
	}
	now := &seen{all: all}
	done, err := b.keep(id, was, now, receipt{Notes: w.left.notes(d.opt.Limits)}, last)
	if err != nil {
		return done, fmt.Errorf("write a snapshot of %s: %w", path, err)
	}
	unsettle(all, began.Add(-d.grain))
	s.remember(path, was, now)
	return done, nil
}

// room refuses to fill the disk, and more than is allowed of it.
func (d *Driver) room(s *store) error {
	used, err := s.size()
	if err != nil {
		return err
	}
	if used > d.opt.Most {
		return core.Errorf(core.Unavailable, "there is no room for a snapshot: those of this tenant take %d bytes, at most %d are allowed", used, d.opt.Most)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("look for free space: %w", err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < d.opt.Spare {
		return core.Errorf(core.Unavailable, "there is no room for a snapshot: %d bytes are free, %d are to stay so", free, d.opt.Spare)
	}
	return nil
}

func taken(r receipt) resource.Taken {
	return resource.Taken{
		Method: Method, Ref: dag.ExtRef{Kind: refKind, ID: "sha256:" + r.Tree}, Consistency: "crash_consistent",
		Size: r.Bytes, Notes: r.Notes,
	}
}

// some names a few paths.
func some(paths []string) string {
	const most = 5
	slices.Sort(paths)
	shown := core.Map(paths[:min(len(paths), most)], func(path string) string { return core.Clip(Printable(path)) })
	if len(paths) > most {
		shown = append(shown, "…")
	}
	return strings.Join(shown, ", ")
}

// notes say what a snapshot does not hold.
func (l left) notes(limits Limits) (all []string) {
	for _, n := range []struct {
		n    int
		what string
	}{
		{l.special, "pipes, sockets and devices were left out"},
		{l.mounts, "places of other file systems were left out"},
		{l.own, "files of the engine itself were left out"},
		{l.out, "links lead out of it: they are kept as links"},
	} {
		if n.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	for _, n := range []struct {
		paths []string
		what  string
	}{
		{l.large, fmt.Sprintf("files larger than %d bytes were left out", limits.File)},
		{l.ignored, "files and directories that a " + ignoreFile + " names were left out"},
	} {
		if len(n.paths) > 0 {
			all = append(all, fmt.Sprintf("%d %s: %s", len(n.paths), n.what, some(n.paths)))
		}
	}
	return all
}

// Drop implements resource.Driver. Its contents go with the next Sweep.
func (d *Driver) Drop(_ context.Context, tenant string, snap dag.Snapshot) error {
	s, err := d.store(tenant)
	if err != nil {
		return err
	}
	if err := CheckID(snap.ID); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.dir, "taken", snap.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncPath(filepath.Join(s.dir, "taken"))
}

func (d *Driver) Sweep(_ context.Context, tenant string) error {
	s, err := d.store(tenant)
	if err != nil {
		return err
	}
	return s.sweep()
}
