package env

import (
	"bytes"
	"io"

	"swarmdeck/drivers/cad/format"
)

// WriteMeshes writes parts in a format that every kernel shares, because it is
// made of facets: STL, 3MF, SVG or JSON.
func WriteMeshes(w io.Writer, parts []format.Part, o ExportOptions) error {
	var err error
	switch o.Format {
	case "STL":
		write := format.WriteSTL
		if o.Text {
			write = format.WriteTextSTL
		}
		err = write(w, parts)
	case "3MF":
		err = format.Write3MF(w, parts)
	case "SVG":
		view := format.View(o.View)
		if view == "" {
			view = format.Isometric
		}
		err = format.WriteSVG(w, parts, view)
	case "JSON":
		err = format.WriteJSON(w, parts)
	default:
		return Refuse(UnsupportedFormat, "format", o.Format, "format "+o.Format+" is not made of facets", "give STL, 3MF, SVG or JSON")
	}
	return Refused(err, InvalidParameter)
}

// Together names the solid that parts are as one: all names, as far as a file
// has room for them.
func Together(parts []Part) string {
	name := parts[0].Name
	for _, p := range parts[1:] {
		if len(name)+1+len(p.Name) > 100 {
			return name + "+…"
		}
		name += "+" + p.Name
	}
	return name
}

// ReadMeshes reads the solids of a file of facets, STL or JSON. What it answers
// is JSON of one part each, which every kernel builds from.
func ReadMeshes(r io.Reader, kind string) ([]Imported, error) {
	var parts []format.Part
	var err error
	switch kind {
	case "STL":
		one := format.Part{Name: "solid"}
		one.Mesh, err = format.ReadSTL(r)
		parts = []format.Part{one}
	case "JSON":
		parts, err = format.ReadJSON(r)
	default:
		return nil, Refuse(UnsupportedFormat, "format", kind, "format "+kind+" is not made of facets", "give STL or JSON")
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
		out = append(out, Imported{Name: p.Name, Op: "import", Blob: blob.Bytes(), Tolerance: p.Tolerance})
	}
	return out, nil
}
