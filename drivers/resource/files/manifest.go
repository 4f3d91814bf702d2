package files

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// manifest is what is written of a state: all its entries, or as a rule what it adds to
// the state before. It lies in tree/ under the digest of all entries, which is held
// against what comes of it.
type manifest struct {
	Base    digest  // the state that the changes are to; "" where they are all entries
	Deep    int     // manifests below it
	Lines   int     // changes of it, and of those below that are changes too
	Changes []entry // in the order of a walk
}

// maxDeep bounds the changes that lie upon each other. Together they are no more than the
// state has entries, so that writing all of these now and then does not count.
const maxDeep = 1000

func (s *store) treePath(d digest) string { return filepath.Join(s.dir, "tree", d.String()) }

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func damaged(d digest) error {
	return core.Errorf(core.Conflict, "snapshot: the manifest sha256:%s was damaged or changed", d).With("field", "snapshot")
}

// manifest reads what was written of a state.
func (s *store) manifest(d digest) (m manifest, err error) {
	data, err := os.ReadFile(s.treePath(d))
	if errors.Is(err, fs.ErrNotExist) {
		return m, core.Errorf(core.NotFound, "snapshot: the state sha256:%s is not kept here any more", d).With("field", "snapshot")
	}
	if err != nil {
		return m, err
	}
	if gob.NewDecoder(bytes.NewReader(data)).Decode(&m) != nil {
		return m, damaged(d)
	}
	return m, nil
}

// tree are the entries of a state, in the order in which they can be made.
func (s *store) tree(d digest) ([]entry, error) {
	later := map[string]entry{} // by path, the newest
	for at, n := d, 0; n <= maxDeep; n++ {
		m, err := s.manifest(at)
		if err != nil {
			return nil, err
		}
		if m.Base == "" {
			all := m.Changes
			if len(later) > 0 {
				all = apply(all, later)
			}
			if stateOf(all) != d {
				return nil, damaged(d)
			}
			return all, nil
		}
		for _, c := range m.Changes {
			if _, newer := later[c.Path]; !newer {
				later[c.Path] = c
			}
		}
		at = m.Base
	}
	return nil, damaged(d)
}

// pairs goes through two lists in the order of a walk: of each path what was and what is,
// nil for nothing.
func pairs(was, now []entry) iter.Seq2[*entry, *entry] {
	return func(yield func(was, now *entry) bool) {
		for len(was) > 0 || len(now) > 0 {
			var old, new *entry
			c := len(was) - len(now) // one that is at its end comes last
			if len(was) > 0 && len(now) > 0 {
				c = order(now[0].Path, was[0].Path)
			}
			if c >= 0 {
				old, was = &was[0], was[1:]
			}
			if c <= 0 {
				new, now = &now[0], now[1:]
			}
			if !yield(old, new) {
				return
			}
		}
	}
}

// changed lists how entries differ from earlier ones, in the order of a walk.
func changed(was, now []entry) (all []entry) {
	for old, e := range pairs(was, now) {
		switch {
		case e == nil:
			all = append(all, entry{Path: old.Path})
		case old == nil || !old.alike(e):
			all = append(all, *e)
		}
	}
	return all
}

// apply makes the entries of a base and of changes to it.
func apply(base []entry, changes map[string]entry) []entry {
	fresh := make([]entry, 0, len(changes))
	for _, c := range changes {
		if c.Kind != removed {
			fresh = append(fresh, c)
		}
	}
	slices.SortFunc(fresh, func(a, b entry) int { return order(a.Path, b.Path) })
	all := make([]entry, 0, len(base)+len(fresh))
	for _, e := range base {
		if _, other := changes[e.Path]; other {
			continue
		}
		for len(fresh) > 0 && order(fresh[0].Path, e.Path) < 0 {
			all, fresh = append(all, fresh[0]), fresh[1:]
		}
		all = append(all, e)
	}
	return append(all, fresh...)
}

// receipt says what was taken under an id. It is written last: a snapshot that
// has one is whole and on disk.
type receipt struct {
	Tree  string   `json:"tree"` // sha256 of the manifest, hex
	Bytes int64    `json:"bytes"`
	Files int      `json:"files"`
	Notes []string `json:"notes,omitempty"`
}

var idPattern = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// CheckID refuses ids that are no names of files and refs.
func CheckID(id string) error {
	if !idPattern().MatchString(id) {
		return core.Invalid("id", id, "1-128 letters, digits, _ and -, the first a letter or digit")
	}
	return nil
}

// receipt reads what was taken under an id; fs.ErrNotExist when nothing was.
func (s *store) receipt(id string) (receipt, error) {
	var r receipt
	data, err := os.ReadFile(filepath.Join(s.dir, "taken", id))
	if err != nil {
		return r, err
	}
	if err := core.DecodeStored(data, &r); err != nil {
		return r, fmt.Errorf("read what was taken under %s: %w", id, err)
	}
	return r, nil
}

// keep writes the manifest, with what the batch has, and then the receipt; nothing when
// it is the one that was taken last.
func (b *batch) keep(id string, was, now *seen, r receipt, last *dag.ExtRef) (receipt, error) {
	r.Files = len(now.all)
	for _, e := range now.all {
		r.Bytes += e.Size
	}
	there, err := b.tell(was, now)
	if err == nil {
		err = b.sync()
	}
	r.Tree = now.tree.String()
	if err != nil || there && last != nil && last.ID == "sha256:"+r.Tree {
		return r, err
	}
	return r, b.write(filepath.Join(b.dir, "taken", id), core.MustEncode(r))
}

// tell puts the manifest of a state into the batch, unless it is there: what changed
// since the one before, where that is kept and this is less.
func (b *batch) tell(was, now *seen) (there bool, err error) {
	var changes []entry
	same := false
	if was != nil {
		changes = changed(was.all, now.all)
		same = len(changes) == 0
	}
	if same {
		now.tree, now.deep, now.lines = was.tree, was.deep, was.lines
	} else {
		now.tree = stateOf(now.all)
	}
	there, err = b.has(b.treePath(now.tree))
	if err != nil || there && same {
		return there, err
	}
	m := manifest{Changes: now.all}
	switch {
	case there:
		if m, err = b.manifest(now.tree); err != nil {
			return false, err
		}
	case was != nil && was.deep < maxDeep && was.lines+len(changes) < len(now.all):
		based, err := b.has(b.treePath(was.tree))
		if err != nil {
			return false, err
		}
		if based {
			m = manifest{was.tree, was.deep + 1, was.lines + len(changes), changes}
		}
	}
	now.deep, now.lines = m.Deep, m.Lines
	if there {
		return true, nil
	}
	data, err := encode(m)
	if err != nil {
		return false, err
	}
	return false, b.put(b.treePath(now.tree), data)
}
