package files

import (
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

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
