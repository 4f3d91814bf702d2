package env

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/cad/model"
)

// Limits of files.
const (
	maxWritten = 256 << 20 // bytes
	maxRead    = 128 << 20
	// maxJournalled bounds what the solids of a file take in a journal's entry,
	// which is one line of 10 MiB at most when it is told.
	maxJournalled = 7 << 20
)

// formatOf is the format asked for, or that the file's name ends in.
func formatOf(asked, name string) string {
	if asked == "" {
		asked = strings.TrimPrefix(path.Ext(name), ".")
	}
	f := strings.ToUpper(asked)
	if f == "STP" {
		f = "STEP"
	}
	return f
}

// fits refuses formats that the kernel does not have.
func (c *call) fits(format string, has []string) error {
	about := c.env.bench.about
	switch {
	case slices.Contains(has, format):
		return nil
	case slices.Contains([]string{"STEP", "IGES", "BREP", "STL", "OBJ", "3MF", "PLY", "SVG", "DXF", "JSON"}, format) && about.Name == Embedded:
		return Unsupported("format", format, about.Name, other(about.Name))
	}
	return Refuse(UnsupportedFormat, "format", format, fmt.Sprintf("format: %v is not known", shown(format)), "give one of "+strings.Join(has, ", "))
}

type exportFile struct {
	Path      string   `json:"file_path" need:""`
	Format    string   `json:"format"` // by the path's ending where nothing is given
	EntityIDs []string `json:"entity_ids"`
	Quality   string   `json:"tessellation_quality"` // preview, standard (where nothing is given), high_quality
	Text      bool     `json:"ascii"`                // of STL
	Schema    string   `json:"schema"`               // of STEP: AP214
	View      string   `json:"view"`                 // of SVG: top, front, right, isometric
	// Overwrite is true where nothing is given.
	Overwrite *bool `json:"overwrite"`
}

// qualities are the linear and angular deflection, in mm and radians.
var qualities = map[string][2]float64{"preview": {1, 1}, "": {0.1, 0.5}, "standard": {0.1, 0.5}, "high_quality": {0.01, 0.1}}

// exported is one solid of a file written.
type exported struct {
	EntityID string  `json:"entity_id"`
	Volume   float64 `json:"volume"`
}

func (c *call) exportFile(p exportFile) (any, error) {
	name, err := filePath(p.Path)
	if err != nil {
		return nil, err
	}
	format := formatOf(p.Format, name)
	if err := c.fits(format, c.env.bench.about.Exports); err != nil {
		return nil, err
	}
	quality, known := qualities[p.Quality]
	switch {
	case !known:
		return nil, Invalid("tessellation_quality", p.Quality, "preview, standard or high_quality")
	case p.Text && format != "STL":
		return nil, Invalid("ascii", true, "true for STL only")
	case p.View != "" && format != "SVG":
		return nil, Invalid("view", p.View, "a view for SVG only")
	case !slices.Contains([]string{"", "top", "front", "right", "isometric"}, p.View):
		return nil, Invalid("view", p.View, "top, front, right or isometric")
	case p.Schema != "" && format != "STEP":
		return nil, Invalid("schema", p.Schema, "a schema for STEP only")
	}
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	if _, err := root.Stat(name); err == nil && p.Overwrite != nil && !*p.Overwrite {
		return nil, Refuse(WorkspaceConflict, "file_path", name, name+" exists", "give another path, or overwrite true")
	}
	all, err := c.solids("", p.EntityIDs)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, Refuse(OperationInvalid, "entity_ids", nil, "there is no solid to export", "make one first")
	}
	var hashes []string
	var parts []Part
	list, tolerance := []exported{}, 0.0
	for _, e := range all {
		hashes = append(hashes, e.Shape)
		parts = append(parts, Part{Name: e.ID, Hash: e.Shape})
		facts := measured(e)
		list = append(list, exported{e.ID, facts.Volume})
		tolerance = max(tolerance, facts.Tolerance)
	}
	var content bytes.Buffer
	c.stage.at(10, "writing "+format)
	err = c.env.bench.made(c.ctx, in(c.ws), hashes, func(ctx context.Context, k Kernel) error {
		return k.Export(ctx, &limited{to: &content, left: maxWritten}, parts, ExportOptions{
			Format: format, Schema: p.Schema, Text: p.Text, View: p.View, Deflection: quality[0], Angle: quality[1],
		})
	})
	if err != nil {
		return nil, err
	}
	if c.env.bench.about.Exact && slices.Contains([]string{"STL", "3MF", "OBJ", "PLY", "JSON"}, format) {
		tolerance = quality[0]
	}
	if err := c.ctx.Err(); err != nil {
		return nil, ended(c.ctx)
	}
	replaced, err := replace(root, name, content.Bytes())
	if err != nil {
		return nil, fileError("file_path", name, err)
	}
	sum := sha256.Sum256(content.Bytes())
	return map[string]any{
		"file_path": name, "format": format, "bytes": content.Len(), "sha256": hex.EncodeToString(sum[:]),
		"parts": list, "tolerance": tolerance, "replaced": replaced, "workspace_id": c.ws.Record().ID,
	}, nil
}

// limited is a writer that refuses a file that grows beyond all measure.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, Refuse(OperationInvalid, "entity_ids", nil, fmt.Sprintf("the file would be longer than %d MB", maxWritten>>20), "export fewer solids, or with a coarser tessellation_quality")
	}
	return l.to.Write(p)
}

type importFile struct {
	EntityID string `json:"entity_id"` // of several solids, what their ids begin with
	Path     string `json:"file_path" need:""`
	Format   string `json:"format"` // by the path's ending where nothing is given
}

// importFile makes a solid of each in a file, all of them or none.
func (c *call) importFile(p importFile) (any, error) {
	name, err := filePath(p.Path)
	if err != nil {
		return nil, err
	}
	format := formatOf(p.Format, name)
	if err := c.fits(format, c.env.bench.about.Imports); err != nil {
		return nil, err
	}
	content, err := c.content(name)
	if err != nil {
		return nil, err
	}
	var found []Imported
	c.stage.at(10, "reading "+format)
	err = c.env.bench.use(c.ctx, func(ctx context.Context, k Kernel) (err error) {
		found, err = k.Import(ctx, bytes.NewReader(content), format)
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
	var all model.Change
	for i, solid := range found {
		c.stage.at(20+80*float64(i)/float64(len(found)), "building")
		id := p.EntityID
		if id == "" {
			id = c.ws.NextID(model.Solid)
			if n := len(found); n > 1 {
				id += "." + strconv.Itoa(i+1)
			}
		} else if len(found) > 1 {
			id += "_" + strconv.Itoa(i+1)
		}
		blob := model.NewBlob(solid.Blob)
		_, change, err := c.define(making{id: id, recipe: &Import{Format: format, Index: i}, blob: &blob})
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
	out := map[string]any{"file_path": name, "format": format, "entity_ids": idsOf(all.Put), "solids": solids, "workspace_id": c.ws.Record().ID}
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
	case info.Size() > maxRead:
		return nil, Refuse(ImportFailed, "file_path", name, fmt.Sprintf("%s has %d bytes", name, info.Size()), fmt.Sprintf("give a file of at most %d MB", maxRead>>20))
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
