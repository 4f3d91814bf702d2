package env

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/engine/core"
)

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
