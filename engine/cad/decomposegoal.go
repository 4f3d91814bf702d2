package cad

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// goal is what a text asks for, as the patterns read it. Lengths are mm.
type goal struct {
	text  string
	words []word
	sizes [][]float64 // 100x80x20 → one of three numbers; in order
}

// word is one word, number or mark of a goal.
type word struct {
	text   string // of a word in the singular, as far as an "s" makes the plural
	number float64
	is     bool // a number
	unit   bool // it says its unit
	inSize bool // it belongs to one of the sizes
}

// units are those that lengths are given in, in mm.
var units = map[string]float64{
	"mm": 1, "millimeter": 1, "millimetre": 1, "cm": 10, "centimeter": 10, "centimetre": 10, "dm": 100, "m": 1000, "meter": 1000, "metre": 1000,
	"km": 1e6, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "micron": 1e-3, "in": 25.4, "inch": 25.4, "inche": 25.4, `"`: 25.4, "ft": 304.8, "yd": 914.4, "yard": 914.4,
}

// wordText cuts a goal into words, numbers and marks; a number with a sign, an
// exponent or a comma is one that can't be read.
var wordText = core.Pattern(`[-−+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|[\pL]+|["×*:=ø⌀,.;()]`)

// readGoal finds the numbers, units and sizes of a text.
func readGoal(text string) (goal, error) {
	g := goal{text: strings.ToLower(strings.Join(strings.Fields(text), " "))}
	for _, at := range wordText().FindAllStringIndex(g.text, -1) {
		s := g.text[at[0]:at[1]]
		before, _ := utf8.DecodeLastRuneInString(g.text[:at[0]])
		if sign := strings.TrimLeft(s, "-−+"); sign != s && (before >= 'a' && before <= 'z') { // a hyphen: l-20
			s = sign
		}
		if !strings.ContainsAny(s, "0123456789") {
			g.words = append(g.words, word{text: s})
			continue
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.Trim(s, "0123456789.") != "" {
			return g, core.Errorf(core.InvalidInput, "goal: the number %s is not allowed; allowed: digits with a decimal point, as in 10.5", core.ClipTo(s, 40)).
				With("field", "goal").With("value", s)
		}
		g.words = append(g.words, word{text: s, number: v, is: true})
	}
	if err := g.readUnits(); err != nil {
		return g, err
	}
	return g, g.readSizes()
}

// readUnits joins numbers with the units after them. "in" before a word may be
// no unit: that is for the writer to say.
func (g *goal) readUnits() error {
	var out []word
	inches := false // the text speaks of them
	for i := 0; i < len(g.words); i++ {
		w := g.words[i]
		switch {
		case !w.is:
			w.text = singular(w.text)
		case i+1 < len(g.words):
			name, by := singular(g.words[i+1].text), false
			if cut, ok := strings.CutSuffix(name, "x"); ok && units[cut] != 0 && i+2 < len(g.words) && g.words[i+2].is { // 10mmx20mm
				name, by = cut, true
			}
			if units[name] == 0 {
				break
			}
			if name == "in" && !inches && i+2 < len(g.words) && !by && letters(g.words[i+2].text) && !separates(g.words[i+2].text) {
				return g.ambiguous(fmt.Sprintf("whether the in after %s means inches", w.text), "write inch, or a comma before in")
			}
			w.number, w.unit, inches = w.number*units[name], true, inches || units[name] == units["inch"]
			i++
			if out = append(out, w); by {
				out = append(out, word{text: "x"})
			}
			continue
		}
		out = append(out, w)
	}
	g.words = out
	return nil
}

func singular(s string) string {
	if len(s) < 3 || strings.HasSuffix(s, "ss") {
		return s
	}
	return strings.TrimSuffix(s, "s")
}

func letters(s string) bool { return s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= utf8.RuneSelf) }

// separates reports whether a word stands between the numbers of a size.
func separates(s string) bool { return slices.Contains([]string{"x", "×", "*", "by"}, s) }

// readSizes finds numbers with x between them. The unit of the last one is that
// of all, unless each has its own.
func (g *goal) readSizes() error {
	for i := 0; i < len(g.words); i++ {
		if !g.words[i].is {
			continue
		}
		end := i
		for end+2 < len(g.words) && separates(g.words[end+1].text) && g.words[end+2].is {
			end += 2
		}
		if end == i {
			continue
		}
		var size []float64
		with := 0
		for at := i; at <= end; at += 2 {
			g.words[at].inSize = true
			size = append(size, g.words[at].number)
			if g.words[at].unit {
				with++
			}
		}
		switch last := g.words[end]; {
		case with == 1 && last.unit:
			scale := last.number
			if v, _ := strconv.ParseFloat(last.text, 64); v != 0 {
				scale = last.number / v
			}
			for n := range size[:len(size)-1] {
				size[n] *= scale
			}
		case with != 0 && with != len(size):
			return g.ambiguous("the unit of some numbers of a size", "write 10x8x2 cm, or a unit after each")
		}
		g.sizes = append(g.sizes, size)
		i = end
	}
	return nil
}

