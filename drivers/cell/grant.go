package cell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/engine/core"
	filerules "swarmdeck/engine/files"
	"swarmdeck/engine/reach"
)

// CheckPlaces refuses places that can't be named for a run: no absolute paths,
// or the engine's own files. The error names the list, below a prefix such as
// "options.".
func (s *Supervisor) CheckPlaces(prefix string, p filerules.Places) error {
	full, err := p.Full(prefix)
	if err != nil {
		return err
	}
	own := s.own()
	for _, l := range []struct {
		field string
		paths []string
	}{{"read", full.Read}, {"write", full.Write}} {
		for _, path := range l.paths {
			if own.has(path) {
				return core.Errorf(core.Denied, "%s%s: %s is one of the engine's own files", prefix, l.field, path).With("field", prefix+l.field)
			}
		}
	}
	return nil
}

// bounded holds the directory of a task's command to what whoever asked for it may
// name. A directory of their own is made. That of a command which a person has written
// down is the person's word, unless no work is done in it.
func (s *Supervisor) bounded(spec *Spec) error {
	if s.opt.Scope == nil || spec.Whose.Task == "" {
		return nil
	}
	scope, err := s.opt.Scope(spec.Whose)
	if err != nil || scope.Free {
		return err
	}
	if spec.Wall.Told {
		return scope.Never("dir", spec.Dir, resolved(spec.Dir), "")
	}
	if spec.Dir, err = scope.Dir("dir", spec.Dir); err == nil && reach.Within(spec.Dir, scope.Place) {
		if err = os.MkdirAll(spec.Dir, 0o700); err != nil {
			err = fmt.Errorf("make a directory of its own: %w", err)
		}
	}
	if err != nil {
		return err
	}
	spec.held = true
	return scope.Runs("argv", spec.Dir, spec.Argv[0], "")
}

// seen refuses a directory that is hidden itself. The engine's own places may lie
// below such.
func (s *Supervisor) seen(spec *Spec) error {
	dir := resolved(spec.Dir)
	own := s.own().paths
	for _, h := range reach.Hidden(dir, spec.Wall.Hide...) {
		if within(dir, h) && !slices.ContainsFunc(own, func(p string) bool { return within(dir, p) && within(p, h) }) {
			return core.Errorf(core.Denied, "dir: %s is hidden from all that runs in a cell", core.Clip(spec.Dir)).With("field", "dir").With("value", core.Clip(spec.Dir))
		}
	}
	return nil
}

// grant adds to the wall of a run what persons have named: for it, and by the
// rules for whom it works. What a rule hides wins over all that is named; of
// what rules give, what is not there, or is the engine's own by now, is left
// out.
func (s *Supervisor) grant(spec *Spec) error {
	w := &spec.Wall
	if !w.walled() {
		return nil
	}
	if err := s.CheckPlaces("", w.More); err != nil {
		return err
	}
	more, err := w.More.Full("")
	if err != nil {
		return err
	}
	var rules filerules.Places
	if s.opt.Files != nil && spec.Whose.Tenant != "" {
		if rules, err = s.opt.Files(spec.Whose); err != nil {
			return fmt.Errorf("ask for the file rules: %w", err)
		}
		w.Guard = rules.Guard
	}
	if w.Profile == Reader { // which changes nothing
		rules.Read, rules.Write = append(rules.Read, rules.Write...), nil
	}
	if !more.Any() && !rules.Any() {
		return s.seen(spec)
	}
	own := s.own()
	hides := rules.Hide
	for _, path := range rules.Hide {
		hides = append(hides, resolved(path))
	}
	hidden := func(path string) bool {
		return slices.ContainsFunc(hides, func(h string) bool { return within(path, h) || within(resolved(path), h) })
	}
	given := func(path string) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist) || own.has(path) || hidden(path)
	}
	w.Read = slices.Concat(w.Read, slices.DeleteFunc(more.Read, hidden), slices.DeleteFunc(rules.Read, given))
	w.Write = slices.Concat(w.Write, slices.DeleteFunc(more.Write, hidden), slices.DeleteFunc(rules.Write, given))
	w.Hide = slices.Concat(w.Hide, more.Hide, rules.Hide)
	return s.seen(spec)
}

// Hidden reports whether a file of a run's directory, by an absolute path
// without symbolic links, is not there for the run: for whoever opens it in the
// run's place.
func (s *Supervisor) Hidden(spec Spec, path string) (bool, error) {
	if err := s.grant(&spec); err != nil || !spec.Wall.walled() {
		return false, err
	}
	hidden := s.hidden(spec.Dir, spec.Wall.Hide)
	dir := resolved(spec.Dir)
	for _, h := range hidden {
		if h == dir || !within(h, dir) || !within(path, h) {
			continue
		}
		if !slices.ContainsFunc(slices.Concat(spec.Wall.Read, spec.Wall.Write), func(p string) bool { return within(p, h) && within(path, p) }) {
			return true, nil
		}
	}
	return false, nil
}

// resolved is a path without symbolic links; the path itself where it is not there.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// ownFiles are the engine's own files as they are now.
type ownFiles struct {
	paths []string
	files []os.FileInfo // which may have other names
}

func (s *Supervisor) own() (o ownFiles) {
	for _, name := range s.opt.Hide {
		for _, path := range reach.Matches(name) {
			o.paths = append(o.paths, path, resolved(path))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				o.files = append(o.files, info)
			}
		}
	}
	return o
}

// has reports whether a path is one of them, or within one.
func (o ownFiles) has(path string) bool {
	real := resolved(path)
	if slices.ContainsFunc(o.paths, func(own string) bool { return within(path, own) || within(real, own) }) {
		return true
	}
	info, err := os.Stat(real)
	return err == nil && slices.ContainsFunc(o.files, func(own os.FileInfo) bool { return os.SameFile(info, own) })
}
