package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/engine/cad/model"
)

type importFile struct {
	EntityID string `json:"entity_id"` // of several solids, what their ids begin with; each gets a free one where nothing is given
	Path     string `json:"file_path" need:""`
	Format   string `json:"format"` // by the path's ending where nothing is given
}

// importFile makes a solid of each in a file, all of them or none.
func (c *call) importFile(p importFile) (any, error) {
	name, err := filePath(p.Path)
	if err != nil {
		return nil, err
	}
	kind := formatOf(p.Format, name)
	if err := c.fits(kind, c.env.bench.about.Imports); err != nil {
		return nil, err
	}
	content, err := c.content(name)
	if err != nil {
		return nil, err
	}
	var found []Imported
	c.stage.at(10, "reading "+kind)
	err = c.env.bench.use(c.ctx, func(ctx context.Context, k Kernel) (err error) {
		if slices.Contains(faceted, kind) {
			found, err = importMeshes(content, kind)
		} else {
			found, err = k.Import(ctx, content, kind)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, Refuse(ImportFailed, "file_path", name, name+" holds no solid", "give a file with closed solids")
	}
	if err := c.journalled(name, found); err != nil {
		return nil, err
	}
	ids := c.ws.NextIDs(model.Solid, len(found))
	if p.EntityID != "" {
		for i := range ids {
			ids[i] = p.EntityID
			if len(ids) > 1 {
				ids[i] += "_" + strconv.Itoa(i+1)
			}
		}
	}
	var all model.Change
	for i, solid := range found {
		c.stage.at(20+80*float64(i)/float64(len(found)), "building")
		blob := model.NewBlob(solid.Blob)
		_, change, err := c.define(making{id: ids[i], recipe: &Import{Format: kind, Index: i}, blob: &blob})
		if err != nil {
			return nil, Refused(err, ImportFailed)
		}
		all.Put = append(all.Put, change.Put...)
		all.Shapes = append(all.Shapes, change.Shapes...)
		all.Blobs = append(all.Blobs, change.Blobs...)
	}
	if err := c.commit(all); err != nil {
		return nil, err
	}
	var solids []map[string]any
	for i, e := range all.Put {
		stored, _ := c.ws.Entity(e.ID)
		one, err := told(stored)
		if err != nil {
			return nil, err
		}
		one["name"] = found[i].Name
		solids = append(solids, one)
	}
	out := map[string]any{"file_path": name, "format": kind, "entity_ids": idsOf(all.Put), "solids": solids, "workspace_id": c.ws.Record().ID}
	if len(all.Put) == 1 {
		out["entity_id"] = all.Put[0].ID
	}
	return out, nil
}

// journalled refuses what would not fit into the journal.
func (c *call) journalled(name string, found []Imported) error {
	total, most := 0, 4*model.MaxBlob
	if c.env.options.Journal {
		most = maxJournalled
	}
	for _, f := range found {
		if total += len(f.Blob); len(f.Blob) > model.MaxBlob || total > most {
			return Refuse(ImportFailed, "file_path", name, name+" holds more than an import takes", "give a smaller file or a coarser one")
		}
	}
	return nil
}

// content reads a file of a bounded size.
func (c *call) content(name string) ([]byte, error) {
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(name)
	if err != nil {
		return nil, fileError("file_path", name, err)
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, Invalid("file_path", name, "the path of a file, not of a directory or device")
	case info.Size() > format.MaxBytes:
		return nil, Refuse(ImportFailed, "file_path", name, fmt.Sprintf("%s has %d bytes", name, info.Size()), fmt.Sprintf("give a file of at most %d MB", format.MaxBytes>>20))
	}
	f, err := root.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, fileError("file_path", name, err)
	}
	defer f.Close()
	content := make([]byte, info.Size())
	n, err := io.ReadFull(f, content) // not a byte more than was asked for
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fileError("file_path", name, err)
	}
	return content[:n], nil
}
