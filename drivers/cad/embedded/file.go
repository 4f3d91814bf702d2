package embedded

import (
	"context"
	"errors"
	"io"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
)

// Export writes named bodies as one file. STL, which can't keep parts apart,
// gets what they are together.
func (k *Kernel) Export(ctx context.Context, w io.Writer, parts []env.Part, o env.ExportOptions) error {
	if o.Format == "STL" && len(parts) > 1 {
		one, err := k.union(ctx, parts)
		if err != nil {
			return err
		}
		return env.WriteMeshes(w, []format.Part{one}, o)
	}
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
	return env.Refused(format.WriteSTEP(ctx, w, all), env.InvalidParameter)
}

// union is the surface around all parts.
func (k *Kernel) union(ctx context.Context, parts []env.Part) (_ format.Part, err error) {
	var all []*kernel.Solid
	for _, p := range parts {
		s, err := k.body(p.Hash)
		if err != nil {
			return format.Part{}, err
		}
		all = append(all, s)
	}
	s, err := k.k.Boolean(ctx, kernel.Union, all...)
	if err != nil {
		return format.Part{}, k.refused(err, env.TopologyError)
	}
	defer func() { err = errors.Join(err, s.Free(ctx)) }()
	m, err := s.Mesh(ctx)
	return format.Part{Name: env.Together(parts), Mesh: m, Tolerance: s.Tolerance()}, k.refused(err, env.TopologyError)
}

// Import reads a file of facets.
func (k *Kernel) Import(_ context.Context, r io.Reader, kind string) ([]env.Imported, error) {
	return env.ReadMeshes(r, kind)
}
