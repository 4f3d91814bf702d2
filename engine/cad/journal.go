package cad

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// kept is an entry as the store keeps it: shapes and files lie apart, each once
// for all workspaces of a tenant.
type kept struct {
	model.Entry

	ShapeHashes []string `json:"shape_hashes,omitzero"`
	BlobHashes  []string `json:"blob_hashes,omitzero"`
}

// row is one record to be written.
type row struct {
	bucket store.Bucket
	key    []byte
	value  []byte
	once   bool // named by what it says: what is there already is the same
}

// draft is an entry made ready for the store. What is costly is done here, off
// the store's writer.
type draft struct {
	entry model.Entry
	rows  []row    // but the entities
	put   []row    // entities, in the order of entry.Put
	added []string // ids of those that were not there, once appended
}

// prepare encodes an entry. What is named by its hash must be what it says.
func prepare(e model.Entry) (*draft, error) {
	d := &draft{entry: e}
	k := kept{Entry: e}
	k.Shapes, k.Blobs = nil, nil
	for _, b := range e.Blobs {
		if model.NewBlob(b.Data).Hash != b.Hash {
			return nil, core.Errorf(core.Internal, "entry %d of %s: file %s is not what its name says", e.Seq, e.WorkspaceID, b.Hash)
		}
		k.BlobHashes = append(k.BlobHashes, b.Hash)
		d.rows = append(d.rows, row{bBlob, []byte(b.Hash), bytes.Clone(b.Data), true})
	}
	for _, s := range e.Shapes {
		same, err := model.NewShape(s.Op, s.Params, s.Inputs, s.Blob)
		if err != nil || same.Hash != s.Hash {
			return nil, core.Errorf(core.Internal, "entry %d of %s: shape %s is not what its name says", e.Seq, e.WorkspaceID, s.Hash)
		}
		k.ShapeHashes = append(k.ShapeHashes, s.Hash)
		d.rows = append(d.rows, row{bShape, []byte(s.Hash), core.MustEncode(s), true})
	}
	d.rows = append(d.rows, row{bEntry, numbered(e.WorkspaceID, uint64(e.Seq)), core.MustEncode(k), false})
	for _, p := range e.Put {
		d.put = append(d.put, row{bEntity, named(e.WorkspaceID, p.ID), core.MustEncode(p), false})
	}
	return d, nil
}

// errBehind says that an entry does not follow the workspace's newest: another
// one came between.
var errBehind = errors.New("the workspace has gone on meanwhile")

// append stores an entry and counts what it changes in w, which the caller
// saves.
func (d *draft) append(tx *audit.Tx, w *Workspace) error {
	e := &d.entry
	if e.WorkspaceID != w.WorkspaceID || e.Seq != w.Seq+1 {
		return fmt.Errorf("entry %d of %s on entry %d of %s: %w", e.Seq, e.WorkspaceID, w.Seq, w.WorkspaceID, errBehind)
	}
	for _, r := range d.rows {
		if err := r.write(tx); err != nil {
			return err
		}
	}
	count := func(t model.EntityType, n int) {
		w.EntityCount += n
		if t == model.Solid {
			w.SolidCount += n
		}
	}
	gone := func(key []byte) (bool, error) {
		var was model.Entity
		there, err := fetch(tx, bEntity, key, &was)
		if there {
			count(was.Type, -1)
		}
		return there, err
	}
	d.added = nil // it may be appended again when the judge's rules changed
	for i, p := range e.Put {
		there, err := gone(d.put[i].key)
		if err != nil {
			return err
		}
		if !there {
			d.added = append(d.added, p.ID)
		}
		count(p.Type, 1)
		if err := d.put[i].write(tx); err != nil {
			return err
		}
	}
	for _, id := range e.Removed {
		key := named(e.WorkspaceID, id)
		if _, err := gone(key); err != nil {
			return err
		}
		if err := tx.Delete(bEntity, key); err != nil {
			return err
		}
	}
	w.Seq = e.Seq
	return d.conflicts(tx, w)
}

