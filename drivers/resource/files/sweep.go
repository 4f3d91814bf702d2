package files

import (
	"errors"
	"os"
	"path/filepath"
)

// sweep removes contents and manifests that nothing kept needs, and what
// snapshots that were cut off left behind.
func (s *store) sweep() error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	m, err := s.marked()
	if err != nil {
		return err // rather keep too much
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = -1
	for root, was := range s.memory { // what was seen may name what goes
		if !m.kept[was.tree] {
			delete(s.memory, root)
		} else if _, err := os.Lstat(s.seenPath(root)); err == nil { // the state that it names may go
			s.save(root, was)
		}
	}
	errs := []error{
		prune(filepath.Join(s.dir, "tmp"), func(string) bool { return false }),
		prune(filepath.Join(s.dir, "seen"), func(name string) bool {
			at, err := readSaved(filepath.Join(s.dir, "seen", name))
			return err == nil && m.kept[at.Tree]
		}),
		prune(filepath.Join(s.dir, "tree"), func(name string) bool { return m.trees[name] }),
	}
	fans, err := os.ReadDir(filepath.Join(s.dir, "content"))
	errs = append(errs, err)
	for _, fan := range fans {
		errs = append(errs, prune(filepath.Join(s.dir, "content", fan.Name()), func(name string) bool {
			sum, err := parseDigest(fan.Name() + name)
			return err == nil && m.contents[sum]
		}))
	}
	return errors.Join(errs...)
}

func prune(dir string, keep func(name string) bool) error {
	all, err := os.ReadDir(dir)
	errs := []error{err}
	for _, f := range all {
		if !keep(f.Name()) {
			errs = append(errs, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}

// marks say what is needed: manifests that are kept, those that these are made of, and
// contents.
type marks struct {
	kept     map[digest]bool
	trees    map[string]bool
	contents map[digest]bool

	now map[string]digest // files of the state that is looked at
}

// marked goes through the manifests that are kept, each from the one that it is a delta
// to: what they hold comes and goes line by line.
func (s *store) marked() (*marks, error) {
	kept, err := os.ReadDir(filepath.Join(s.dir, "taken"))
	if err != nil {
		return nil, err
	}
	m := &marks{kept: map[digest]bool{}, trees: map[string]bool{}, contents: map[digest]bool{}}
	above := map[digest][]step{}
	var whole []digest
	for _, k := range kept {
		r, err := s.receipt(k.Name())
		if err != nil {
			return nil, err
		}
		at, err := parseDigest(r.Tree)
		if err != nil {
			return nil, err
		}
		m.kept[at] = true
		for !m.trees[at.String()] {
			m.trees[at.String()] = true
			d, err := s.manifest(at)
			if err != nil {
				return nil, err
			}
			if d.Base == "" {
				whole = append(whole, at)
				break
			}
			above[d.Base] = append(above[d.Base], step{at, d.Changes})
			at = d.Base
		}
	}
	for _, at := range whole {
		all, err := s.tree(at)
		if err != nil {
			return nil, err
		}
		m.now = map[string]digest{}
		for _, e := range all {
			if e.Kind == regular {
				m.now[e.Path] = e.Sum
			}
		}
		m.visit(at, above)
	}
	return m, nil
}

// step leads from a manifest to one that is based on it.
type step struct {
	to      digest
	changes []entry
}

// visit marks what a manifest holds, and those upon it.
func (m *marks) visit(at digest, above map[digest][]step) {
	if m.kept[at] {
		for _, sum := range m.now {
			m.contents[sum] = true
		}
	}
	for _, next := range above[at] {
		back := make(map[string]digest, len(next.changes)) // "" is none
		for _, c := range next.changes {
			back[c.Path] = m.now[c.Path]
			if c.Kind == regular {
				m.now[c.Path] = c.Sum
			} else {
				delete(m.now, c.Path)
			}
		}
		m.visit(next.to, above)
		for path, sum := range back {
			if sum != "" {
				m.now[path] = sum
			} else {
				delete(m.now, path)
			}
		}
	}
}
