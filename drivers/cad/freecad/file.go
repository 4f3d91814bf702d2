package freecad

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/engine/core"
)

// schemas of STEP that OpenCASCADE writes; the first is the default.
var schemas = [...]string{"AP214", "AP203", "AP242"}

// Export writes named bodies as one file.
func (k *Kernel) Export(ctx context.Context, w io.Writer, parts []env.Part, o env.ExportOptions) error {
	switch o.Format {
	case "STEP", "IGES", "BREP":
		return k.exportExact(ctx, w, parts, o)
	case "STL", "3MF", "SVG", "JSON":
	default:
		return env.Unsupported("format", o.Format, env.OCCT, "")
	}
	if o.Format == "STL" && len(parts) > 1 { // which can't keep parts apart: what they are together
		hashes := core.Map(parts, func(p env.Part) string { return p.Hash })
		m, deflection, err := k.facets(ctx, hashes, o.Deflection, o.Angle)
		if err != nil {
			return err
		}
		return env.WriteMeshes(w, []format.Part{{Name: env.Together(parts), Mesh: m, Tolerance: deflection}}, o)
	}
	var all []format.Part
	for _, p := range parts {
		m, deflection, err := k.facets(ctx, []string{p.Hash}, o.Deflection, o.Angle)
		if err != nil {
			return err
		}
		if o.Format == "JSON" {
			m.Faces = nil // its readers take faces for flat
		}
		all = append(all, format.Part{Name: p.Name, Mesh: m, Tolerance: deflection})
	}
	return env.WriteMeshes(w, all, o)
}

func (k *Kernel) exportExact(ctx context.Context, w io.Writer, parts []env.Part, o env.ExportOptions) error {
	if o.Schema == "" {
		o.Schema = schemas[0]
	}
	if o.Format == "STEP" && o.Schema != schemas[0] && o.Schema != schemas[1] && o.Schema != schemas[2] {
		return env.Refuse(env.UnsupportedFormat, "schema", o.Schema, fmt.Sprintf("schema %s is not written", o.Schema), "give "+strings.Join(schemas[:], ", "))
	}
	if len(parts) == 0 || len(parts) > format.MaxParts {
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

// Import reads a file into one solid each.
func (k *Kernel) Import(ctx context.Context, r io.Reader, kind string) ([]env.Imported, error) {
	switch kind {
	case "STL", "JSON":
		return env.ReadMeshes(r, kind)
	case "STEP", "IGES", "BREP":
	default:
		return nil, env.Unsupported("format", kind, env.OCCT, "")
	}
	at, err := k.scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(at)
	path := filepath.Join(at, "file."+strings.ToLower(kind))
	tolerance, err := store(path, r)
	if err != nil {
		return nil, err
	}
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
		out = append(out, env.Imported{Name: s.Name, Op: "import", Blob: blob, Tolerance: tolerance})
	}
	return out, nil
}

// declared is how our own files of facets say how far these are from the true
// surface.
var declared = core.Pattern(`chord tolerance ([0-9.eE+-]{1,30}) mm`)

// store puts a file where the worker reads it, and answers the tolerance that
// its head declares.
func store(path string, r io.Reader) (tolerance float64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fmt.Errorf("store the file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := &bytes.Buffer{}
	_, err = io.CopyN(head, r, 4096)
	if err == nil || errors.Is(err, io.EOF) {
		_, err = io.Copy(f, io.LimitReader(io.MultiReader(bytes.NewReader(head.Bytes()), r), format.MaxBytes+1))
	}
	if err != nil {
		return 0, fmt.Errorf("store the file: %w", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() > format.MaxBytes {
		return 0, env.Refuse(env.ImportFailed, "file_path", nil, "the file is too long", fmt.Sprintf("give at most %d bytes", format.MaxBytes))
	}
	if found := declared().FindSubmatch(head.Bytes()); found != nil {
		if v, err := strconv.ParseFloat(string(found[1]), 64); err == nil && v >= 0 && v <= 10 {
			tolerance = v
		}
	}
	return tolerance, nil
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
		if parts, err = format.ReadJSON(bytes.NewReader(blob)); err == nil && len(parts) == 1 {
			content, tolerance, err = "mesh", parts[0].Tolerance, writeMesh(path, parts[0].Mesh)
		}
	}
	var at *os.PathError
	if errors.As(err, &at) {
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
