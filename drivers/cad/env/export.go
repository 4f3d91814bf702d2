package env

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

type exportFile struct {
	Path      string   `json:"file_path" need:""`
	Format    string   `json:"format" is:"STEP, STL, 3MF, SVG …; by the path's ending where nothing is given"`
	EntityIDs []string `json:"entity_ids" is:"all solids where none is named"`
	Quality   string   `json:"tessellation_quality" is:"preview, standard (where nothing is given) or high_quality"`
	Text      bool     `json:"ascii" is:"of STL"`
	Schema    string   `json:"schema" is:"of STEP: AP214"`
	View      string   `json:"view" is:"of SVG: top, front, right or isometric"`
	Overwrite *bool    `json:"overwrite" is:"true where nothing is given"`
}

func (p exportFile) check() error {
	name, err := filePath(p.Path)
	if err != nil {
		return err
	}
	_, known := qualities[p.Quality]
	switch format := formatOf(p.Format, name); {
	case !known:
		return Invalid("tessellation_quality", p.Quality, "preview, standard or high_quality")
	case p.Text && format != "STL":
		return Invalid("ascii", true, "true for STL only")
	case p.View != "" && format != "SVG":
		return Invalid("view", p.View, "a view for SVG only")
	case !slices.Contains([]string{"", "top", "front", "right", "isometric"}, p.View):
		return Invalid("view", p.View, "top, front, right or isometric")
	case p.Schema != "" && format != "STEP":
		return Invalid("schema", p.Schema, "a schema for STEP only")
	}
	return nil
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
	quality := qualities[p.Quality]
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	if _, err := root.Stat(name); err == nil && !given(p.Overwrite, true) {
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
	content := pipe.Kept{
		Most: maxWritten, // a file that grows beyond all measure
		Over: Refuse(OperationInvalid, "entity_ids", nil, fmt.Sprintf("the file would be longer than %d MB", maxWritten>>20), "export fewer solids, or with a coarser tessellation_quality"),
	}
	c.stage.at(10, "writing "+format)
	err = c.env.bench.made(c.ctx, in(c.ws), hashes, func(ctx context.Context, k Kernel) error {
		o := ExportOptions{Format: format, Schema: p.Schema, Text: p.Text, View: p.View, Deflection: quality[0], Angle: quality[1]}
		if slices.Contains(faceted, format) {
			return exportMeshes(ctx, k, &content, parts, o)
		}
		return k.Export(ctx, &content, parts, o)
	})
	if err != nil {
		return nil, err
	}
	if c.env.bench.about.Exact && format != "SVG" && slices.Contains(faceted, format) {
		tolerance = quality[0]
	}
	if err := c.ctx.Err(); err != nil {
		return nil, ended(c.ctx)
	}
	written := content.Take()
	replaced, err := replace(root, name, written)
	if err != nil {
		return nil, fileError("file_path", name, err)
	}
	sum := sha256.Sum256(written)
	return map[string]any{
		"file_path": name, "format": format, "bytes": len(written), "sha256": hex.EncodeToString(sum[:]),
		"parts": list, "tolerance": tolerance, "replaced": replaced, "workspace_id": c.ws.Record().ID,
	}, nil
}

// Limits of files.
const (
	maxWritten = 256 << 20 // bytes
	// maxJournalled bounds what the solids of a file take in a journal's entry,
	// which is one line of 10 MiB at most when it is told.
	maxJournalled = 7 << 20
)

// formatOf is the format asked for, or that the file's name ends in.
func formatOf(asked, name string) string {
	f := strings.ToUpper(cmp.Or(asked, strings.TrimPrefix(path.Ext(name), ".")))
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

// faceted are the formats of facets, which are the same for every kernel.
var faceted = []string{"STL", "3MF", "SVG", "JSON"}

// exportMeshes writes bodies in a format of facets. STL, which can't keep parts
// apart, gets what they are together.
func exportMeshes(ctx context.Context, k Kernel, w io.Writer, parts []Part, o ExportOptions) error {
	each := slices.Chunk(parts, 1)
	if o.Format == "STL" {
		each = slices.Chunk(parts, len(parts))
	}
	var all []format.Part
	for some := range each {
		hashes := core.Map(some, func(p Part) string { return p.Hash })
		m, tolerance, err := k.Mesh(ctx, hashes, o.Deflection, o.Angle)
		if err != nil {
			return err
		}
		if o.Format == "JSON" && k.About().Exact {
			m.Faces = nil // its readers take faces for flat
		}
		all = append(all, format.Part{Name: together(some), Mesh: m, Tolerance: tolerance})
	}
	return Refused(writeMeshes(w, all, o), InvalidParameter)
}

func writeMeshes(w io.Writer, parts []format.Part, o ExportOptions) error {
	switch {
	case o.Format == "STL" && o.Text:
		return format.WriteTextSTL(w, parts)
	case o.Format == "STL":
		return format.WriteSTL(w, parts)
	case o.Format == "3MF":
		return format.Write3MF(w, parts)
	case o.Format == "SVG":
		return format.WriteSVG(w, parts, format.View(cmp.Or(o.View, string(format.Isometric))))
	}
	return format.WriteJSON(w, parts)
}

// together names the solid that parts are as one: all names, as far as a file
// has room for them.
func together(parts []Part) string {
	name := parts[0].Name
	for _, p := range parts[1:] {
		if len(name)+1+len(p.Name) > 100 {
			return name + "+…"
		}
		name += "+" + p.Name
	}
	return name
}

// importMeshes reads the solids of a file of facets, STL or JSON. What it answers
// is JSON of one part each, which every kernel builds from.
func importMeshes(content []byte, kind string) ([]Imported, error) {
	var parts []format.Part
	var err error
	if kind == "STL" {
		one := format.Part{Name: "solid"}
		one.Mesh, err = format.ReadSTL(content)
		parts = []format.Part{one}
	} else {
		parts, err = format.ReadJSON(content)
	}
	if err != nil {
		return nil, Refuse(ImportFailed, "file_path", nil, err.Error(), "give a file of closed surfaces as "+kind)
	}
	var out []Imported
	for _, p := range parts {
		var blob bytes.Buffer
		if err := format.WriteJSON(&blob, []format.Part{p}); err != nil {
			return nil, Refused(err, ImportFailed)
		}
		out = append(out, Imported{Name: p.Name, Blob: blob.Bytes()})
	}
	return out, nil
}
