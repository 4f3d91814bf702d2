package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

const (
	stlHeader = 80
	stlFacet  = 50
)

// WriteSTL writes all parts as one binary STL. The format has no units, names
// or parts: its header says millimetres and the tolerance, and parts that touch
// at a face have to come joined, or no reader finds a solid.
func WriteSTL(w io.Writer, parts []Part) error {
	surfaces, err := surfacesOf(parts)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	header := make([]byte, stlHeader, stlHeader+4)
	copy(header, fmt.Sprintf("binary STL, mm, chord tolerance %s mm", decimal(coarsest(parts))))
	count := 0
	for _, m := range surfaces {
		count += len(m.Triangles)
	}
	out.Write(binary.LittleEndian.AppendUint32(header, uint32(count)))
	facet := make([]byte, 0, stlFacet)
	for _, m := range surfaces {
		for i := range m.Triangles {
			a, b, c := m.Corners(i)
			facet = facet[:0]
			for _, v := range [][3]float64{m.Normal(i), a, b, c} {
				for _, x := range v {
					facet = binary.LittleEndian.AppendUint32(facet, math.Float32bits(float32(x)))
				}
			}
			out.Write(append(facet, 0, 0))
		}
	}
	return out.Flush() // also answers the first error of the writes above
}

// WriteTextSTL writes each part as a named solid of a text STL, which is some
// four times as long as a binary one.
func WriteTextSTL(w io.Writer, parts []Part) error {
	surfaces, err := surfacesOf(parts)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for n, p := range parts {
		m := surfaces[n]
		name := strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || unicode.IsControl(r) {
				return '_'
			}
			return r
		}, p.Name)
		fmt.Fprintf(out, "solid %s\n", name)
		for i := range m.Triangles {
			a, b, c := m.Corners(i)
			fmt.Fprintf(out, " facet normal %s\n  outer loop\n", single(m.Normal(i)))
			for _, v := range [][3]float64{a, b, c} {
				fmt.Fprintf(out, "   vertex %s\n", single(v))
			}
			out.WriteString("  endloop\n endfacet\n")
		}
		fmt.Fprintf(out, "endsolid %s\n", name)
	}
	return out.Flush()
}

// single writes a vector in the format's single precision.
func single(v [3]float64) string { return short(v[0]) + " " + short(v[1]) + " " + short(v[2]) }

// ReadSTL reads a binary or a text STL in millimetres. Equal corners become
// one vertex; what is not a closed surface is refused.
func ReadSTL(data []byte) (*mesh.Mesh, error) {
	var err error
	w := welder{number: map[[3]float32]uint32{}}
	switch {
	case len(data) >= stlHeader+4 && uint64(len(data)) == stlHeader+4+stlFacet*uint64(binary.LittleEndian.Uint32(data[stlHeader:])):
		err = w.binary(data[stlHeader+4:])
	case bytes.HasPrefix(bytes.TrimSpace(data[:min(len(data), 256)]), []byte("solid")):
		err = w.text(data)
	default:
		err = core.Invalid("file", fmt.Sprintf("%d bytes", len(data)), "binary STL of 84 bytes and 50 for each facet, or text STL that starts with solid")
	}
	if err != nil {
		return nil, err
	}
	if err := w.mesh.Check(); err != nil {
		return nil, fmt.Errorf("STL: %w", err)
	}
	return &w.mesh, nil
}

// welder makes one vertex of equal corners.
type welder struct {
	mesh   mesh.Mesh
	number map[[3]float32]uint32
}

// add adds a facet; one that the file's precision has squeezed to a line goes.
func (w *welder) add(corners [3][3]float32) error {
	if len(w.mesh.Triangles) >= mesh.MaxTriangles {
		return core.Invalid("file", "more facets than its limit", fmt.Sprintf("at most %d facets", mesh.MaxTriangles))
	}
	var t [3]uint32
	for i, c := range corners {
		for j := range c {
			c[j] += 0 // one zero
			if v := float64(c[j]); math.IsNaN(v) || math.Abs(v) > 1e9 {
				return core.Invalid("file", v, "finite coordinates up to 1e9 mm")
			}
		}
		n, ok := w.number[c]
		if !ok {
			n = uint32(len(w.mesh.Vertices))
			w.number[c] = n
			w.mesh.Vertices = append(w.mesh.Vertices, [3]float64{float64(c[0]), float64(c[1]), float64(c[2])})
		}
		t[i] = n
	}
	if t[0] != t[1] && t[1] != t[2] && t[2] != t[0] {
		w.mesh.Triangles = append(w.mesh.Triangles, t)
	}
	return nil
}

func (w *welder) binary(data []byte) error {
	for ; len(data) >= stlFacet; data = data[stlFacet:] {
		var corners [3][3]float32
		for i := range 9 {
			corners[i/3][i%3] = math.Float32frombits(binary.LittleEndian.Uint32(data[12+4*i:]))
		}
		if err := w.add(corners); err != nil {
			return err
		}
	}
	return nil
}

// text reads the vertices of a text STL, three to a facet, and checks the words
// around them.
func (w *welder) text(data []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(data))
	var corners [3][3]float32
	have, inside, number := 0, false, 0
	for lines.Scan() {
		number++
		f := bytes.Fields(lines.Bytes())
		wrong := func() error {
			return core.Invalid("file", fmt.Sprintf("line %d, %.60q", number, lines.Text()), "text STL: facets of one loop of three vertices")
		}
		switch {
		case len(f) == 0:
		case string(f[0]) == "facet" && !inside:
			inside, have = true, 0
		case string(f[0]) == "vertex" && inside && len(f) == 4 && have < 3:
			for i := range 3 {
				v, err := strconv.ParseFloat(string(f[1+i]), 32)
				if err != nil {
					return wrong()
				}
				corners[have][i] = float32(v)
			}
			have++
		case string(f[0]) == "endfacet" && inside && have == 3:
			inside = false
			if err := w.add(corners); err != nil {
				return err
			}
		case !inside && (string(f[0]) == "solid" || string(f[0]) == "endsolid"), inside && (string(f[0]) == "outer" || string(f[0]) == "endloop"):
		default:
			return wrong()
		}
	}
	if err := lines.Err(); err != nil {
		return core.Invalid("file", fmt.Sprintf("line %d", number+1), "lines of at most 64 kB")
	}
	if inside {
		return core.Invalid("file", "an unfinished facet", "text STL that ends after endfacet")
	}
	return nil
}
