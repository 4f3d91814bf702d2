package freecad

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// schemas of STEP that OpenCASCADE writes; the first is the default.
var schemas = [...]string{"AP214", "AP203", "AP242"}

// Export writes named bodies as one file: STEP, IGES or BREP.
func (k *Kernel) Export(ctx context.Context, w io.Writer, parts []env.Part, o env.ExportOptions) error {
	o.Schema = cmp.Or(o.Schema, schemas[0])
	if o.Format == "STEP" && o.Schema != schemas[0] && o.Schema != schemas[1] && o.Schema != schemas[2] {
		return env.Refuse(env.UnsupportedFormat, "schema", o.Schema, fmt.Sprintf("schema %s is not written", o.Schema), "give "+strings.Join(schemas[:], ", "))
	}
	if len(parts) > format.MaxParts {
		return env.Invalid("entity_ids", len(parts), fmt.Sprintf("1 to %d solids", format.MaxParts))
	}
	at, err := k.scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(at)
	type part struct {
		Name string `json:"name"`
		Hash string `json:"hash"`
	}
	all := core.Map(parts, func(p env.Part) part { return part(p) })
	path := filepath.Join(at, "file."+strings.ToLower(o.Format))
	if err := k.call(ctx, "export", map[string]any{"file": path, "format": o.Format, "schema": o.Schema, "parts": all}, nil); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read what FreeCAD wrote: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	return nil
}

// Import reads a file into one solid each: STEP, IGES or BREP.
func (k *Kernel) Import(ctx context.Context, content []byte, kind string) ([]env.Imported, error) {
	at, err := k.scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(at)
	path := filepath.Join(at, "file."+strings.ToLower(kind))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, fmt.Errorf("store the file: %w", err)
	}
	tolerance := declaredIn(content)
	var found struct {
		Solids []struct {
			Name string `json:"name"`
			File string `json:"file"`
		} `json:"solids"`
	}
	if err := k.call(ctx, "import", map[string]string{"file": path, "format": kind}, &found); err != nil {
		return nil, err
	}
	var out []env.Imported
	for _, s := range found.Solids {
		brep, err := os.ReadFile(s.File)
		if err != nil {
			return nil, fmt.Errorf("read what FreeCAD wrote: %w", err)
		}
		blob, err := pack(brep, tolerance)
		if err != nil {
			return nil, err
		}
		out = append(out, env.Imported{Name: s.Name, Blob: blob})
	}
	return out, nil
}

// declared is how our own files of facets say how far these are from the true
// surface.
var declared = core.Pattern(`chord tolerance ([0-9.eE+-]{1,30}) mm`)

// declaredIn is the tolerance that the head of a file declares, 0 where it does not.
func declaredIn(content []byte) float64 {
	found := declared().FindSubmatch(content[:min(len(content), 4096)])
	if found == nil {
		return 0
	}
	v, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil || !(v >= 0 && v <= 10) {
		return 0
	}
	return v
}

// An imported solid is kept as OpenCASCADE's own text, packed, after a line with
// its tolerance, or as JSON where it came from a file of facets.

const (
	blobHead = "tolerance "
	maxBody  = 4 * format.MaxBytes // of text that a blob unpacks to
)

func pack(brep []byte, tolerance float64) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s%g\n", blobHead, tolerance)
	z := gzip.NewWriter(&out)
	if _, err := z.Write(brep); err != nil {
		return nil, fmt.Errorf("pack a solid: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack a solid: %w", err)
	}
	return out.Bytes(), nil
}

// unpack writes a blob where the worker reads it; content is how it is written.
func unpack(blob []byte, path string) (content string, tolerance float64, err error) {
	head, packed, ok := bytes.Cut(blob, []byte("\n"))
	if ok && bytes.HasPrefix(head, []byte(blobHead)) {
		tolerance, err = strconv.ParseFloat(string(head[len(blobHead):]), 64)
		if err == nil && tolerance >= 0 && tolerance <= 10 {
			content, err = "brep", unpackTo(path, packed)
		}
	} else {
		var parts []format.Part
		if parts, err = format.ReadJSON(blob); err == nil && len(parts) == 1 {
			content, tolerance, err = "mesh", parts[0].Tolerance, writeMesh(path, parts[0].Mesh)
		}
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return "", 0, err
	}
	if err != nil || content == "" {
		return "", 0, env.Refuse(env.ImportFailed, "file_path", nil, "the content of this import is not what a kernel wrote", "import the file again")
	}
	return content, tolerance, nil
}

func unpackTo(path string, packed []byte) error {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	brep, err := io.ReadAll(io.LimitReader(z, maxBody+1))
	if err != nil {
		return err
	}
	if len(brep) > maxBody {
		return fmt.Errorf("a solid of more than %d bytes", maxBody)
	}
	return os.WriteFile(path, brep, 0o600)
}

// defaultAngle is what facets turn by at most, in radians, where the caller leaves it
// to the kernel.
const defaultAngle = 0.5

// Mesh cuts the surface around bodies into facets within the deflection. Faces
// number the true faces, curved ones too.
func (k *Kernel) Mesh(ctx context.Context, hashes []string, deflection, angle float64) (*mesh.Mesh, float64, error) {
	at, err := k.scratch()
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(at)
	path := filepath.Join(at, "mesh")
	if err := k.call(ctx, "mesh", map[string]any{"hashes": hashes, "linear": deflection, "angular": cmp.Or(angle, defaultAngle), "file": path}, nil); err != nil {
		return nil, 0, err
	}
	m, err := readMesh(path)
	if err != nil {
		return nil, 0, fmt.Errorf("freecad: %w", err)
	}
	if err := m.Check(); err != nil {
		return nil, 0, env.Refuse(env.TopologyError, "deflection", deflection, "the facets of this solid leave gaps: "+err.Error(), "give a finer deflection")
	}
	return m, deflection, nil
}

// A mesh on its way is a file in this machine's byte order: the numbers of
// vertices, triangles and faces of triangles, then each of the three.

func readMesh(path string) (*mesh.Mesh, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	from := bytes.NewReader(data)
	var counts [3]uint32
	if err := binary.Read(from, binary.NativeEndian, &counts); err != nil {
		return nil, fmt.Errorf("read a mesh: %w", err)
	}
	if want := 24*uint64(counts[0]) + 12*uint64(counts[1]) + 4*uint64(counts[2]); uint64(from.Len()) != want {
		return nil, fmt.Errorf("a mesh of %d vertices and %d triangles in %d bytes", counts[0], counts[1], len(data))
	}
	m := &mesh.Mesh{
		Vertices: make([][3]float64, counts[0]), Triangles: make([][3]uint32, counts[1]), Faces: make([]uint32, counts[2]),
	}
	for _, part := range []any{m.Vertices, m.Triangles, m.Faces} {
		if err := binary.Read(from, binary.NativeEndian, part); err != nil {
			return nil, fmt.Errorf("read a mesh of %d bytes: %w", len(data), err)
		}
	}
	return m, nil
}

func writeMesh(path string, m *mesh.Mesh) error {
	var out bytes.Buffer
	for _, part := range []any{[3]uint32{uint32(len(m.Vertices)), uint32(len(m.Triangles)), 0}, m.Vertices, m.Triangles} {
		if err := binary.Write(&out, binary.NativeEndian, part); err != nil {
			return fmt.Errorf("write a mesh: %w", err)
		}
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}
