package format

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// document is the JSON file: our own form, without loss.
type document struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Unit    string    `json:"unit"`
	Parts   jsonParts `json:"parts"`
}

type jsonPart struct {
	Name      string        `json:"name"`
	Tolerance float64       `json:"tolerance"`
	Vertices  jsonVertices  `json:"vertices"`
	Triangles jsonTriangles `json:"triangles"`
	Faces     jsonFaces     `json:"faces,omitempty"`
}

type (
	jsonParts     []jsonPart
	jsonVertices  [][3]float64
	jsonTriangles [][3]uint32
	jsonFaces     []uint32
)

func (l *jsonParts) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	return list((*[]jsonPart)(l), from, MaxParts)
}

func (l *jsonVertices) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	return list((*[][3]float64)(l), from, mesh.MaxVertices)
}

func (l *jsonTriangles) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	return list((*[][3]uint32)(l), from, mesh.MaxTriangles)
}

func (l *jsonFaces) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	return list((*[]uint32)(l), from, mesh.MaxTriangles)
}

// list reads an array of a length that nobody vouches for. It keeps one element
// more than there may be, which check refuses, and skips the rest.
func list[T any](into *[]T, from *jsontext.Decoder, most int) error {
	if from.PeekKind() != '[' {
		return json.UnmarshalDecode(from, into) // null, or it says what is wrong
	}
	if _, err := from.ReadToken(); err != nil {
		return err
	}
	var none T
	for from.PeekKind() != ']' {
		if len(*into) > most {
			if err := from.SkipValue(); err != nil {
				return err
			}
			continue
		}
		*into = append(*into, none)
		if err := json.UnmarshalDecode(from, &(*into)[len(*into)-1]); err != nil {
			return err
		}
	}
	_, err := from.ReadToken()
	return err
}

const (
	jsonFormat  = "swarmdeck-solids"
	jsonVersion = 1
)

// WriteJSON writes parts as {format, version, unit, parts[{name, tolerance,
// vertices, triangles, faces}]}.
func WriteJSON(w io.Writer, parts []Part) error {
	if err := check(parts); err != nil {
		return err
	}
	doc := document{Format: jsonFormat, Version: jsonVersion, Unit: "mm"}
	for _, p := range parts {
		doc.Parts = append(doc.Parts, jsonPart{
			Name: p.Name, Tolerance: p.Tolerance,
			Vertices: p.Mesh.Vertices, Triangles: p.Mesh.Triangles, Faces: p.Mesh.Faces,
		})
	}
	data, err := core.Encode(doc)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// ReadJSON reads what WriteJSON wrote; an unknown field, another unit or a part
// that is no solid is refused.
func ReadJSON(data []byte) ([]Part, error) {
	var doc document
	if err := core.Decode(data, &doc); err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	switch {
	case doc.Format != jsonFormat:
		return nil, core.Invalid("format", doc.Format, jsonFormat)
	case doc.Version != jsonVersion:
		return nil, core.Invalid("version", doc.Version, fmt.Sprint(jsonVersion))
	case doc.Unit != "mm":
		return nil, core.Invalid("unit", doc.Unit, "mm")
	}
	var parts []Part
	for _, p := range doc.Parts {
		parts = append(parts, Part{
			Name: p.Name, Tolerance: p.Tolerance,
			Mesh: &mesh.Mesh{Vertices: p.Vertices, Triangles: p.Triangles, Faces: p.Faces},
		})
	}
	if err := check(parts); err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	return parts, nil
}
