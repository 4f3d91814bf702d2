package cad

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// The words that goals are read by. What stands in none of these lists is
// refused by name.

// dropped say nothing about a shape.
var dropped = strings.Fields("a an the of is are be to please make create build design model draw produce give me us i we want need would like should which that it its " +
	"exactly about approximately size dimension measuring measure mm millimeter millimetre = : !")

// Separators end what belongs together. After a weak one a feature may go on.
var (
	strong = strings.Fields("with + & featuring including has have having plus")
	weak   = strings.Fields(", ; . ( ) and - – —")
	denies = []string{"no", "without", "lacking"}
)

// phrases are read as one word.
var phrases = []string{
	"outer diameter", "outside diameter", "external diameter", "inner diameter", "inside diameter", "internal diameter",
	"outer dia", "inner dia", "outer radius", "outside radius", "inner radius", "inside radius", "bolt circle diameter", "pitch circle diameter",
	"bolt circle", "pitch circle", "on bolt circle", "on pitch circle", "on circle", "on pcd", "on bcd", "key way", "from edge", "from each edge", "from every edge", "at corner", "in corner", "near corner",
	"at each corner", "in each corner", "at every corner", "in every corner", "in centre", "in center", "in middle", "at centre", "at center",
	"open at top", "open on top", "open top", "open above", "top open", "for me", "for us",
}

var numberWords = strings.Fields("one two three four five six seven eight nine ten eleven twelve")

// property is a word that names a length of the part or of a feature.
type property struct {
	name  string
	times float64 // a radius is half a diameter
	after bool    // it stands after its number: 100 mm long
}

var properties = sync.OnceValue(func() map[string]property {
	return map[string]property{
		"length": {"length", 1, false}, "l": {"length", 1, false}, "long": {"length", 1, true},
		"width": {"width", 1, false}, "w": {"width", 1, false}, "wide": {"width", 1, true},
		"height": {"height", 1, false}, "h": {"height", 1, false}, "high": {"height", 1, true}, "tall": {"height", 1, true},
		"depth": {"depth", 1, false}, "deep": {"depth", 1, true},
		"thickness": {"thickness", 1, false}, "t": {"thickness", 1, false}, "thick": {"thickness", 1, true},
		"diameter": {"diameter", 1, false}, "dia": {"diameter", 1, false}, "d": {"diameter", 1, false}, "ø": {"diameter", 1, false}, "⌀": {"diameter", 1, false},
		"radius": {"diameter", 2, false}, "r": {"diameter", 2, false},
		"outer diameter": {"outer diameter", 1, false}, "outside diameter": {"outer diameter", 1, false}, "external diameter": {"outer diameter", 1, false},
		"outer dia": {"outer diameter", 1, false}, "od": {"outer diameter", 1, false}, "outer radius": {"outer diameter", 2, false}, "outside radius": {"outer diameter", 2, false},
		"inner diameter": {"inner diameter", 1, false}, "inside diameter": {"inner diameter", 1, false}, "internal diameter": {"inner diameter", 1, false},
		"inner dia": {"inner diameter", 1, false}, "id": {"inner diameter", 1, false}, "inner radius": {"inner diameter", 2, false}, "inside radius": {"inner diameter", 2, false},
	}
})

// feature is something that a part can have.
type feature struct {
	name      string
	words     []string
	takes     []string // lengths that it can be given
	main      string   // the one that a number without a name is: a bore of 6
	counted   bool
	sized     bool     // a size beside it is that of the part: box and lid 10x8x2
	qualities []string // words that describe it
	deniable  bool     // that it is not there can be said: no lid
}

var features = []feature{
	{"lid", []string{"lid", "cover", "top"}, []string{"thickness"}, "thickness", false, true, nil, true},
	{"wall", []string{"wall"}, []string{"thickness"}, "thickness", false, true, nil, false},
	{"support", []string{"support", "foot", "feet", "leg"}, []string{"diameter", "height"}, "", true, true, []string{"round"}, true},
	{"hole", []string{"hole"}, []string{"diameter", "depth"}, "diameter", true, false, []string{"round", "through", "centre", "corners", "by corner"}, true},
	{"bore", []string{"bore", "bored"}, []string{"diameter", "depth"}, "diameter", false, false, []string{"round", "through"}, true},
	{"bolt circle", []string{"bolt circle", "bolt circle diameter", "pitch circle", "pitch circle diameter", "pcd", "bcd", "on bolt circle", "on pitch circle", "on circle", "on pcd", "on bcd"}, []string{"diameter"}, "diameter", false, false, nil, false},
	{"corner", []string{"corner"}, []string{"diameter", "radius"}, "radius", false, false, []string{"rounded", "round"}, false},
	{"edge distance", []string{"from edge", "from each edge", "from every edge", "inset"}, []string{"distance"}, "distance", false, false, nil, false},
	{"keyway", []string{"keyway", "key way", "keyseat"}, []string{"width", "depth", "length"}, "", false, false, nil, true},
	{"slot", []string{"slot"}, []string{"length", "width"}, "", false, false, []string{"through", "centre"}, true},
	{"boss", []string{"boss"}, []string{"diameter", "height"}, "", false, false, []string{"round", "centre"}, true},
}

// assembled is the quality of a box that is spoken of as an assembly.
const assembled = "assembly"

