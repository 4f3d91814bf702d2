package cad

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
)

// goal is what a text asks for, as the patterns read it. Lengths are mm.
type goal struct {
	text  string
	sizes [][]float64 // 100x80x20 → one of three numbers; in order
}

var (
	sizeText   = regexp.MustCompile(`(\d+(?:\.\d+)?)((?:\s*(?:mm|cm|m|in)?\s*[x×*]\s*\d+(?:\.\d+)?)+)\s*(mm|cm|m|in|inch|inches)?\b`)
	numberText = regexp.MustCompile(`\d+(?:\.\d+)?`)
)

// unitOf is how many mm a unit has.
func unitOf(name string) float64 {
	switch name {
	case "cm":
		return 10
	case "m":
		return 1000
	case "in", "inch", "inches":
		return 25.4
	}
	return 1
}

// readGoal finds the sizes of a text.
func readGoal(text string) goal {
	g := goal{text: strings.ToLower(strings.Join(strings.Fields(text), " "))}
	for _, m := range sizeText.FindAllStringSubmatch(g.text, -1) {
		var size []float64
		for _, n := range numberText.FindAllString(m[1]+m[2], -1) {
			v, _ := strconv.ParseFloat(n, 64)
			size = append(size, v*unitOf(m[3]))
		}
		g.sizes = append(g.sizes, size)
	}
	return g
}

// size is the first one of n numbers; nil when there is none.
func (g *goal) size(n int) []float64 {
	i := slices.IndexFunc(g.sizes, func(s []float64) bool { return len(s) == n })
	if i < 0 {
		return nil
	}
	return g.sizes[i]
}

// names reports whether the text has one of some words, also in the plural.
func (g *goal) names(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return regexp.MustCompile(`\b` + regexp.QuoteMeta(w) + `(?:e?s)?\b`).MatchString(g.text)
	})
}

// length is the number that belongs to one of some words: "wall 3 mm", "3 mm
// wall", "wall thickness of 3", "ø20" for "ø"; 0 when there is none.
func (g *goal) length(words ...string) float64 {
	for _, w := range words {
		w = regexp.QuoteMeta(w)
		for _, pattern := range []string{
			`(?:^|[^a-z])` + w + `s?(?:\s+thickness)?\s*(?:of|=|:|is)?\s*(\d+(?:\.\d+)?)\s*(mm|cm|m|in)?\b`,
			`(\d+(?:\.\d+)?)\s*(mm|cm|m|in)?\s+(?:thick\s+)?` + w + `s?\b`,
		} {
			if m := regexp.MustCompile(pattern).FindStringSubmatch(g.text); m != nil {
				v, _ := strconv.ParseFloat(m[1], 64)
				return v * unitOf(m[2])
			}
		}
	}
	return 0
}

// number words, each for its place.
const counted = "one two three four five six seven eight"

// count is the number before one of some words: "4 holes", "four round holes"; 0
// when there is none.
func (g *goal) count(words ...string) int {
	known := strings.Fields(counted)
	for _, w := range words {
		m := regexp.MustCompile(`\b(\d+|` + strings.Join(known, "|") + `)\s+(?:[a-z]+\s+)?` + regexp.QuoteMeta(w) + `s?\b`).FindStringSubmatch(g.text)
		if m == nil {
			continue
		}
		if i := slices.Index(known, m[1]); i >= 0 {
			return i + 1
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || n > maxSteps { // more than any pattern makes
			return maxSteps
		}
		return n
	}
	return 0
}

// missing says what a goal leaves open.
func (g *goal) missing(pattern string, what ...string) error {
	return core.Errorf(core.InvalidInput, "goal: %s: missing: %s", pattern, strings.Join(what, "; ")).
		With("field", "goal").With("value", g.text).With("missing", what).With("pattern", pattern)
}

// between reports a length that is out of range.
func between(name string, v, low, high float64) error {
	if v >= low && v <= high {
		return nil
	}
	return core.Errorf(core.InvalidInput, "goal: %s of %g mm is not allowed; allowed: %g-%g mm", name, v, low, high).With("field", "goal").With("value", fmt.Sprint(v))
}
