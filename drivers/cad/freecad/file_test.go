package freecad_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/expect"
)

func TestFilesReadBack(t *testing.T) {
	k := open(t)
	b, _ := build(t, k, block)
	c, _ := build(t, k, drill)
	holed, _ := build(t, k, &env.Boolean{Operation: "subtract"}, b, c)
	round, _ := build(t, k, &env.Fillet{Radius: 3, Edges: [][3]float64{{50, 0, 20}}}, b)
	parts := []env.Part{{Name: "holed", Hash: holed.Hash}, {Name: "round", Hash: round.Hash}}
	want := []float64{160000 - 2000*math.Pi, 160000 - 100*9*(1-math.Pi/4)}
	for _, kind := range []string{"STEP", "IGES", "BREP"} {
		var file, again bytes.Buffer
		for _, w := range []*bytes.Buffer{&file, &again} {
			expect.No(t, k.Export(t.Context(), w, parts, env.ExportOptions{Format: kind}), kind)
		}
		// OpenCASCADE orders names in IGES by their addresses.
		expect.True(t, kind == "IGES" || bytes.Equal(file.Bytes(), again.Bytes()), "%s: the same parts give different bytes", kind)
		found, err := k.Import(t.Context(), file.Bytes(), kind)
		expect.Must(t, err == nil && len(found) == 2, "%s: %d solids, %v", kind, len(found), err)
		for i, one := range found {
			if kind == "STEP" && one.Name != parts[i].Name {
				t.Errorf("%s: part %d is %q, want %q", kind, i, one.Name, parts[i].Name)
			}
			s := expect.Of(env.NewShape(&env.Import{Format: kind, Index: i}, strings.Repeat("a", 64)))(t)
			s.Hash += kind
			f, err := k.Build(t.Context(), s, one.Blob)
			expect.No(t, err, kind)
			near(t, kind+": volume read back", f.Volume, want[i], 1e-9)
			expect.True(t, f.Tolerance == 0 && f.Topology.Closed, "%s: %+v, want an exact closed solid", kind, f)
		}
	}
}

func TestFacetsOfAFileStayFacets(t *testing.T) {
	k := open(t)
	c, _ := build(t, k, drill)
	m, kept, err := k.Mesh(t.Context(), []string{c.Hash}, 0.05, 0)
	expect.No(t, err)
	m.Faces = nil
	var file bytes.Buffer
	expect.No(t, format.WriteJSON(&file, []format.Part{{Name: "drill", Mesh: m, Tolerance: kept}}))
	s := expect.Of(env.NewShape(&env.Import{Format: "JSON"}, strings.Repeat("b", 64)))(t)
	f := expect.Of(k.Build(t.Context(), s, file.Bytes()))(t)
	near(t, "volume", f.Volume, 4000*math.Pi, 0.02)
	expect.True(t, f.Topology.Faces <= 60 && f.Topology.Closed && f.Tolerance == 0.05,
		"%+v, want two flat ends and a strip of facets, with the tolerance that the file tells", f)
}

func TestSTEPOfFacetsTellsItsTolerance(t *testing.T) {
	k := open(t)
	c, _ := build(t, k, drill)
	m, kept, err := k.Mesh(t.Context(), []string{c.Hash}, 0.02, 0)
	expect.No(t, err)
	m.Faces = nil
	var file bytes.Buffer
	expect.No(t, format.WriteSTEP(t.Context(), &file, []format.Part{{Name: "drill", Mesh: m, Tolerance: kept}}))
	found, err := k.Import(t.Context(), file.Bytes(), "STEP")
	expect.Must(t, err == nil && len(found) == 1 && found[0].Name == "drill", "%+v, %v, want one solid named drill", found, err)
	s := expect.Of(env.NewShape(&env.Import{Format: "STEP"}, strings.Repeat("d", 64)))(t)
	expect.Is(t, expect.Of(k.Build(t.Context(), s, found[0].Blob))(t).Tolerance, 0.02, "tolerance")
}

func TestBadFilesAreRefused(t *testing.T) {
	k := open(t)
	for kind, text := range map[string]string{
		"STEP": "ISO-10303-21;\nHEADER;garbage", "IGES": "nothing", "BREP": "DBRep_DrawableShape\n",
	} {
		_, err := k.Import(t.Context(), []byte(text), kind)
		var e *env.Error
		expect.True(t, errors.As(err, &e) && e.Code == env.ImportFailed, "%s: %v, want IMPORT_FAILED", kind, err)
	}
	s := expect.Of(env.NewShape(&env.Import{Format: "STEP"}, strings.Repeat("c", 64)))(t)
	_, err := k.Build(t.Context(), s, []byte("no content of ours"))
	refused(t, err, env.ImportFailed, "file_path")
	b, _ := build(t, k, block)
	err = k.Export(t.Context(), &bytes.Buffer{}, []env.Part{{Name: "b", Hash: b.Hash}}, env.ExportOptions{Format: "STEP", Schema: "AP999"})
	refused(t, err, env.UnsupportedFormat, "schema")
}
