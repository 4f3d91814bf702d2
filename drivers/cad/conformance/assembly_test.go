package conformance_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
)

// rounded draws a rectangle around the origin whose corners are quarter
// circles, at a height.
func (r *rig) rounded(workspace string, width, depth, radius, z float64) []string {
	r.Helper()
	x, y := width/2-radius, depth/2-radius
	var ids []string
	draw := func(method string, p obj) {
		p["workspace_id"] = workspace
		ids = append(ids, r.do(method, p).text("entity_id"))
	}
	for i, c := range [][2]float64{{x, y}, {-x, y}, {-x, -y}, {x, -y}} {
		from := float64(i) * math.Pi / 2
		draw("entity.create_arc", obj{"center": []float64{c[0], c[1], z}, "radius": radius, "start_angle": from, "end_angle": from + math.Pi/2})
	}
	for _, l := range [][4]float64{{x, y + radius, -x, y + radius}, {-x - radius, y, -x - radius, -y}, {-x, -y - radius, x, -y - radius}, {x + radius, -y, x + radius, y}} {
		draw("entity.create_line", obj{"start": []float64{l[0], l[1], z}, "end": []float64{l[2], l[3], z}})
	}
	return ids
}

func roundedArea(width, depth, radius float64) float64 {
	return width*depth - (4-math.Pi)*radius*radius
}

// The assembly: a housing with a pocket, a lid with four holes on it, and four
// supports below, each with a bore.
var (
	housing = roundedArea(100, 80, 8)*40 - roundedArea(90, 70, 5)*35
	lid     = (roundedArea(100, 80, 8) - 4*math.Pi*4) * 4
	support = math.Pi * (36 - 4) * 15
	corners = [][2]float64{{40, 30}, {-40, 30}, {-40, -30}, {40, -30}}
)

// assemble lets four agents make the parts in workspaces of their own, merges
// them and looks for interferences.
func (r *rig) assemble() {
	r.Helper()
	for _, w := range []string{"housing", "lid", "supports_a", "supports_b"} {
		r.do("workspace.create", obj{"workspace_name": w, "workspace_id": w, "agent_id": w})
	}
	outer := r.do("solid.extrude", obj{"workspace_id": "housing", "entity_ids": r.rounded("housing", 100, 80, 8, 0), "distance": 40}).text("entity_id")
	pocket := r.do("solid.extrude", obj{"workspace_id": "housing", "entity_ids": r.rounded("housing", 90, 70, 5, 5), "distance": 36}).text("entity_id")
	r.do("solid.boolean", obj{"workspace_id": "housing", "operation": "subtract", "entity_ids": []string{outer, pocket}, "entity_id": "Housing"})

	profile := r.rounded("lid", 100, 80, 8, 40)
	for _, c := range corners {
		profile = append(profile, r.do("entity.create_circle", obj{"workspace_id": "lid", "center": []float64{c[0], c[1], 40}, "radius": 2}).text("entity_id"))
	}
	r.do("solid.extrude", obj{"workspace_id": "lid", "entity_ids": profile, "distance": 4, "entity_id": "Lid"})

	for i, c := range corners {
		w := []string{"supports_a", "supports_b"}[i/2]
		var ids []string
		for _, p := range []struct{ radius, bottom, height float64 }{{6, -15, 15}, {2, -20, 25}} {
			ids = append(ids, r.do("solid.primitive", obj{
				"workspace_id": w, "primitive_type": "cylinder", "radius": p.radius, "height": p.height, "axis_point": []float64{c[0], c[1], p.bottom},
			}).text("entity_id"))
		}
		r.do("solid.boolean", obj{"workspace_id": w, "operation": "subtract", "entity_ids": ids, "entity_id": fmt.Sprintf("Support_%d", i+1)})
	}
	for _, w := range []string{"housing", "lid", "supports_a", "supports_b"} {
		m := r.merge(w)
		expect.Must(r, m.text("merge_result") == "success", "merge of %s: %v", w, m)
	}
	o := r.do("measure.interference", nil)
	expect.Must(r, o.number("checked_pairs") == 15 && o.number("interference_count") == 0, "%v, want no interference in 15 pairs", o)
}

// assembled is the volume of each solid of the assembly.
func assembled() map[string]float64 {
	want := map[string]float64{"Housing": housing, "Lid": lid}
	for i := range corners {
		want[fmt.Sprintf("Support_%d", i+1)] = support
	}
	return want
}

func TestAssembly(t *testing.T) {
	onEach(t, func(r *rig) {
		r.assemble()
		total := housing + lid + 4*support
		r.near("volume", r.do("workspace.status", nil).number("volume"), total, r.relative*total)
		for name, v := range assembled() {
			r.near(name, r.own("measure.mass", obj{"entity_id": name}).number("volume"), v, r.relative*v)
		}
	})
}

func TestFreeCADReadsTheAssembly(t *testing.T) {
	onEach(t, func(r *rig) {
		kernels[1].need(r.TB)
		r.assemble()
		own := map[string]float64{}
		for name := range assembled() {
			own[name] = r.own("measure.mass", obj{"entity_id": name}).number("volume")
		}
		r.do("file.export", obj{"file_path": "assembly.step"})
		data := expect.Of(os.ReadFile(filepath.Join(r.dir, "assembly.step")))(r)
		r.reread(data, "assembly.step", own, 1e-5)
	})
}
