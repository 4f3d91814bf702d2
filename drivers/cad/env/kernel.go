// Package env is the CAD environment: workspaces of exact recipes and real
// solids behind JSON-RPC 2.0, one message to the line. The same surface stands
// before every kernel; what a kernel can't do is refused as unsupported.
package env

import (
	"context"
	"io"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
)

// The kernels that there are.
const (
	Embedded = "embedded" // facets, inside this program
	OCCT     = "occt"     // exact, where FreeCAD is installed
)

// Kernel carries out the recipes of shapes. It holds each built body under the
// hash of its shape; building one that it holds costs nothing. A Kernel belongs
// to one goroutine. An error that says what the caller did wrong is an *Error;
// any other means that the kernel is lost: it is closed, another is opened, and
// what is needed is built again.
type Kernel interface {
	// About tells what the kernel is and can do.
	About() About
	// Build makes the body of a shape whose inputs the kernel holds. blob is the
	// content that an import starts from.
	Build(ctx context.Context, s model.Shape, blob []byte) (model.Facts, error)
	// Drop forgets a body.
	Drop(hash string)
	// Measure tells the facts of a body again, and its inertia.
	Measure(ctx context.Context, hash string) (model.Facts, Inertia, error)
	// Mesh is the surface around bodies; where the kernel can choose, facets stay
	// within a deflection in mm and turn by an angle in radians at most, 0 leaves the
	// angle to the kernel. The answer's second value is the deflection that was kept.
	Mesh(ctx context.Context, hashes []string, deflection, angle float64) (*mesh.Mesh, float64, error)
	// Overlap is what two bodies share; nil when they are apart or touch
	// (requirement 6.4: touching is not overlapping).
	Overlap(ctx context.Context, a, b string) (*Overlap, error)
	// Distance is the gap between two bodies in mm, 0 when they touch or overlap.
	Distance(ctx context.Context, a, b string) (float64, error)
	// Export writes named bodies as one file of whole faces: in a format that
	// About lists beside those of facets.
	Export(ctx context.Context, w io.Writer, parts []Part, o ExportOptions) error
	// Import reads such a file into content for shapes of op "import", one per solid.
	Import(ctx context.Context, content []byte, format string) ([]Imported, error)
	// Close ends the kernel.
	Close() error
}

// About is a kernel's part of system.hello.
type About struct {
	Name    string   `json:"kernel"` // embedded or occt
	Version string   `json:"kernel_version"`
	Exact   bool     `json:"exact"`  // curved surfaces are true, not facets
	Shapes  []string `json:"shapes"` // the ops of model.Shape that it builds
	Exports []string `json:"export_formats"`
	Imports []string `json:"import_formats"`
	// Tolerance is the chord tolerance in mm where a shape names none; 0 when
	// exact. A kernel may keep less, and of a very large radius more: each solid
	// tells its own.
	Tolerance float64 `json:"tolerance"`
}

// Inertia is about the centre of a body whose density is 1, in mm⁵.
type Inertia = [3][3]float64

// Overlap is what two bodies share.
type Overlap struct {
	Volume float64  `json:"volume"` // mm³
	Bounds mesh.Box `json:"bounding_box"`
}

// Part is one body of a file.
type Part struct {
	Name string
	Hash string
}

// ExportOptions say how a file is written.
type ExportOptions struct {
	Format     string  // STEP, STL, 3MF, SVG, JSON and what About lists
	Schema     string  // of STEP: AP214
	Text       bool    // of STL: ascii
	View       string  // of SVG: top, front, right, isometric
	Deflection float64 // mm
	Angle      float64 // radians
}

// Imported is one solid read from a file.
type Imported struct {
	Name string
	Blob []byte // what Build starts from
}
