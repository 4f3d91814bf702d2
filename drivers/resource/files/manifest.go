package files

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"swarmdeck/engine/core"
)

// A manifest lies in tree/ under the digest that it has as a whole, but as the delta to
// another one there, as a rule to that of the snapshot before: what has not changed is
// not written again. The digest is held against what comes of the deltas.

func (s *store) treePath(d digest) string { return filepath.Join(s.dir, "tree", d.String()) }

// tree reads a manifest, and holds it against its digest.
func (s *store) tree(d digest) ([]entry, error) {
	whole, deltas, err := s.chain(d)
	if err != nil {
		return nil, err
	}
	damaged := core.Errorf(core.Conflict, "snapshot: the manifest sha256:%s was damaged or changed", d).With("field", "snapshot")
	if len(deltas) == 0 {
		if sha256.Sum256(whole) != d {
			return nil, damaged
		}
		return decode(whole)
	}
	base, err := decode(whole)
	if err != nil {
		return nil, damaged
	}
	all := apply(base, fold(deltas))
	if stateOf(all) != d {
		return nil, damaged
	}
	return all, placed(all)
}

// chain reads a manifest's deltas, the newest first, and the whole one below them.
func (s *store) chain(d digest) (whole []byte, deltas []delta, err error) {
	for at := d; len(deltas) <= maxDeep; {
		data, err := os.ReadFile(s.treePath(at))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, core.Errorf(core.NotFound, "snapshot: the state sha256:%s is not kept here any more", d).With("field", "snapshot")
		}
		if err != nil {
			return nil, nil, err
		}
		next, is, err := decodeDelta(data)
		if err != nil {
			return nil, nil, core.Errorf(core.Conflict, "snapshot: the manifest sha256:%s was damaged or changed: %v", d, err).With("field", "snapshot")
		}
		if !is {
			return data, deltas, nil
		}
		deltas, at = append(deltas, next), next.base
	}
	return nil, nil, core.Errorf(core.Conflict, "snapshot: the manifest sha256:%s was damaged or changed: its deltas have no end", d).With("field", "snapshot")
}

// manifest is how a state is to be written: as a delta to what was seen last, where
// that is kept and shorter. It notes how deep that is.
func (b *batch) manifest(was, now *seen, changes []change) ([]byte, error) {
	now.deep, now.bytes = 0, 0
	if was == nil || was.deep == maxDeep {
		return encode(now.all), nil
	}
	d := delta{base: was.tree, deep: was.deep + 1, changes: changes}
	data := d.encode(was.bytes)
	there, err := b.has(b.treePath(was.tree))
	if !there || d.bytes > int64(aLine*len(now.all)) {
		return encode(now.all), err
	}
	now.deep, now.bytes = d.deep, d.bytes
	return data, nil
}

// aLine is about how long a line of a manifest is.
const aLine = 130

// depth says how many deltas a manifest is made of, and their bytes.
func (s *store) depth(d digest) (deep int, bytes int64, err error) {
	data, err := os.ReadFile(s.treePath(d))
	if err != nil {
		return 0, 0, err
	}
	top, _, err := decodeDelta(data)
	return top.deep, top.bytes, err
}