// size is the one of n numbers; nil when there is none.
func (g *goal) size(n int) ([]float64, error) {
	var found []float64
	for _, s := range g.sizes {
		if len(s) == n && found != nil {
			return nil, g.ambiguous("which of its sizes is meant", "it gives several of "+strconv.Itoa(n)+" numbers")
		}
		if len(s) == n {
			found = s
		}
	}
	return found, nil
}

func (g *goal) names(words ...string) bool {
	return slices.ContainsFunc(g.words, func(w word) bool { return slices.Contains(words, w.text) })
}

// between a length's name and its number, and what makes another length of it.
var (
	fillers = []string{"thickness", "thick", "diameter", "dia", "ø", "⌀", "of", "is", "a", "an", "with", "=", ":", "about"}
	inner   = []string{"bore", "hole", "inner", "wall"}
	after   = []string{"long", "wide", "high", "deep", "tall"} // stand after their number
)

// length is the number that belongs to one of some words: "wall 3 mm", "3 mm
// wall", "wall thickness of 3", "ø20" for "ø"; 0 when there is none. Of words
// that are fillers themselves it is not one of a bore, a hole or a wall.
func (g *goal) length(words ...string) float64 {
	for i, w := range g.words {
		if !slices.Contains(words, w.text) || slices.Contains(fillers, w.text) && g.ofAnother(i) {
			continue
		}
		at := i + 1
		if slices.Contains(after, w.text) {
			at = len(g.words)
		}
		for at < len(g.words) && slices.Contains(fillers, g.words[at].text) {
			at++
		}
		if at < len(g.words) && g.words[at].is && !g.words[at].inSize && !g.counts(at) {
			return g.words[at].number
		}
		for at = i - 1; at >= 0 && slices.Contains(fillers, g.words[at].text); at-- {
		}
		if at >= 0 && g.words[at].is && !g.words[at].inSize && (g.words[at].unit || !g.counts(at)) && !g.named(at) {
			return g.words[at].number
		}
	}
	return 0
}

// ofAnother reports whether the diameter or thickness at i is that of a bore, a
// hole or a wall.
func (g *goal) ofAnother(i int) bool {
	for at := i - 1; at >= 0 && !g.words[at].is; at-- {
		if slices.Contains(inner, g.words[at].text) {
			return true
		}
		if !slices.Contains(fillers, g.words[at].text) {
			break
		}
	}
	return i+1 < len(g.words) && slices.Contains(inner, g.words[i+1].text)
}

// named reports whether the number at i has its name before it: "wall 3 lid".
func (g *goal) named(i int) bool {
	for i--; i >= 0 && slices.Contains(fillers, g.words[i].text); i-- {
	}
	return i >= 0 && slices.Contains([]string{"wall", "thickness", "diameter", "dia", "ø", "⌀", "length", "width", "height", "bore", "d", "l"}, g.words[i].text)
}

// countedThings are what a plain number before it counts.
var countedThings = []string{"hole", "support", "foot", "feet", "leg"}

// counts reports whether the plain number at i says how many.
func (g *goal) counts(i int) bool {
	if g.words[i].unit {
		return false
	}
	for n := 1; n <= 2 && i+n < len(g.words) && letters(g.words[i+n].text); n++ {
		if slices.Contains(countedThings, g.words[i+n].text) {
			return true
		}
	}
	return false
}

var numberWords = strings.Fields("one two three four five six seven eight")

// count is the number before one of some words: "4 holes", "four round holes",
// "two 6 mm holes"; 0 when there is none.
func (g *goal) count(words ...string) int {
	for i, w := range g.words {
		if !slices.Contains(words, w.text) {
			continue
		}
		for at := i - 1; at >= max(0, i-3); at-- {
			before := g.words[at]
			if n := slices.Index(numberWords, before.text); n >= 0 {
				return n + 1
			}
			if before.is && !before.unit {
				if before.inSize {
					break
				}
				return int(min(max(before.number, 0), maxSteps)) // more than any pattern makes
			}
			if !before.is && !letters(before.text) {
				break
			}
		}
	}
	return 0
}

// missing says what a goal leaves open.
func (g *goal) missing(pattern string, what ...string) error {
	return g.refused(what, "%s: missing: %s", pattern, strings.Join(what, "; ")).With("pattern", pattern)
}

// ambiguous says what a goal can be read as in two ways, and how to write it.
func (g *goal) ambiguous(what, write string) error {
	return g.refused([]string{what}, "ambiguous: missing: %s; %s", what, write)
}

func (g *goal) refused(missing []string, format string, args ...any) *core.Error {
	return core.Errorf(core.InvalidInput, "goal: "+format, args...).With("field", "goal").With("value", g.text).With("missing", missing)
}

func between(name string, v, low, high float64) error {
	if v >= low && v <= high {
		return nil
	}
	return core.Errorf(core.InvalidInput, "goal: %s of %g mm is not allowed; allowed: %g-%g mm", name, v, low, high).With("field", "goal").With("value", fmt.Sprint(v))
}
