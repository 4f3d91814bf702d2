package cell

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/guarded"
)

// guards are the paths in a tree that a worker may read alone, as it sees them: what
// a person's tools run because it lies there. In the engine's own directories
// nobody's tools come.
func (s *Supervisor) guards(spec Spec, t tree, own ownFiles) (all []string) {
	if spec.Wall.Profile != Worker || !t.write || t.cache || t.path == resolved(spec.Wall.Home) || t.as == "/tmp" || own.has(t.path) ||
		slices.ContainsFunc(s.opt.Private, func(dir string) bool { return within(t.path, resolved(dir)) }) {
		return nil
	}
	add := func(name string) {
		if real, err := filepath.EvalSymlinks(filepath.Join(t.path, name)); err == nil && real != t.path && within(real, t.path) {
			all = append(all, t.as+strings.TrimPrefix(real, t.path))
		}
	}
	if info, err := os.Lstat(filepath.Join(t.path, ".git")); err == nil && info.Mode().IsRegular() { // it leads to a repository
		add(".git")
	}
	for _, r := range guarded.Rules() {
		for _, p := range r.Paths {
			if r.Named {
				continue
			}
			names, _ := fs.Glob(os.DirFS(t.path), p)
			for _, name := range names {
				add(name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
