package embedded

import (
	"bytes"
	"context"
	"io"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
)

// Export writes named bodies as one file.
func (k *Kernel) Export(ctx context.Context, w io.Writer, parts []env.Part, o env.ExportOptions) error {
	var all []format.Part
	for _, p := range parts {
		m, tolerance, err := k.Mesh(ctx, p.Hash, o.Deflection)
		if err != nil {
			return err
		}
		all = append(all, format.Part{Name: p.Name, Mesh: m, Tolerance: tolerance})
	}
	var err error
	switch o.Format {
	case "STEP":
		if o.Schema != "" && o.Schema != "AP214" {
			return env.Unsupported("schema", o.Schema, env.Embedded, env.OCCT)
		}
		err = format.WriteSTEP(w, all)
	case "STL":
		write := format.WriteSTL
		if o.Text {
			write = format.WriteTextSTL
		}
		err = write(w, all)
	case "3MF":
		err = format.Write3MF(w, all)
	case "SVG":
		view := format.View(o.View)
		if view == "" {
			view = format.Isometric
		}
		err = format.WriteSVG(w, all, view)
	case "JSON":
		err = format.WriteJSON(w, all)
	default:
		return env.Unsupported("format", o.Format, env.Embedded, env.OCCT)
	}
	return env.Refused(err, env.InvalidParameter)
}

// Import reads a file into parts of our own form, one for each solid.
func (k *Kernel) Import(_ context.Context, r io.Reader, kind string) ([]env.Imported, error) {
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
		return nil, env.Unsupported("format", kind, env.Embedded, env.OCCT)
	}
	if err != nil {
		return nil, env.Refused(err, env.ImportFailed)
	}
	var out []env.Imported
	for _, p := range parts {
		var blob bytes.Buffer
		if err := format.WriteJSON(&blob, []format.Part{p}); err != nil {
			return nil, env.Refused(err, env.ImportFailed)
		}
		out = append(out, env.Imported{Name: p.Name, Op: "import", Blob: blob.Bytes(), Tolerance: p.Tolerance})
	}
	return out, nil
}
