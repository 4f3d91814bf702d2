// Package solid draws solids on a canvas: hidden-line drawings in braille or
// shaded pictures in half blocks, and plain characters where there is nothing else. The projection is parallel, as in a drawing.
//
// A Scene is what there is to see: it is made once, outside of the frame, and
// never changes. A Look says how it is seen. A View owns the buffers and draws;
// after the first frame of a size it allocates nothing. Whatever mesh it is
// handed, drawing never fails and its work is bounded: what is left out is
// told by Scene.Note and View.Note.
package solid

import (
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/ui/screen"
)

// Bounds of a scene and of a picture.
const (
	MaxParts     = 100     // further ones are left out
	MaxTriangles = 120_000 // of a scene; finer meshes are drawn coarser
	maxRead      = 4_000_000
	maxCells     = 320 // a side of a picture
	maxFill      = 16_000_000
	maxCoord     = 1e9 // mm, as meshes may have
)

// Side is where a part stands in a comparison.
type Side uint8

// The sides. What both have in common is drawn as common, what only Before has
// as removed, what only After has as added.
const (
	Neither Side = iota // the scene compares nothing
	Before
	After
)

// Part is one solid of a scene.
type Part struct {
	Name string
	Mesh *mesh.Mesh
	Role screen.Role // its colour; of a comparison the sides decide
	Side Side
}

// Mode is a way to draw.
type Mode uint8

// The modes. Without shades of colour, faces are characters, the brightest
// the densest.
const (
	Lines  Mode = iota // visible edges
	Shaded             // faces by the light on them
	Modes              // how many there are
)

// String is the mode's name.
func (m Mode) String() string {
	switch m {
	case Lines:
		return "lines"
	case Shaded:
		return "shaded"
	}
	return "unknown"
}

// Look is how a scene is seen.
type Look struct {
	Camera Camera
	Mode   Mode
	// Tints draws shades of colour; without them characters shade.
	Tints bool
	// Part is the number of the part that stands out, from 1; 0 is none.
	Part int
	// Four shows top, front, right and iso at one scale in place of Camera.
	Four bool
}

// Best is the mode for a screen: faces where there are shades of colour, else edges.
func Best(tints bool) Mode {
	if tints {
		return Shaded
	}
	return Lines
}
