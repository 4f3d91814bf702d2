package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// Bounds of a tree that is looked through before it is replaced.
const (
	carryFiles = 5_000_000
	carryDepth = 1000
)

// carry puts what snapshots leave out by rule, by the rules of now or of the snapshot,
// beside what was made of it: it stays as it is, whatever it was then. Files are linked,
// so that the tree of before is whole until it is replaced. What the snapshot has at a
// path stands there.
func (d *Driver) carry(ctx context.Context, p *putting, dir int, name string, all []entry) error {
	then, err := p.ignoredThen(all)
	if err != nil {
		return err
	}
	// What was made of the tree since does not stand in the way.
	limits := Limits{Files: carryFiles, Bytes: 1 << 62, File: d.opt.Limits.File, Depth: carryDepth}
	w := &walker{ctx: ctx, limits: limits, own: d.opt.Own, among: d.own.Among(), then: then, force: true}
	now, err := w.walk(p.place)
	if err != nil {
		return err
	}
	paths := slices.Concat(w.left.ignored, w.left.large, w.left.pipes)
	for _, e := range all {
		if e.Kind == omitted {
			paths = append(paths, e.Path)
		}
	}
	if len(paths) == 0 || now[0].Kind != directory || all[0].Kind != directory {
		return nil
	}
	slices.Sort(paths)
	from, err := openBeneath(p.place, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	to, err := openHere(dir, name)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	for _, path := range slices.Compact(paths) {
		if err := carryPath(ctx, from, to, path, carryDepth); err != nil {
			return fmt.Errorf("keep %q, which snapshots leave out: %w", path, err)
		}
	}
	return unix.Syncfs(to)
}

// ignoredThen are the texts of the ignoreFiles of a snapshot, by directory.
func (s *store) ignoredThen(all []entry) (map[string]string, error) {
	then := map[string]string{}
	for _, e := range all {
		if e.Kind != regular || filepath.Base(e.Path) != ignoreFile || e.Size > ignoreBytes {
			continue
		}
		text, err := os.ReadFile(s.contentPath(e.Sum))
		if err != nil {
			return nil, err
		}
		then[parent(e.Path)] = string(text)
	}
	return then, nil
}

// carryPath carries one file or directory, and makes the directories on the way, which are
// most at most.
func carryPath(ctx context.Context, from, to int, path string, most int) error {
	name, rest, more := strings.Cut(path, "/")
	if !more {
		return carryName(ctx, from, to, name, most, nil)
	}
	return carryName(ctx, from, to, name, most, func(from, to int) error { return carryPath(ctx, from, to, rest, most-1) })
}

// carryName carries a name of a directory; of one that is a directory itself what in
// says, or all of it with nil. What is not there, or not a directory on both sides, is
// left.
func carryName(ctx context.Context, from, to int, name string, most int, in func(from, to int) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st, err := lookAt(from, name)
	if errors.Is(err, unix.ENOENT) || err == nil && in != nil && !isDir(&st) {
		return nil
	}
	if err != nil {
		return err
	}
	return dated(to, func() error {
		if !isDir(&st) {
			err := unix.Linkat(from, name, to, name, 0)
			if errors.Is(err, unix.EEXIST) {
				return nil
			}
			return err
		}
		return carryDir(ctx, from, to, name, &st, most, in)
	})
}

func carryDir(ctx context.Context, from, to int, name string, st *unix.Stat_t, most int, in func(from, to int) error) error {
	if most == 0 { // each holds descriptors
		return core.Errorf(core.InvalidInput, "path: directories that snapshots leave out are more than %d deep: remove or move them", carryDepth).With("field", "path")
	}
	err := unix.Mkdirat(to, name, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	source, err := openHere(from, name)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(source), name)
	defer f.Close()
	target, err := openHere(to, name)
	if !made && (errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)) {
		return nil // the snapshot has something else there
	}
	if err != nil {
		return err
	}
	defer unix.Close(target)
	if in == nil {
		in = func(source, target int) error {
			for {
				names, err := f.Readdirnames(1024)
				for _, below := range names {
					if err := carryName(ctx, source, target, below, most-1, nil); err != nil {
						return err
					}
				}
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
			}
		}
	}
	if err := in(source, target); err != nil || !made {
		return err
	}
	b := builder{root: os.Geteuid() == 0}
	return b.finish(target, entry{UID: st.Uid, GID: st.Gid, Mode: st.Mode & dirModes, Mtime: st.Mtim.Nano()})
}

// dated does something in a directory whose time stays as it is.
func dated(dir int, do func() error) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", dir), []unix.Timespec{st.Atim, st.Mtim}, 0)
}
