package cad

import (
	"fmt"
	"math"
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
	part  *pattern
	facts []fact // what it says of the part and its features, in order
}

// word is one word, mark, number or size of a goal.
type word struct {
	raw     string    // as the text has it
	text    string    // of a word in the singular, as far as an ending makes the plural
	numbers []float64 // of a number one, of a size like 100x80x20 three
	unit    bool      // it says its unit
}

func (w word) is(n int) bool { return len(w.numbers) == n }

// units are those that lengths are given in, in mm.
var units = map[string]float64{
	"mm": 1, "millimeter": 1, "millimetre": 1, "cm": 10, "centimeter": 10, "centimetre": 10, "dm": 100, "m": 1000, "meter": 1000, "metre": 1000,
	"km": 1e6, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "micron": 1e-3, "in": 25.4, "inch": 25.4, `"`: 25.4, "ft": 304.8, "yd": 914.4, "yard": 914.4,
}

// wordText cuts a goal into words, numbers and marks; a number with a sign, an
// exponent or a comma is one that can't be read. Nothing is passed over.
var wordText = core.Pattern(`[-−+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|[\pL]+|\S`)

// readGoal finds the numbers, units and sizes of a text, and what they are of.
func readGoal(text string) (goal, error) {
	g := goal{text: strings.ToLower(strings.Join(strings.Fields(text), " "))}
	for _, at := range wordText().FindAllStringIndex(g.text, -1) {
		s := g.text[at[0]:at[1]]
		before, _ := utf8.DecodeLastRuneInString(g.text[:at[0]])
		if sign := strings.TrimLeft(s, "-−+"); sign != s && sign != "" && (before >= 'a' && before <= 'z') { // a hyphen: l-20
			s = sign
		}
		if hyphen := s == "-" || s == "−"; hyphen && (before >= 'a' && before <= 'z') { // within a word
			continue
		}
		if !strings.ContainsAny(s, "0123456789") {
			g.words = append(g.words, word{raw: s, text: singular(s)})
			continue
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.Trim(s, "0123456789.") != "" {
			return g, core.Errorf(core.InvalidInput, "goal: the number %s is not allowed; allowed: digits with a decimal point, as in 10.5", core.ClipTo(s, 40)).
				With("field", "goal").With("value", s)
		}
		g.words = append(g.words, word{raw: s, text: s, numbers: []float64{v}})
	}
	if err := g.readUnits(); err != nil {
		return g, err
	}
	if err := g.readSizes(); err != nil {
		return g, err
	}
	g.joinPhrases()
	return g, g.readFacts()
}

// readUnits joins numbers with the units after them. "in" before a word may be
// no unit: that is for the writer to say.
func (g *goal) readUnits() error {
	var out []word
	inches := false // the text speaks of them
	at := func(i int) word {
		if i < len(g.words) {
			return g.words[i]
		}
		return word{}
	}
	for i := 0; i < len(g.words); i++ {
		w := g.words[i]
		if !w.is(1) || i+1 == len(g.words) {
			out = append(out, w)
			continue
		}
		name, by, past := g.words[i+1].text, false, 1
		if cut, ok := strings.CutSuffix(name, "x"); ok && units[cut] != 0 && at(i+2).is(1) { // 10mmx20mm
			name, by = cut, true
		}
		if rest := slices.DeleteFunc([]string{at(i + 2).text, at(i + 3).text}, func(s string) bool { return s == "the" || s == "each" }); name == "in" && len(rest) > 0 && slices.Contains(places, rest[0]) {
			out = append(out, w)
			continue
		}
		if name == "in" && units[at(i+2).text] != 0 { // 100x80x20 in cm
			name, past = at(i+2).text, 2
		}
		if units[name] == 0 {
			out = append(out, w)
			continue
		}
		if name == "in" && !inches && !by && letters(at(i+2).text) && !separates(at(i+2).text) {
			return g.ambiguous(fmt.Sprintf("whether the in after %s means inches", w.text), "write inch, or a comma before in")
		}
		w.numbers, w.unit, inches = []float64{exact(w.numbers[0] * units[name])}, true, inches || units[name] == units["inch"]
		if out = append(out, w); by {
			out = append(out, word{raw: "x", text: "x"})
		} else {
			out[len(out)-1].raw += " " + name
		}
		i += past
	}
	g.words = out
	return nil
}

// places are what may follow an in that is no unit.
var places = strings.Fields("centre center middle corner every")

// exact takes from a length what counting in binary adds: 76.2, not
// 76.19999999999999.
func exact(v float64) float64 {
	if math.Abs(v) > 1e9 { // more than any length that is allowed
		return v
	}
	return math.Round(v*1e6) / 1e6
}

// mm is a length for people.
func mm(v float64) string { return strconv.FormatFloat(exact(v), 'f', -1, 64) }

func singular(s string) string {
	switch {
	case len(s) < 3 || strings.HasSuffix(s, "ss") || slices.Contains([]string{"radius", "has", "plus", "this"}, s):
		return s
	case strings.HasSuffix(s, "xes") || strings.HasSuffix(s, "ches"):
		return strings.TrimSuffix(s, "es")
	case strings.HasSuffix(s, "ies"):
		return strings.TrimSuffix(s, "ies") + "y"
	}
	return strings.TrimSuffix(s, "s")
}

func letters(s string) bool { return s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= utf8.RuneSelf) }

// separates reports whether a word stands between the numbers of a size.
func separates(s string) bool { return slices.Contains([]string{"x", "×", "*", "by"}, s) }

// readSizes joins numbers with x between them. The unit of the last one is that
// of all, unless each has its own.
func (g *goal) readSizes() error {
	var out []word
	for i := 0; i < len(g.words); i++ {
		size := g.words[i]
		with := 0
		if size.unit {
			with++
		}
		last := g.words[i]
		for size.numbers != nil && i+2 < len(g.words) && separates(g.words[i+1].text) && g.words[i+2].is(1) {
			i += 2
			last = g.words[i]
			size.raw += "x" + last.raw
			size.numbers = append(slices.Clip(size.numbers), last.numbers[0])
			if last.unit {
				with++
			}
		}
		switch n := len(size.numbers); {
		case n < 2:
		case with == 1 && last.unit:
			scale := last.numbers[0]
			if v, _ := strconv.ParseFloat(last.text, 64); v != 0 {
				scale = last.numbers[0] / v
			}
			for i := range size.numbers[:n-1] {
				size.numbers[i] = exact(size.numbers[i] * scale)
			}
		case with != 0 && with != n:
			return g.ambiguous("the unit of some numbers of a size", "write 10x8x2 cm, or a unit after each")
		}
		out = append(out, size)
	}
	g.words = out
	return nil
}

// missing says what a goal leaves open.
func (g *goal) missing(what ...string) error {
	return g.refused(what, "%s: missing: %s", g.part.name, strings.Join(what, "; ")).With("pattern", g.part.name)
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
	return core.Errorf(core.InvalidInput, "goal: %s of %s mm is not allowed; allowed: %s-%s mm", name, mm(v), mm(low), mm(high)).With("field", "goal").With("value", mm(v))
}
