package env

import (
	"math"
	"slices"
	"strings"

	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// Recipe is the params of a model.Shape, by its op. Lengths are mm, angles
// radians, directions of any length but zero. Tolerance, where a recipe has
// one, is the chord tolerance in mm for a kernel that makes facets; an exact
// kernel ignores it, and 0 means the kernel's own.
type Recipe interface {
	// Op names the operation.
	Op() string
	// check refuses what no kernel shall be asked, with an *Error.
	check() error
}

// MaxInputs bounds the shapes that one boolean takes, and the copies of a
// pattern.
const MaxInputs = 1000

// Limits of lengths in mm.
const (
	MaxLength = 1e5
	MinLength = 1e-4
)

// Plane is where a profile lies: the profile's x and y run along two directions
// of length 1 at a right angle.
type Plane struct {
	Origin [3]float64 `json:"origin"`
	XAxis  [3]float64 `json:"x_axis"`
	YAxis  [3]float64 `json:"y_axis"`
}

// Normal of the plane, of length 1.
func (p Plane) Normal() [3]float64 { return mesh.Cross(p.XAxis, p.YAxis) }

// At is a point of the plane in space.
func (p Plane) At(x, y float64) [3]float64 {
	return mesh.Add(p.Origin, mesh.Add(mesh.Scale(p.XAxis, x), mesh.Scale(p.YAxis, y)))
}

// The recipes.
type (
	// Extrude sweeps a profile along a vector, which may be oblique.
	Extrude struct {
		Profile profile.Shape `json:"profile"`
		Plane
		Vector    [3]float64 `json:"vector"`
		Tolerance float64    `json:"tolerance,omitzero"`
	}
	// Revolve turns a profile about an axis in its plane that does not pass
	// through it, counterclockwise seen from the axis' tip, up to a full turn.
	Revolve struct {
		Profile profile.Shape `json:"profile"`
		Plane
		Point     [3]float64 `json:"point"`
		Axis      [3]float64 `json:"axis"`
		Angle     float64    `json:"angle"`
		Tolerance float64    `json:"tolerance,omitzero"`
	}
	// Box has its lowest corner at the position.
	Box struct {
		Position   [3]float64 `json:"position"`
		Dimensions [3]float64 `json:"dimensions"`
	}
	// Cylinder rises from its base centre along the axis.
	Cylinder struct {
		Point     [3]float64 `json:"point"`
		Axis      [3]float64 `json:"axis"`
		Radius    float64    `json:"radius"`
		Height    float64    `json:"height"`
		Tolerance float64    `json:"tolerance,omitzero"`
	}
	// Sphere is a whole ball.
	Sphere struct {
		Center    [3]float64 `json:"center"`
		Radius    float64    `json:"radius"`
		Tolerance float64    `json:"tolerance,omitzero"`
	}
	// Cone has one radius at its base and another at the other end; one of the
	// two may be 0.
	Cone struct {
		Point     [3]float64 `json:"point"`
		Axis      [3]float64 `json:"axis"`
		Radius    float64    `json:"radius"`
		Top       float64    `json:"top"`
		Height    float64    `json:"height"`
		Tolerance float64    `json:"tolerance,omitzero"`
	}
	// Boolean has no params: union of all inputs, the first less all others, or
	// what all share.
	Boolean struct {
		Operation string `json:"-"` // union, subtract, intersect
	}
	// Linear joins count copies, each moved by spacing from the one before; the
	// first is the input itself.
	Linear struct {
		Direction [3]float64 `json:"direction"`
		Spacing   float64    `json:"spacing"`
		Count     int        `json:"count"`
	}
	// Circular joins count copies spread over an angle. A full turn spreads
	// them evenly; a smaller angle has the first and the last copy at its ends.
	Circular struct {
		Point [3]float64 `json:"point"`
		Axis  [3]float64 `json:"axis"`
		Angle float64    `json:"angle"`
		Count int        `json:"count"`
	}
	// Mirror is the reflection alone, without its original.
	Mirror struct {
		Point  [3]float64 `json:"point"`
		Normal [3]float64 `json:"normal"`
	}
	// Transform maps by four columns: the images of the axes and of the origin.
	Transform struct {
		Matrix [4][3]float64 `json:"matrix"`
	}
	// Fillet rounds edges: those nearest to each of the points, or all.
	Fillet struct {
		Radius float64      `json:"radius" need:"" is:"mm, above 0"`
		Edges  [][3]float64 `json:"edges,omitzero" is:"places; the edge nearest to each"`
	}
	// Chamfer cuts edges at 45°: those nearest to each of the points, or all.
	Chamfer struct {
		Distance float64      `json:"distance" need:"" is:"mm, above 0"`
		Edges    [][3]float64 `json:"edges,omitzero" is:"places; the edge nearest to each"`
	}
	// Shell hollows a solid out, leaving walls inside its surface. The faces
	// nearest to each of the points are left open.
	Shell struct {
		Thickness float64      `json:"thickness" need:"" is:"mm, above 0"`
		OpenFaces [][3]float64 `json:"open_faces,omitzero" is:"places; the face nearest to each"`
	}
	// Import is one solid of a file; the shape's blob holds what the kernel that
	// read it made of it.
	Import struct {
		Format string `json:"format"` // STEP, STL, JSON …
		Index  int    `json:"index"`  // of the solid in the file, from 0
	}
)

// Op names the operation.
func (*Extrude) Op() string   { return "extrude" }
func (*Revolve) Op() string   { return "revolve" }
func (*Box) Op() string       { return "box" }
func (*Cylinder) Op() string  { return "cylinder" }
func (*Sphere) Op() string    { return "sphere" }
func (*Cone) Op() string      { return "cone" }
func (b *Boolean) Op() string { return b.Operation }
func (*Linear) Op() string    { return "pattern_linear" }
func (*Circular) Op() string  { return "pattern_circular" }
func (*Mirror) Op() string    { return "mirror" }
func (*Transform) Op() string { return "transform" }
func (*Fillet) Op() string    { return "fillet" }
func (*Chamfer) Op() string   { return "chamfer" }
func (*Shell) Op() string     { return "shell" }
func (*Import) Op() string    { return "import" }

// blank is an empty recipe of an op, nil for an unknown one.
func blank(op string) Recipe {
	switch op {
	case "union", "subtract", "intersect":
		return &Boolean{Operation: op}
	}
	for _, r := range []Recipe{
		&Extrude{}, &Revolve{}, &Box{}, &Cylinder{}, &Sphere{}, &Cone{}, &Linear{}, &Circular{},
		&Mirror{}, &Transform{}, &Fillet{}, &Chamfer{}, &Shell{}, &Import{},
	} {
		if r.Op() == op {
			return r
		}
	}
	return nil
}

// DecodeRecipe reads the params of a shape and checks them. Its errors are an
// *Error.
func DecodeRecipe(s model.Shape) (Recipe, error) {
	r := blank(s.Op)
	if r == nil {
		return nil, Invalid("op", s.Op, "an operation of shapes")
	}
	if err := core.Decode(s.Params, r); err != nil {
		return nil, Refused(err, InvalidParameter)
	}
	return r, r.check()
}

// NewShape checks a recipe and makes the shape of it, under its hash.
func NewShape(r Recipe, blob string, inputs ...string) (model.Shape, error) {
	params, err := core.Encode(r)
	if err != nil { // a number that is not finite
		return model.Shape{}, Invalid("params", strings.TrimSpace(err.Error()), "finite numbers")
	}
	s, err := model.NewShape(r.Op(), params, inputs, blob)
	if err != nil {
		return s, Refused(err, InvalidParameter)
	}
	_, err = DecodeRecipe(s)
	return s, err
}

func finite(v ...float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return !(math.Abs(x) <= MaxLength) })
}
