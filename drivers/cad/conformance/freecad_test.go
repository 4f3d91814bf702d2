package conformance_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"swarmdeck/engine/core"
)

// opened lets FreeCAD open an STL file and a drawing as a person's FreeCAD
// would, outside of any kernel of ours.
const opened = `
import json, os, sys
out = os.dup(1)
os.dup2(2, 1)
stl, svg = sys.argv[1:3]
sys.path.extend(sys.argv[3:])
sys.path += ["/usr/share/freecad/Mod/Draft", "/usr/share/freecad/Ext"]
import FreeCAD, Mesh, importSVG
mesh = Mesh.Mesh(stl)
drawing = FreeCAD.newDocument("drawing")
importSVG.insert(svg, drawing.Name)
box = FreeCAD.BoundBox()
for o in drawing.Objects:
    box.add(o.Shape.BoundBox)
os.write(out, json.dumps({"solid": mesh.isSolid(), "volume": mesh.Volume, "parts": mesh.countComponents(),
    "lines": len(drawing.Objects), "box": [box.XMin, box.YMin, box.XMax, box.YMax]}).encode())
os._exit(0)  # FreeCAD's own end is not always a good one
`

func TestFreeCADOpensMeshesAndDrawings(t *testing.T) {
	onEach(t, func(r *rig) {
		kernels[1].need(r.TB)
		i, err := installed()
		if err != nil {
			r.Fatal(err)
		}
		plate, pin := r.holed()
		r.export("both.stl", obj{"tessellation_quality": "high_quality"})
		r.export("both.svg", obj{"view": "top"})
		home := r.TempDir()
		args := []string{"-I", "-B", "-c", opened, filepath.Join(r.dir, "both.stl"), filepath.Join(r.dir, "both.svg")}
		cmd := exec.CommandContext(r.Context(), i.Python, append(args, i.Paths...)...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + home}
		cmd.Dir, cmd.Stderr = home, os.Stderr
		answer, err := cmd.Output()
		if err != nil {
			r.Fatal(err)
		}
		var o obj
		if err := core.Decode(answer, &o); err != nil {
			r.Fatalf("%s: %v", answer, err)
		}
		if o["solid"] != true || o.number("parts") != 2 || o.number("lines") < 6 {
			r.Errorf("FreeCAD sees %v, want a closed mesh of two parts and a drawing", o)
		}
		r.near("volume of the mesh", o.number("volume"), plate+pin, 1e-3*(plate+pin))
		box := o.vector("box")
		for i, want := range []float64{0, 0, 100, 80} {
			if len(box) != 4 || math.Abs(box[i]-want) > 0.01 {
				r.Errorf("the drawing covers %v, want the plate in millimetres", box)
			}
		}
	})
}
