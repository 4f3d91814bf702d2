package cad

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestAGoalIsDecomposedByItsPattern(t *testing.T) {
	for _, c := range []struct {
		goal  string
		tasks string
		has   []string // somewhere among the operations or checks
	}{
		{"a box with lid, 100x80x20 mm", "box lid merge", []string{`"end":[100,0,0]`, `"distance":20`, "volume > 41330.5"}},
		{"an enclosure 60×40×30", "box", []string{`"end":[60,0,0]`, `"file_path":"box.step"`, "walls of 3 mm (the goal gives no wall)"}},
		{"a housing 100x80x20 mm with a lid", "box lid merge", nil},
		{"a bracket 60x40x5 mm", "bracket", []string{`"direction":[0,1,0]`, `"distance":40`}},
		{"stepped shaft 20x50 and 16x30 mm with a bore of 6", "shaft", []string{`"entity_id":"section_2_bore"`, `"radius":8`, `"operation":"union"`, "diameter 20 mm on 50 mm, diameter 16 mm on 30 mm"}},
		{"an assembly 100x80x20 mm of housing, lid and four supports", "housing lid supports_a supports_b merge", []string{"size(solids) == 6", `"entity_id":"support_4"`, "(the goal does not give their size)"}},
		{"box 4 inches x 3 inch x 2 inches", "box", []string{`"end":[101.6,0,0]`, `"distance":50.8`, "101.6x76.2x50.8 mm"}},
		{"assembly 100x80x20 with 3 supports", "housing supports_a supports_b merge", []string{"size(solids) == 4"}},
		{"box 100x80x20 with a lid and two feet", "housing lid supports_a merge", []string{"size(solids) == 4", `"file_path":"assembly.step"`}},
		{"tube od 30, wall 2, length 100", "tube", []string{"inner diameter 26 mm"}},
		{"flange 120x10 with 3 holes ø9 on a bolt circle of 90", "flange", []string{`"center":[-22.5,38.971143,0]`}},
	} {
		s, err := planFor(c.goal)
		if err != nil {
			t.Errorf("%s: %v", c.goal, err)
			continue
		}
		s, problems := s.check(testRoles(t))
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.goal, problems.err())
		}
		var ids []string
		for _, task := range s.Tasks {
			ids = append(ids, task.TaskID)
		}
		expect.Is(t, strings.Join(ids, " "), c.tasks, c.goal, "tasks")
		text := strings.ReplaceAll(string(core.MustEncode(s)), `\u003e`, ">")
		for _, want := range c.has {
			expect.Has(t, text, want, c.goal, "nothing says")
		}
	}
}

