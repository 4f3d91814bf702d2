package conformance_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/expect"
)

// holed makes a plate with a hole and a pin.
func (r *rig) holed() (plate, pin float64) {
	r.box("plate", [3]float64{}, [3]float64{100, 80, 20})
	r.cylinder("drill", [3]float64{50, 40, -5}, 15, 40)
	r.do("solid.boolean", obj{"operation": "subtract", "entity_ids": []string{"plate", "drill"}, "entity_id": "plate"})
	r.cylinder("pin", [3]float64{50, 40, 0}, 14, 30)
	return 160000 - 4500*math.Pi, 196 * 30 * math.Pi
}

func (r *rig) export(name string, more obj) []byte {
	r.Helper()
	p := obj{"file_path": name}
	for k, v := range more {
		p[k] = v
	}
	o := r.do("file.export", p)
	data := expect.Of(os.ReadFile(filepath.Join(r.dir, name)))(r)
	expect.True(r, o.number("bytes") == float64(len(data)) && len(o.list("parts")) == 2, "%s: %v, the file has %d bytes", name, o, len(data))
	return data
}

func TestFilesOfFacets(t *testing.T) {
	onEach(t, func(r *rig) {
		plate, pin := r.holed()
		for _, more := range []obj{{}, {"ascii": true}} {
			m := expect.Of(format.ReadSTL(r.export("both.stl", more)))(r)
			r.near("volume of the STL", m.Properties().Volume, plate+pin, 2e-3*(plate+pin))
		}
		fine, coarse := r.export("fine.stl", obj{"tessellation_quality": "high_quality"}), r.export("coarse.stl", obj{"tessellation_quality": "preview"})
		expect.True(r, (!r.about.Exact || len(fine) > len(coarse)) && len(fine) >= len(coarse), "fine %d bytes, coarse %d", len(fine), len(coarse))
		parts, err := format.ReadJSON(r.export("both.json", nil))
		expect.Must(r, err == nil && len(parts) == 2 && parts[0].Name == "plate" && parts[1].Name == "pin", "JSON: %d parts, %v", len(parts), err)
		z := r.export("both.3mf", nil)
		archive := expect.Of(zip.NewReader(bytes.NewReader(z), int64(len(z))))(r)
		model := expect.Of(archive.Open("3D/3dmodel.model"))(r)
		text, err := io.ReadAll(model)
		expect.True(r, err == nil && strings.Count(string(text), "<object ") == 2 && strings.Contains(string(text), `unit="millimeter"`),
			"3MF: %d bytes, %v, want two objects in millimetres", len(text), err)
		for _, view := range []string{"top", "front", "right", "isometric"} {
			d := xml.NewDecoder(bytes.NewReader(r.export("both.svg", obj{"view": view})))
			lines := 0
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				expect.No(r, err, "SVG")
				if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "path" || e.Name.Local == "line") {
					lines++
				}
			}
			expect.True(r, lines != 0, "SVG from %s has no lines", view)
		}
	})
}

// reread reads what a kernel wrote with FreeCAD, and compares each solid with
// what it measured itself.
func (r *rig) reread(data []byte, name string, volumes map[string]float64, relative float64) {
	r.Helper()
	other := start(r.TB, kernels[1])
	expect.No(r, os.WriteFile(filepath.Join(other.dir, name), data, 0o600))
	solids := other.do("file.import", obj{"file_path": name}).objects("solids")
	expect.Must(r, len(solids) == len(volumes), "%s: FreeCAD reads %d solids, want %d", name, len(solids), len(volumes))
	for _, s := range solids {
		want, known := volumes[s.text("name")]
		expect.True(r, known && s.at("topology.is_closed") == true && s.at("topology.is_manifold") == true,
			"%s: solid %q, %v, want one of %v, closed and manifold", name, s.text("name"), s["topology"], volumes)
		r.near(name+": volume of "+s.text("name"), s.number("volume"), want, relative*want)
	}
}

func TestSTEPIsReadByFreeCAD(t *testing.T) {
	onEach(t, func(r *rig) {
		kernels[1].need(r.TB)
		r.holed()
		volumes := map[string]float64{}
		for _, id := range []string{"plate", "pin"} {
			volumes[id] = r.do("measure.mass", obj{"entity_id": id}).number("volume")
		}
		// Its own measure: of facets for one kernel, of the true surface for the other.
		data := r.export("both.step", nil)
		expect.True(r, bytes.Equal(data, r.export("again.step", nil)), "the same solids give different files")
		r.reread(data, "both.step", volumes, 1e-5)
	})
}

func TestExactFilesOfFreeCADComeBackExact(t *testing.T) {
	kernels[1].need(t)
	r := start(t, kernels[1])
	plate, pin := r.holed()
	for _, name := range []string{"both.iges", "both.brep", "both.step"} {
		for _, more := range []obj{nil, {"schema": "AP203"}, {"schema": "AP242"}} {
			if more != nil && name != "both.step" {
				continue
			}
			r.export(name, more)
			for i, s := range r.do("file.import", obj{"file_path": name}).objects("solids") {
				want := []float64{plate, pin}[i]
				r.near(name+": volume", s.number("volume"), want, 1e-6*want)
				expect.True(r, s.number("tolerance") == 0, "%s: tolerance %v, want 0", name, s["tolerance"])
				r.do("entity.delete", obj{"entity_id": s.text("entity_id")})
			}
		}
	}
}

func TestFilesComeBackAsSolids(t *testing.T) {
	onEach(t, func(r *rig) {
		plate, pin := r.holed()
		r.export("both.json", nil)
		r.do("workspace.create", obj{"workspace_name": "back", "base_workspace_id": ""})
		o := r.do("file.import", obj{"workspace_id": "back", "file_path": "both.json", "entity_id": "part"})
		expect.Must(r, len(o.list("entity_ids")) == 2 && o.list("entity_ids")[0] == "part_1", "%v, want part_1 and part_2", o["entity_ids"])
		for i, want := range []float64{plate, pin} {
			r.near("volume read back", o.objects("solids")[i].number("volume"), want, 1e-2*want)
		}
		r.do("solid.boolean", obj{"workspace_id": "back", "operation": "union", "entity_ids": []string{"part_1", "part_2"}})
		r.do("history.undo", obj{"workspace_id": "back"})
		r.do("history.undo", obj{"workspace_id": "back"})
		s := r.do("workspace.status", obj{"workspace_id": "back"})
		expect.True(r, s.number("entity_count") == 0, "%v, want nothing left of the import", s)
		expect.No(r, os.WriteFile(filepath.Join(r.dir, "bad.stl"), []byte("solid nothing\nendsolid"), 0o600))
		r.refuse(env.ImportFailed, "file_path", "file.import", obj{"file_path": "bad.stl"})
		expect.No(r, os.WriteFile(filepath.Join(r.dir, "bad.step"), []byte("ISO-10303-21;\nnothing"), 0o600))
		if !r.about.Exact {
			r.unsupported("format", "file.import", obj{"file_path": "bad.step"})
			r.unsupported("format", "file.export", obj{"file_path": "out.brep"})
			return
		}
		r.refuse(env.ImportFailed, "file_path", "file.import", obj{"file_path": "bad.step"})
		r.seen = r.seen[:len(r.seen)-1]
	})
}
