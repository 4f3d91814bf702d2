package embedded

import (
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
	if o.Format != "STEP" {
		return env.WriteMeshes(w, all, o)
	}
	if o.Schema != "" && o.Schema != "AP214" {
		return env.Unsupported("schema", o.Schema, env.Embedded, env.OCCT)
	}
	return env.Refused(format.WriteSTEP(w, all), env.InvalidParameter)
}

// Import reads a file of facets.
func (k *Kernel) Import(_ context.Context, r io.Reader, kind string) ([]env.Imported, error) {
	return env.ReadMeshes(r, kind)
}
