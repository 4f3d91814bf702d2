package embedded

import (
	"context"
	"io"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
)

// Export writes named bodies as STEP.
func (k *Kernel) Export(ctx context.Context, w io.Writer, parts []env.Part, o env.ExportOptions) error {
	if o.Schema != "" && o.Schema != "AP214" {
		return env.Unsupported("schema", o.Schema, env.Embedded, env.OCCT)
	}
	var all []format.Part
	for _, p := range parts {
		m, tolerance, err := k.Mesh(ctx, []string{p.Hash}, o.Deflection, o.Angle)
		if err != nil {
			return err
		}
		all = append(all, format.Part{Name: p.Name, Mesh: m, Tolerance: tolerance})
	}
	return env.Refused(format.WriteSTEP(ctx, w, all), env.InvalidParameter)
}

// Import reads nothing: files of whole faces need another kernel.
func (k *Kernel) Import(_ context.Context, _ []byte, kind string) ([]env.Imported, error) {
	return nil, env.Unsupported("format", kind, env.Embedded, env.OCCT)
}