func TestAGoalIsRefusedByNameForWhatNoTemplateTakes(t *testing.T) {
	for goal, want := range map[string]string{
		// What is to be made
		"make something nice":            "missing: what is to be made; known are box, assembly",
		"":                               "missing: what is to be made",
		"a lid":                          "missing: what is to be made",
		"a lid for a box 100x80x20":      `not understood: "for"`,
		"a shaft 20x50 and a bracket":    `shaft: not understood: "bracket"`,
		"a box 100x80x20 and a box":      `box: not understood: "box"`,
		"two brackets 60x40x5":           "missing: what is to be made",
		"two plates of 3, plate 9x9x1":   `not understood: "two plates 3"`,
		"an assembly of box and box":     "the length, the width, the height",
		"an assembly 9x9x9, box and box": "ambiguous: the housing is told 2 times",
		// What is missing
		"a box with a lid":                                      "box: missing: the length, the width, the height, as in <length>x<width>x<height>",
		"a box of length 100 and width 80":                      "box: missing: the height",
		"a box 100x80x20 with walls":                            `not understood: "walls"; it is told by`,
		"an assembly 100x80x20":                                 "missing: what the assembly has beside the housing",
		"a box 100x80x20 with supports":                         `not understood: "supports"`,
		"a bracket":                                             "bracket: missing: the leg, the width, the thickness",
		"a bracket 60x40x5 with 2 holes":                        `not understood: "2 holes"`,
		"a shaft of diameter 20":                                "missing: the length",
		"a stepped shaft 20x50":                                 "shaft: missing: its other sections",
		"shaft diameter 30 length 80, diameter 20":              "shaft: missing: the diameter and length of each section",
		"shaft 20x100 and 30x80, bore 6, bore 8":                "bore or stepped is told more than once",
		"tube outer diameter 30, length 100":                    "tube: missing: two of outer diameter",
		"washer od 12, id 6":                                    "washer: missing: the thickness",
		"flange 120x10 with 6 holes diameter 9":                 "missing: the holes and the one circle",
		"flange 120x10 with bolt circle 90":                     "missing: the holes and the one circle",
		"plate 100x80x5 with 4 holes diameter 6":                `not understood: "4 holes diameter 6"`,
		"plate 100x80x5 with 4 holes diameter 6 at the corners": "missing: the holes and how far from the edges they are",
		"plate 100x80x5, 10 from the edges":                     "missing: the holes and how far from the edges they are",
		"plate 100x80x5 with holes diameter 6 in the centre":    `not understood: "holes diameter 6 in centre"`,
		// What is out of range
		"plate 100x80x5 with 3 holes diameter 6 at the corners, 10 from the edges":                              "3 holes at the corners",
		"plate 100x100x5 with 4 holes ø30 at the corners, 30 from the edges and hole diameter 50 in the centre": "that does not reach",
		"a box 100x80x20 with walls 50":                                     "a wall of 50 mm is not allowed",
		"a box 100x80x20, wall 0":                                           "the wall of 0 mm is not allowed",
		"a box 100x80x20000":                                                "the height of 20000 mm is not allowed",
		"an assembly 100x80x20, 9 supports":                                 "9 supports",
		"a shaft 20x50 with a bore of 19":                                   "the bore of 19 mm is not allowed",
		"bracket 10x10x50 mm":                                               "the thickness of 50 mm is not allowed",
		"bracket 60x40x5 with 2.5 holes ø4":                                 `"2.5" is not allowed; allowed: 1-100`,
		"bracket 60x40x5 with 2 mm holes ø4":                                `not understood: "2 mm holes diameter 4"`,
		"a box 5x5x5000 m":                                                  "the height of 5000000 mm is not allowed",
		"flange 120x10 with 40 holes diameter 9 on a bolt circle of 90":     "holes that do not meet",
		"flange 120x10 with bore 80 and 6 holes diameter 9, bolt circle 85": "the bolt circle of 85 mm is not allowed",
		"tube od 30, wall 20, length 10":                                    "the inner diameter of -10 mm is not allowed",
		// Numbers that can't be read
		"a box -100x80x20":            "the number -100 is not allowed",
		"a box 1e3x80x20":             "the number 1e3 is not allowed",
		"a box 10,5x8x4 cm":           "the number 10,5 is not allowed",
		"a box 100x80x20 mm, wall -3": "the number -3 is not allowed",
		"a box 100-200x80x20":         "the number -200 is not allowed",
		"a shaft ø20, 9e99 long":      "the number 9e99 is not allowed",
		"a box 10 cm x 8 x 2":         "ambiguous: the unit of some numbers",
		"a box 100x80x20 1/2":         `not understood: "1 / 2"`,
		// What can be read in two ways
		"washer od 9, 1 wall thickness 2 wall thickness 3": "can be read in two ways; put commas between",
		"a box 3x3x3 mm, 4x4x4 mm":                         "ambiguous: the height is told 2 times",
		"a box 100x80x20, height 30":                       "ambiguous: the height is told 2 times",
		"an open box 100x80x20 with a lid":                 "ambiguous: whether there is to be a lid",
		"a box 100x80x20 with a lid and lid":               "ambiguous: the lid is told 2 times",
		"a box 100x80x20 no lid and holes":                 `not understood: "holes"`,
		"tube od 30, id 26, wall 3, length 9":              "ambiguous: outer diameter, inner diameter and wall",
		"box 100x80x20, wall 3 mm thick lid":               `not understood: "thick lid"`,
		// What no template has
		"M6 rod 100 long":                          `not understood: "m 6"`,
		"shaft 20x100 with 1 mm chamfers":          `not understood: "1 mm chamfers"`,
		"plate 100x80x5 corner radius 8":           `not understood: "corner radius 8"`,
		"a round plate 100x80x5":                   `not understood: "round"`,
		"shaft 20x100 with a bore 6, 30 deep":      `not understood: "30 deep"`,
		"a box 100x80x20 in aluminium":             `not understood: "in aluminium"`,
		"a shaft 20x100 ±0.1":                      `not understood: "± 0.1"`,
		"a box 100x80x20 or 90x80x20":              `not understood: "or 90x80x20"`,
		"shaft 20x50 with diameter 6 100 diameter": "missing: the diameter and length of each section",
	} {
		_, err := planFor(goal)
		expect.True(t, err != nil && strings.Contains(err.Error(), want) && core.AsError(err).Code == core.InvalidInput, "%s: %v, want %q", goal, err, want)
	}
}

func TestAnAgentsAnswerIsFoundInItsText(t *testing.T) {
	for output, want := range map[string]string{
		`{"text":"Here it is:\n` + "```json" + `\n{\"a\":1}\n` + "```" + `"}`: `{"a":1}`,
		`{"text":"{\"a\":{\"b\":2}}"}`:                                        `{"a":{"b":2}}`,
		`{"scenario_name":"x"}`:                                               `{"scenario_name":"x"}`,
		`{"text":"no"}`:                                                       `{"text":"no"}`,
	} {
		expect.Is(t, string(objectOf(core.Raw(output))), want, output)
	}
	got := missingIn(core.Raw(`{"missing":["the\nsize"]}`))
	expect.True(t, len(got) == 1 && got[0] == "the size", "%q", got)
}

func FuzzGoal(f *testing.F) {
	for _, s := range []string{"box 1x1x1", "shaft ø1 1 long", "bracket 9x9x1 999 holes ø0.1", "box 1e9x9x9", "shaft 1x1 1x1 bore 0.5", "assembly 5 x 5 x 5 m four supports", "plate 9x9x9 slot 5 long 2 wide in the centre corner radius 2", "tube od 9 wall 1 length 1", "flange 9x1 with a hole ø1 on a circle of 5 no bore", "wall 3 lid 2 mm thick box"} {
		f.Add(s)
	}
	roles := testRoles(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 || checkText("goal", text, maxText) != nil {
			return
		}
		s, err := planFor(text)
		if err != nil {
			return
		}
		if _, problems := s.check(roles); len(problems) > 0 {
			t.Fatalf("%q: %v", text, problems.err())
		}
		for _, more := range []string{text + " zorble", "zorble " + text, text + " ±"} {
			_, err := planFor(more)
			expect.Must(t, err != nil, "%q: a word is passed over", more)
		}
	})
}
