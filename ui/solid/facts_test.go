package solid_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/expect"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
)

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
	expect.True(t, len(p) == 2 && p[0].Name == "a" && p[0].Role != p[1].Role && p[0].Side == solid.Neither, "parts are %+v", p)
	if c := solid.Compare([]cad.Surface{one}, []cad.Surface{two}); len(c.Parts()) != 2 || c.Parts()[0].Side == c.Parts()[1].Side {
		t.Errorf("a comparison has %+v", c.Parts())
	}
	expect.True(t, solid.OfSurfaces(nil).Empty(), "nothing is not empty")
	for i, part := range solid.OfSurfaces(make([]cad.Surface, solid.MaxParts)).Parts() {
		if part.Role == screen.Text || strings.ContainsRune(" .", solid.Sign(i+1)) {
			t.Errorf("part %d has role %s, sign %c", i+1, part.Role, solid.Sign(i+1))
		}
	}
}
