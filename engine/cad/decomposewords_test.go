package cad

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
)

// neutral are words that a goal may have or lack without another outcome: they
// say nothing.
func neutral(word string) bool {
	word = singular(strings.ToLower(strings.Trim(word, ",;:.()")))
	return word == "" || slices.Contains(dropped, word) || slices.Contains(strong, word) || slices.Contains(weak, word)
}

// restated are words that say once more what holds anyway, by what holds.
var restated = []struct{ words, goal string }{
	{"mm in at on bolt a", "."},
	{"one single", "."},
	{"open top above lidless empty hollow rectangular", "box|enclosure|assembly"},
	{"assembly box housing enclosure case", "box|enclosure|supports"},
	{"solid massive rectangular flat", "block|plate|sheet"},
	{"l l-shaped shaped angle bracket", "bracket|angle"},
	{"round circular cylindrical flat", "shaft|rod|cylinder|disc|tube|pipe|washer|ring|flange|hole|boss|feet|supports"},
	{"solid massive", "shaft|rod|cylinder|disc"},
	{"hollow empty", "tube|pipe|bore|inner|washer|ring"},
	{"stepped", " and |, "},
	{"bore bored", "inner|id|bore"},
	{"rounded round circular cylindrical", "corner radius|corners"},
	{"through", "hole|bore|slot"},
	{"each near", "each"},
	{"hole", "hole"},
	{"thickness thick t wall", "wall|lid|x"},
	{"diameter dia d ø ⌀ id radius", "hole|bore|corner|circle|ø20x100"},
	{"tall high deep long length thick", "x|×"},
}

func restates(goal, word string) bool {
	word = singular(strings.ToLower(strings.Trim(word, ",;:.()")))
	return slices.ContainsFunc(strings.Fields(word), func(w string) bool {
		return slices.ContainsFunc(restated, func(r struct{ words, goal string }) bool {
			return slices.Contains(strings.Fields(r.words), w) && regexp.MustCompile(r.goal).MatchString(strings.ToLower(goal))
		})
	})
}

// planText is what a goal comes to, without its own words; "" when it is refused.
func planText(goal string) string {
	s, err := planFor(goal)
	if err != nil {
		return ""
	}
	s.Description = ""
	return string(core.MustEncode(s))
}

func TestNoWordOfAGoalIsPassedOver(t *testing.T) {
	for goal := range goals() {
		words, was := strings.Fields(goal), planText(goal)
		for i, w := range words {
			less := strings.Join(slices.Delete(slices.Clone(words), i, i+1), " ")
			if !neutral(w) && !restates(goal, w) && planText(less) == was {
				t.Errorf("%q: without %q it makes the same", goal, w)
			}
		}
		for i := range len(words) + 1 {
			for _, extra := range []string{"zorble", "7", "7 mm", "7x7", "°", "<", "/", "'", "threaded", "steel"} {
				more := strings.Join(slices.Insert(slices.Clone(words), i, extra), " ")
				if planText(more) == was {
					t.Errorf("%q: it makes the same as without %q", more, extra)
				}
			}
		}
	}
}

func TestNoWordAddedToAGoalIsPassedOver(t *testing.T) {
	var all []string
	for _, f := range features {
		all = append(all, f.words...)
	}
	for _, u := range unmade {
		all = append(all, u.words...)
	}
	for _, q := range qualities {
		all = append(all, q.words...)
	}
	for _, p := range patterns {
		all = append(all, p.nouns...)
	}
	all = append(append(all, numberWords...), slices.Collect(maps.Keys(properties()))...)
	for goal := range goals() {
		was := planText(goal)
		for _, word := range all {
			for _, more := range []string{goal + " with " + word, word + " " + goal, goal + " " + word} {
				if !neutral(word) && !restates(goal, word) && planText(more) == was {
					t.Errorf("%q: it makes the same as without %q", more, word)
				}
			}
		}
	}
}
