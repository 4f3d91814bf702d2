package cad

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// kept is an entry as the store keeps it: shapes and files lie apart, each once
// for all workspaces of a tenant.
type kept struct {
	model.Entry

	ShapeHashes []string `json:"shape_hashes,omitzero"`
	BlobHashes  []string `json:"blob_hashes,omitzero"`
}

// draft is an entry made ready for the store. What is costly is done here, off
// the store's writer.
type draft struct {
	entry model.Entry
	fixed []record.Row // shapes and files, which are named by what they say
	row   record.Row   // the entry
	put   []record.Row // entities, in the order of entry.Put
	added []string     // ids of those that were not there, once appended
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
		row, err := blobs.Row(record.Key(b.Hash), bytes.Clone(b.Data))
		if err != nil {
			return nil, err
		}
		d.fixed = append(d.fixed, row)
	}
	for _, s := range e.Shapes {
		same, err := model.NewShape(s.Op, s.Params, s.Inputs, s.Blob)
		if err != nil || same.Hash != s.Hash {
			return nil, core.Errorf(core.Internal, "entry %d of %s: shape %s is not what its name says", e.Seq, e.WorkspaceID, s.Hash)
		}
		k.ShapeHashes = append(k.ShapeHashes, s.Hash)
		row, err := shapes.Row(record.Key(s.Hash), s)
		if err != nil {
			return nil, err
		}
		d.fixed = append(d.fixed, row)
	}
	for _, p := range e.Put {
		row, err := entities.Row(record.Text(e.WorkspaceID).Last(p.ID), p)
		if err != nil {
			return nil, err
		}
		d.put = append(d.put, row)
	}
	var err error
	d.row, err = entries.Row(record.Text(e.WorkspaceID).Seq(uint64(e.Seq)), k)
	return d, err
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
	for _, r := range d.fixed {
		if err := r.PutNew(tx); err != nil {
			return err
		}
	}
	if err := d.row.Put(tx); err != nil {
		return err
	}
	count := func(t model.EntityType, n int) {
		w.EntityCount += n
		if t == model.Solid {
			w.SolidCount += n
		}
	}
	gone := func(id string) (bool, error) {
		was, there, err := entities.Get(tx, record.Text(e.WorkspaceID).Last(id))
		if there {
			count(was.Type, -1)
		}
		return there, err
	}
	d.added = nil // it may be appended again when the judge's rules changed
	for i, p := range e.Put {
		there, err := gone(p.ID)
		if err != nil {
			return err
		}
		if !there {
			d.added = append(d.added, p.ID)
		}
		count(p.Type, 1)
		if err := d.put[i].Put(tx); err != nil {
			return err
		}
	}
	for _, id := range e.Removed {
		if _, err := gone(id); err != nil {
			return err
		}
		if err := entities.Delete(tx, record.Text(e.WorkspaceID).Last(id)); err != nil {
			return err
		}
	}
	w.Seq = e.Seq
	return d.conflicts(tx, w)
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
	var err error
	if of := e.Undoes + e.Redoes; of != 0 { // one of them is 0
		there := false
		if now, there, err = openings.Get(tx, record.Text(w.WorkspaceID).Seq(uint64(of))); err != nil || !there {
			return err
		}
		if e.Undoes != 0 {
			now.After = now.Before
		}
	} else {
		if len(e.Conflicts)+len(e.Resolved) == 0 {
			return nil
		}
		if now.Before, _, err = conflicts.Get(tx, record.Key(w.WorkspaceID)); err != nil {
			return err
		}
		now.After = append(slices.DeleteFunc(slices.Clone(now.Before), func(c model.Conflict) bool { return decides(e, c) }), e.Conflicts...)
		if err := openings.Put(tx, record.Text(w.WorkspaceID).Seq(uint64(e.Seq)), now); err != nil {
			return err
		}
	}
	w.Conflicts = len(now.After)
	return conflicts.Put(tx, record.Key(w.WorkspaceID), now.After)
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
	err := entries.Within(tx, record.Text(workspace), record.Seq(uint64(seq)), nil, false, func(_ record.Parts, found record.Found[kept]) (bool, error) {
		k, err := found.Value()
		size += len(found.Data)
		list = append(list, k)
		return len(list) < loadEntries && size < loadBytes, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal of %s: %w", workspace, err)
	}
	all := make([]model.Entry, 0, len(list))
	size = 0
	for _, k := range list {
		n, err := k.fill(tx)
		if err != nil {
			return nil, fmt.Errorf("read entry %d of %s: %w", k.Seq, workspace, err)
		}
		all = append(all, k.Entry)
		if size += n; size >= loadBytes {
			break
		}
	}
	return all, nil
}

// fill puts the shapes and files of an entry back in their place and returns
// how large they are.
func (k *kept) fill(tx store.Tx) (size int, err error) {
	for _, hash := range k.ShapeHashes {
		s, err := part(tx, shapes, "shape", hash)
		if err != nil {
			return 0, err
		}
		k.Shapes = append(k.Shapes, s)
		size += len(s.Params)
	}
	for _, hash := range k.BlobHashes {
		data, err := part(tx, blobs, "file", hash)
		if err != nil {
			return 0, err
		}
		k.Blobs = append(k.Blobs, model.Blob{Hash: hash, Data: data})
		size += len(data)
	}
	return size, nil
}

// part reads what an entry names by its hash.
func part[V any](tx store.Tx, rows record.Rows[V], what, hash string) (V, error) {
	v, there, err := rows.Get(tx, record.Key(hash))
	if err == nil && !there {
		err = core.Errorf(core.Internal, "%s %s is missing", what, hash)
	}
	return v, err
}

// Journal is the journal of a workspace from an entry on, whole: with shapes
// and files, so that replaying it gives the workspace.
func (c *modelling) Journal(ctx context.Context, tenant, id string, from int) (all []model.Entry, err error) {
	if _, err := c.space(ctx, reader(tenant), id); err != nil {
		return nil, err
	}
	for {
		var some []model.Entry
		err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			some, err = journalFrom(tx, id, from+len(all))
			return err
		})
		if all = append(all, some...); err != nil || len(some) == 0 {
			return all, err
		}
	}
}
