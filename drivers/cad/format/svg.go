package format

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"

	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// View is the direction a drawing is seen from.
type View string

// The views of WriteSVG.
const (
	Top       View = "top"       // along -z, x to the right
	Front     View = "front"     // along +y, x to the right, z up
	Right     View = "right"     // along -x, y to the right, z up
	Isometric View = "isometric" // along (-1, 1, -1), z up
)

// axes are the directions to the right, up and towards the viewer.
func (v View) axes() (right, up, out [3]float64, err error) {
	switch v {
	case Top:
		return [3]float64{1, 0, 0}, [3]float64{0, 1, 0}, [3]float64{0, 0, 1}, nil
	case Front:
		return [3]float64{1, 0, 0}, [3]float64{0, 0, 1}, [3]float64{0, -1, 0}, nil
	case Right:
		return [3]float64{0, 1, 0}, [3]float64{0, 0, 1}, [3]float64{1, 0, 0}, nil
	case Isometric:
		r2, r3, r6 := math.Sqrt(2), math.Sqrt(3), math.Sqrt(6)
		return [3]float64{1 / r2, 1 / r2, 0}, [3]float64{-1 / r6, 1 / r6, 2 / r6}, [3]float64{1 / r3, -1 / r3, 1 / r3}, nil
	}
	return right, up, out, core.Invalid("view", string(v), "top, front, right, isometric")
}

const svgMargin = 5 // mm

// svgOpen starts a drawing of true size around the box from low to high.
func svgOpen(w io.Writer, low, high profile.Point, note string) {
	width, height := high.X-low.X+2*svgMargin, high.Y-low.Y+2*svgMargin
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%smm" height="%smm" viewBox="%s %s %s %s" fill="none" stroke="black" stroke-width="0.35" stroke-linecap="round">
<desc>%s</desc>
`, decimal(width), decimal(height), decimal(low.X-svgMargin), decimal(-high.Y-svgMargin), decimal(width), decimal(height), note)
}

// WriteSVG draws the edges and outlines of parts seen from a view, one unit to
// the millimetre, as lines that go on until they meet others. Edges of which both faces turn away are dashed and thin; one
// that lies behind another face is drawn like any other.
func WriteSVG(w io.Writer, parts []Part, view View) error {
	if err := check(parts); err != nil {
		return err
	}
	right, up, toward, err := view.axes()
	if err != nil {
		return err
	}
	project := func(v [3]float64) profile.Point {
		return profile.Point{X: mesh.Dot(v, right), Y: mesh.Dot(v, up)}
	}
	low, high := profile.Point{X: math.Inf(1), Y: math.Inf(1)}, profile.Point{X: math.Inf(-1), Y: math.Inf(-1)}
	for _, part := range parts {
		for _, v := range part.Mesh.Vertices {
			p := project(v)
			low = profile.Point{X: min(low.X, p.X), Y: min(low.Y, p.Y)}
			high = profile.Point{X: max(high.X, p.X), Y: max(high.Y, p.Y)}
		}
	}
	out := bufio.NewWriter(w)
	svgOpen(out, low, high, fmt.Sprintf("%s view, mm, chord tolerance %s mm", view, decimal(coarsest(parts))))
	for _, part := range parts {
		out.WriteString(`<g id="`)
		if err := xml.EscapeText(out, []byte(part.Name)); err != nil {
			return err
		}
		out.WriteString("\">\n")
		front := facing(part.Mesh, toward)
		drawn := outlines(part.Mesh, front)
		place := make([]string, len(part.Mesh.Vertices))
		for i, v := range part.Mesh.Vertices {
			p := project(v)
			place[i] = coordinate(p.X) + " " + coordinate(-p.Y)
		}
		for _, hidden := range []bool{true, false} {
			style := ""
			if hidden {
				style = ` stroke-width="0.18" stroke-dasharray="1.5 1"`
			}
			edges := core.Where(drawn, func(e mesh.Edge) bool {
				return (front[e] || front[e.Back()]) != hidden && place[e.From] != place[e.To]
			})
			if len(edges) == 0 {
				continue
			}
			fmt.Fprintf(out, "<path%s d=\"", style)
			for _, line := range chains(edges) {
				svgLine(out, line, place)
			}
			out.WriteString("\"/>\n")
		}
		out.WriteString("</g>\n")
	}
	out.WriteString("</svg>\n")
	return out.Flush()
}

// svgLine draws from place to place; a line that ends where it began is closed.
func svgLine(w io.Writer, line []uint32, place []string) {
	last := len(line) - 1
	closed := line[0] == line[last]
	if closed {
		last--
	}
	for i, v := range line[:last+1] {
		fmt.Fprintf(w, "%c%s", "ML"[min(i, 1)], place[v])
	}
	if closed {
		io.WriteString(w, "Z")
	}
}

// sharp is the angle from which on two facets meet in an edge: chords of a curve
// turn less, unless a tolerance is very coarse.
const sharp = 20 * math.Pi / 180

// outlines are the edges that a drawing shows, each once: where faces meet at an
// angle, and where a curved surface turns away from the viewer.
func outlines(m *mesh.Mesh, front map[mesh.Edge]bool) []mesh.Edge {
	owner := m.Owners()
	var out []mesh.Edge
	for i, t := range m.Triangles {
		for j, from := range t {
			e := mesh.Edge{From: from, To: t[(j+1)%3]}
			other := owner[e.Back()]
			if e.From > e.To {
				continue
			}
			faces := len(m.Faces) == 0 || m.Faces[i] != m.Faces[other]
			if front[e] != front[e.Back()] || faces && mesh.Dot(m.Normal(i), m.Normal(other)) < math.Cos(sharp) {
				out = append(out, e)
			}
		}
	}
	return out
}

// coordinate is a number of a drawing, to the tenth of a micrometre.
func coordinate(v float64) string { return decimal(math.Round(v*1e4)/1e4 + 0) }

// facing has the edges of the triangles that are turned to the viewer.
func facing(m *mesh.Mesh, toward [3]float64) map[mesh.Edge]bool {
	out := make(map[mesh.Edge]bool)
	for i, t := range m.Triangles {
		if mesh.Dot(m.Normal(i), toward) < 1e-9 {
			continue
		}
		for j, from := range t {
			out[mesh.Edge{From: from, To: t[(j+1)%3]}] = true
		}
	}
	return out
}