// qualities describe a part or a feature without a number; the word that they are
// told by, and those that mean the same.
var qualities = [...]struct {
	name  string
	words []string
}{
	{"open", []string{"open top", "open at top", "open on top", "open above", "top open", "open", "lidless"}},
	{"hollow", []string{"hollow", "empty"}},
	{"solid", []string{"solid", "massive"}},
	{"centre", []string{"in centre", "in center", "in middle", "at centre", "at center", "centred", "centered", "central"}},
	{"corners", []string{"at corner", "in corner", "near corner"}},
	{"by corner", []string{"at each corner", "in each corner", "at every corner", "in every corner"}},
	{"rounded", []string{"rounded"}},
	{assembled, []string{"assembly"}},
	{"stepped", []string{"stepped"}},
	{"through", []string{"through"}},
	{"round", []string{"round", "circular", "cylindrical"}},
	{"rectangle", []string{"rectangular"}},
	{"flat", []string{"flat"}},
	{"L", []string{"shaped"}},
}

func qualityOf(text string) string {
	for _, q := range qualities {
		if slices.Contains(q.words, text) {
			return q.name
		}
	}
	return ""
}

func featureOf(text string) *feature {
	return first(features, func(f *feature) bool { return slices.Contains(f.words, text) })
}

// unmade are words for what no pattern makes, with the reason.
var unmade = []struct {
	words []string
	why   string
}{
	{strings.Fields("thread threaded tapped screw bolt nut"), "no kernel here makes threads; give the plain diameter"},
	{strings.Fields("chamfer chamfered bevel bevelled beveled"), "solid.chamfer makes it, on kernel occt"},
	{strings.Fields("fillet filleted rounded rounding edge blend"), "only upright corners are rounded here, as in corner radius 5; solid.fillet makes others, on kernel occt"},
	{strings.Fields("countersunk countersink counterbore counterbored taper tapered knurl knurled groove rib gusset pocket recess notch spline hinge gear tooth teeth cutout window"), "no pattern makes it"},
	{strings.Fields("aluminium aluminum steel stainless iron brass bronze copper titanium plastic abs pla nylon wood wooden glass rubber metal material"), "no plan carries a material"},
	{strings.Fields("red green blue black white grey gray yellow orange silver color colour coloured colored"), "no plan carries a colour"},
	{strings.Fields("painted polished brushed anodised anodized finish coated galvanised galvanized chrome matt glossy"), "no plan carries a finish"},
	{strings.Fields("tolerance ± fit clearance h7 precise"), "no plan carries a tolerance"},
}

// deniable are those of them that a part can be said to have none of.
var deniable = strings.Fields("thread chamfer bevel fillet rounding groove rib gusset pocket recess notch cutout window taper knurl")

// whyUnmade says why a word is refused, "" when nobody knows it.
func whyUnmade(text string) string {
	for _, u := range unmade {
		if slices.Contains(u.words, text) {
			return u.why
		}
	}
	return ""
}

// joinPhrases drops the words that say nothing and joins those that are read as
// one. An article before what is counted is its number: a hole.
func (g *goal) joinPhrases() {
	var out []word
	for i, w := range g.words {
		if i > 0 && w.text == "each" && g.words[i-1].numbers != nil { // 9 mm each
			continue
		}
		if i > 0 && w.text == "in" && g.words[i-1].numbers != nil && i+1 < len(g.words) && properties()[g.words[i+1].text].name != "" { // 20 mm in diameter
			continue
		}
		denied := i > 0 && slices.Contains(denies, g.words[i-1].text)
		if of := counted(g.words[i+1:]); (w.text == "a" || w.text == "an") && !denied && of != nil && featureOf(of.text) != nil {
			w.numbers = []float64{1}
		} else if slices.Contains(dropped, w.text) || w.text == "in" && i+1 < len(g.words) && slices.Contains(dropped, g.words[i+1].text) && units[g.words[i+1].text] == 1 {
			continue
		}
		out = append(out, w)
	}
	g.words = nil
	for len(out) > 0 {
		n := len(out)
		for n = min(n, 3); n > 1; n-- {
			var text []string
			for _, w := range out[:n] {
				text = append(text, w.text)
			}
			if slices.Contains(phrases, strings.Join(text, " ")) {
				break
			}
		}
		one := out[0]
		for _, w := range out[1:n] {
			one.text, one.raw = one.text+" "+w.text, one.raw+" "+w.raw
		}
		if out = out[n:]; !strings.HasPrefix(one.text, "for ") || n == 1 {
			g.words = append(g.words, one)
		}
	}
}

// counted is what a plain number counts that stands before these words: the
// feature or part, if nothing but what describes it lies between.
func counted(rest []word) *word {
	for i := range min(4, len(rest)) {
		w := &rest[i]
		_, property := properties()[w.text]
		f := featureOf(w.text)
		switch {
		case f != nil && f.counted || patternOf(w.text) != nil:
			return w
		case f != nil, w.numbers != nil && !(w.is(1) && w.unit), w.numbers == nil && !property && qualityOf(w.text) == "":
			return nil
		}
	}
	return nil
}

// known says what goals can speak of, for a refusal.
func known() string {
	var parts, extra []string
	for _, p := range patterns {
		parts = append(parts, p.nouns[0])
	}
	for _, f := range features {
		extra = append(extra, f.name)
	}
	return fmt.Sprintf("known are a %s with %s, and their sizes in mm, cm or in", strings.Join(parts, ", "), strings.Join(extra, ", "))
}
