// Package git keeps git worktrees. A snapshot is a commit in a repository of
// the engine's own: the files that are tracked, or could be, byte for byte,
// with the commit that was checked out; what is ignored, empty directories and
// repositories in the repository are not in it. It is made again as a new
// worktree of the same repository, on a branch of its own, with the commit of
// then checked out and the files of then on top.
//
// A worktree is hostile, its configuration too: git is never run on its
// repository. Files are read and written with a repository of the engine's own;
// of the worktree's, the refs are read here, and the objects of the commit that
// was checked out by git on ours. A new worktree and its branch are a few small
// files in it, which are written here (gitrepository-layout(5)). A branch that
// git has packed since stays when its worktree is taken back.
package git

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
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/safeopen"
)

// Method is the method of the snapshots.
const Method = "git"

// Options of New.
type Options struct {
	Cells *cell.Supervisor // starts git
	// Dir is where snapshots are kept, in a repository for each tenant. It must
	// be given.
	Dir string
	// Files says which places there are; limits of a tree are the same.
	Files  *files.Driver
	Limits files.Limits // the zero value means files.DefaultLimits
}

// Driver keeps git worktrees.
type Driver struct {
	opt Options

	mu sync.Mutex // one repository is made at a time
}

var _ resource.Driver = (*Driver)(nil)

// New makes a driver. It runs nothing yet.
func New(opt Options) (*Driver, error) {
	abs, err := filepath.Abs(opt.Dir)
	if err != nil || opt.Dir == "" || opt.Files == nil {
		return nil, core.Invalid("dir", opt.Dir, "a directory, and a driver of files")
	}
	opt.Dir = abs
	if opt.Limits == (files.Limits{}) {
		opt.Limits = files.DefaultLimits()
	}
	return &Driver{opt: opt}, nil
}

// Look implements resource.Driver. A place that is no worktree is NOT_FOUND.
func (d *Driver) Look(_ context.Context, target string) (dag.Resource, error) {
	path, err := d.opt.Files.Place("target", target)
	if err != nil {
		return dag.Resource{}, err
	}
	if _, err := worktreeAt(path); err != nil {
		return dag.Resource{}, err
	}
	return describe(path), nil
}

func describe(path string) dag.Resource {
	sum := sha256.Sum256([]byte(path))
	more := map[string]string{}
	if files.Printable(path) != path {
		more["path_hex"] = hex.EncodeToString([]byte(path))
	}
	return dag.Resource{
		ID: "git-" + hex.EncodeToString(sum[:6]), Kind: dag.ResourceFile, Name: files.Printable(path),
		Capabilities: []dag.Capability{dag.CanSnapshot, dag.CanRestore, dag.CanFork, dag.CanShare},
		Metadata:     resource.Metadata("git", files.Printable(path), more),
	}
}

// worktree is one as its own files tell.
type worktree struct {
	path   string
	gitDir string // its own
	common string // of the repository
}

func notOne(path, why string) error {
	return core.Errorf(core.NotFound, "target: %s is no git worktree: %s", path, why).With("field", "target")
}

// worktreeAt reads what makes a directory a worktree. One that says it belongs
// to a repository must be known there: any file can say so.
func worktreeAt(path string) (w worktree, err error) {
	dot := filepath.Join(path, ".git")
	info, err := os.Lstat(dot)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return w, notOne(path, "there is no .git")
	}
	switch {
	case err != nil:
		return w, err
	case info.IsDir():
		w = worktree{path, dot, dot}
	case info.Mode().IsRegular():
		to, err := pointer(dot, "gitdir: ")
		if err != nil {
			return w, notOne(path, err.Error())
		}
		back, err := pointer(filepath.Join(to, "gitdir"), "")
		if real, bad := filepath.EvalSymlinks(filepath.Dir(back)); err != nil || bad != nil || real != path {
			return w, notOne(path, "the repository that it names does not know it")
		}
		w = worktree{path, to, to}
		if common, err := pointer(filepath.Join(to, "commondir"), ""); err == nil {
			w.common = common
		}
	default:
		return w, notOne(path, ".git is neither a directory nor a file")
	}
	for _, name := range []string{filepath.Join(w.gitDir, "HEAD"), filepath.Join(w.common, "objects")} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&os.ModeSymlink != 0 {
			return w, notOne(path, "its repository has no "+filepath.Base(name))
		}
	}
	return w, nil
}

// maxPointer bounds a file that holds a path or the name of a ref, in bytes.
const maxPointer = 8191

// pointerText reads a small file, whoever put it there.
func pointerText(file string) (string, error) {
	var nobody *safeopen.Own
	root, err := nobody.Root(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	defer root.Close()
	data, err := root.Read(filepath.Base(file), maxPointer)
	text := strings.TrimSuffix(string(data), "\n")
	if err == nil && (text == "" || strings.ContainsAny(text, "\x00\n")) {
		err = fmt.Errorf("%s names nothing", filepath.Base(file))
	}
	return text, err
}

// pointer reads a file that holds a path.
func pointer(file, prefix string) (string, error) {
	text, err := pointerText(file)
	if err != nil {
		return "", err
	}
	to, ok := strings.CutPrefix(text, prefix)
	if !ok || to == "" {
		return "", fmt.Errorf("%s names no place", filepath.Base(file))
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	return filepath.Clean(to), nil
}

// of finds the worktree of a resource.
func of(r dag.Resource) (worktree, error) {
	path, err := files.PathOf(r)
	if err != nil {
		return worktree{}, err
	}
	return worktreeAt(path)
}

// Probe implements resource.Driver.
func (d *Driver) Probe(_ context.Context, r dag.Resource) (dag.Liveness, error) {
	_, err := of(r)
	switch {
	case err == nil:
		return dag.Alive, nil
	case errors.Is(err, core.Kind(core.NotFound)):
		return dag.Dead, nil
	}
	return dag.LiveUnknown, err
}

// Drop implements resource.Driver.
func (d *Driver) Drop(ctx context.Context, tenant string, s dag.Snapshot) error {
	repo, err := d.repo(ctx, tenant)
	if err != nil {
		return err
	}
	if err := checkID(s.ID); err != nil {
		return err
	}
	_, err = repo.run(ctx, "update-ref", "-d", keptRef(s.ID))
	return err
}

// staleAfter is how long an index lies unused before it is swept.
const staleAfter = 24 * time.Hour

// Sweep implements resource.Driver.
func (d *Driver) Sweep(ctx context.Context, tenant string) error {
	repo, err := d.repo(ctx, tenant)
	if err != nil {
		return err
	}
	_, err = repo.run(ctx, "gc", "--quiet", "--prune=1.hour.ago")
	return errors.Join(err, repo.sweepIndexes(time.Now().Add(-staleAfter)))
}

// sweepIndexes removes those last written before a time: of worktrees that are
// no longer kept, and of calls that were killed.
func (r repository) sweepIndexes(before time.Time) error {
	paths, err := filepath.Glob(filepath.Join(r.dir, "index-*"))
	errs := []error{err}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
