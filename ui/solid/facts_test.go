package solid_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

func TestFactsOfASolid(t *testing.T) {
	f, err := solid.ReadFacts(core.Raw(`{"volume":152566.37,"bounding_box":{"min":[0,0,0],"max":[100,80,20]},"topology":{"face_count":7,"is_closed":true,"is_manifold":true},"tolerance":0.01,"more":1}`))
	expect.No(t, err)
	expect.Is(t, solid.Extent(f.Size()), "100 x 80 x 20 mm", "extent is")
	expect.Is(t, solid.Number(f.Mass(7.85)), "1197.65", "mass of steel is")
	if !f.Valid() || f.Validity() != "closed and manifold" {
		t.Errorf("validity is %q", f.Validity())
	}
	f.Topology.Closed = false
	if f.Valid() || f.Validity() != "not closed" {
		t.Errorf("an open surface is %q", f.Validity())
	}
	for _, bad := range []string{``, `[]`, `{"volume":"x"}`} {
		_, err = solid.ReadFacts(core.Raw(bad))
		expect.Fails(t, err, bad)
	}
}

func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1e-12: "0", 100: "100", 1.0 / 3: "0.333333", 262408.4: "262408", 12345678.9: "12345679", -2.5: "-2.5"} {
		expect.Is(t, solid.Number(v), want, v, "is")
	}
	expect.Is(t, solid.Short(0.00279718), "0.0028", "short is")
}

func TestScenesOfSurfaces(t *testing.T) {
	one, two := cad.Surface{EntityID: "a", Mesh: plate()}, cad.Surface{EntityID: "b", Mesh: cuboid([3]float64{}, [3]float64{1, 1, 1})}
	s := solid.OfSurfaces([]cad.Surface{one, two})
	p := s.Parts()
	expect.True(t, len(p) == 2 && p[0].Name == "a" && p[0].Role != p[1].Role && !s.Compares(), "parts are %+v", p)
	if c := solid.Compare([]cad.Surface{one}, []cad.Surface{two}); !c.Compares() || len(c.Parts()) != 2 {
		t.Errorf("a comparison has %+v", c.Parts())
	}
	expect.True(t, solid.OfSurfaces(nil).Empty(), "nothing is not empty")
	for part := 1; part <= solid.MaxParts; part++ {
		if r := solid.PartRole(part); r == screen.Text || strings.ContainsRune(" .", solid.Sign(part)) {
			t.Errorf("part %d has role %s, sign %c", part, r, solid.Sign(part))
		}
	}
}