func (r row) write(tx store.Tx) error {
	if r.once {
		if there, err := tx.Get(r.bucket, r.key); err != nil || there != nil {
			return err
		}
	}
	return tx.Put(r.bucket, r.key, r.value)
}

// opened is what was open before and after an entry that changed that.
type opened struct {
	Before []model.Conflict `json:"before"`
	After  []model.Conflict `json:"after"`
}

// conflicts keeps the list of open conflicts, as model.Workspace.Conflicts has
// it: an entry decides some and leaves others open, undoing it brings back what
// was open before.
func (d *draft) conflicts(tx *audit.Tx, w *Workspace) error {
	e := &d.entry
	var now opened
	if of := e.Undoes + e.Redoes; of != 0 { // one of them is 0
		there, err := fetch(tx, bOpened, numbered(w.WorkspaceID, uint64(of)), &now)
		if err != nil || !there {
			return err
		}
		if e.Undoes != 0 {
			now.After = now.Before
		}
	} else {
		if len(e.Conflicts)+len(e.Resolved) == 0 {
			return nil
		}
		if _, err := fetch(tx, bOpen, []byte(w.WorkspaceID), &now.Before); err != nil {
			return err
		}
		now.After = append(slices.DeleteFunc(slices.Clone(now.Before), func(c model.Conflict) bool { return decides(e, c) }), e.Conflicts...)
		if err := put(tx, bOpened, numbered(w.WorkspaceID, uint64(e.Seq)), now); err != nil {
			return err
		}
	}
	w.Conflicts = len(now.After)
	return put(tx, bOpen, []byte(w.WorkspaceID), now.After)
}

// decides reports whether an entry decides about a conflict, or leaves it open
// anew.
func decides(e *model.Entry, c model.Conflict) bool {
	same := func(source, id string) bool { return source == c.Source && id == c.EntityID }
	return slices.ContainsFunc(e.Resolved, func(r model.Resolved) bool { return same(r.Source, r.EntityID) }) ||
		slices.ContainsFunc(e.Conflicts, func(o model.Conflict) bool { return same(o.Source, o.EntityID) })
}

// most of a journal that is read at once.
const (
	loadEntries = 256
	loadBytes   = 8 << 20
)

// journalFrom reads entries of a workspace from seq on, whole, until there is
// enough for one go; none means that there are no more.
func journalFrom(tx store.Tx, workspace string, seq int) ([]model.Entry, error) {
	var list []kept
	size := 0
	_, to := under(workspace)
	var bad error
	err := tx.Scan(bEntry, numbered(workspace, uint64(seq)), to, false, func(_, value []byte) bool {
		var k kept
		if bad = core.DecodeStored(bytes.Clone(value), &k); bad != nil {
			return false
		}
		size += len(value)
		list = append(list, k)
		return len(list) < loadEntries && size < loadBytes
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("read the journal of %s: %w", workspace, err)
	}
	entries := make([]model.Entry, 0, len(list))
	size = 0
	for _, k := range list {
		n, err := k.fill(tx)
		if err != nil {
			return nil, fmt.Errorf("read entry %d of %s: %w", k.Seq, workspace, err)
		}
		entries = append(entries, k.Entry)
		if size += n; size >= loadBytes {
			break
		}
	}
	return entries, nil
}

// fill puts the shapes and files of an entry back in their place and returns
// how large they are.
func (k *kept) fill(tx store.Tx) (size int, err error) {
	for _, hash := range k.ShapeHashes {
		var s model.Shape
		there, err := fetch(tx, bShape, []byte(hash), &s)
		if err != nil {
			return 0, err
		}
		if !there {
			return 0, core.Errorf(core.Internal, "shape %s is missing", hash)
		}
		k.Shapes = append(k.Shapes, s)
		size += len(s.Params)
	}
	for _, hash := range k.BlobHashes {
		data, err := tx.Get(bBlob, []byte(hash))
		if err != nil {
			return 0, err
		}
		if data == nil {
			return 0, core.Errorf(core.Internal, "file %s is missing", hash)
		}
		k.Blobs = append(k.Blobs, model.Blob{Hash: hash, Data: bytes.Clone(data)})
		size += len(data)
	}
	return size, nil
}
