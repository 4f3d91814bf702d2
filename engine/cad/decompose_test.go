package cad

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
)

func TestAGoalIsDecomposedByItsPattern(t *testing.T) {
	for _, c := range []struct {
		goal  string
		tasks string
		has   []string // somewhere among the operations or checks
	}{
		{"a box with lid, 100x80x20 mm", "box lid merge", []string{`"end":[100,0,0]`, `"distance":20`, "volume > 41330.5"}},
		{"an enclosure 60×40×30", "box", []string{`"end":[60,0,0]`, `"file_path":"box.step"`, "walls of 3 mm (the goal gives no wall)"}},
		{"a bracket 60x40x5 mm", "bracket", []string{`"direction":[0,1,0]`, `"distance":40`}},
		{"stepped shaft 20x50 and 16x30 mm with a bore of 6", "shaft", []string{`"entity_id":"section_2_bore"`, `"radius":8`, `"operation":"union"`, "diameter 20 mm on 50 mm, diameter 16 mm on 30 mm"}},
		{"an assembly 100x80x20 mm of housing, lid and four supports", "housing lid supports_a supports_b merge", []string{"size(solids) == 6", `"entity_id":"support_4"`, "(the goal does not give all of it)"}},
		{"box 4 inches x 3 in x 2 in tall", "box", []string{`"end":[101.6,0,0]`, `"distance":50.8`, "101.6x76.2x50.8 mm"}},
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
		if got := strings.Join(ids, " "); got != c.tasks {
			t.Errorf("%s: tasks %s, want %s", c.goal, got, c.tasks)
		}
		text := strings.ReplaceAll(string(core.MustEncode(s)), `\u003e`, ">")
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: nothing says %s", c.goal, want)
			}
		}
	}
}

func TestAGoalIsRefusedByNameForWhatNoPlanCarriesOut(t *testing.T) {
	for goal, want := range map[string]string{
		// What is to be made
		"make something nice":              `missing: what is to be made; not understood: "something", "nice"; known are a box`,
		"a teapot":                         `missing: what is to be made; not understood: "teapot"`,
		"":                                 "missing: what is to be made",
		"a lid":                            "missing: what is to be made",
		"a lid for a box 100x80x20":        `not understood: "for"`,
		"a shaft and a bracket 60x40x5":    "ambiguous: it speaks of bracket and shaft",
		"a box 100x80x20 and a box":        "ambiguous: it speaks of box and box",
		"two brackets 60x40x5":             `no place for "two brackets"`,
		"brackets 60x40x5 with 3 holes ø4": `"brackets" (a goal makes one part; say bracket)`,
		"a shaft 20 mm diameter, with a flange 50x5": "ambiguous: it speaks of flange and shaft",
		// What is missing
		"a box with a lid":                                          "box: missing: its size, as in 100x80x20 mm",
		"a box of length 100 and width 80":                          "box: missing: the height",
		"a box 100x80x20 with walls":                                "box: missing: the thickness of its walls",
		"an assembly of a housing and a lid":                        "box: missing: its size",
		"an assembly 100x80x20":                                     "missing: what the assembly has beside the housing",
		"a box 100x80x20 with supports":                             "missing: how many supports",
		"a box 100x80x20 with rounded corners":                      "missing: the radius of its corners",
		"a bracket":                                                 "bracket: missing: leg, width and thickness",
		"a bracket 60x40x5 with 2 holes":                            "bracket: missing: the diameter of its holes",
		"a bracket 60x40x5 with holes":                              "bracket: missing: how many holes",
		"a shaft":                                                   `missing: the diameter, as in "diameter 20"; the length`,
		"a shaft of diameter 20":                                    "missing: the length",
		"a stepped shaft 20x50":                                     "shaft: missing: its other sections",
		"shaft diameter 30 length 80, diameter 20":                  "shaft: missing: the length",
		"shaft 20x100 with a keyway":                                "missing: the width, depth and length of the keyway",
		"shaft 20x100 with a keyway 6 wide 3 deep":                  "missing: the width, depth and length of the keyway",
		"shaft 20x50 and 16x30 with a keyway 4 wide 2 deep 10 long": "missing: which section the keyway is in",
		"a shaft 20x100 with a bore":                                "missing: the diameter of the bore",
		"a hollow shaft 20x100":                                     "missing: the diameter of the bore",
		"tube outer diameter 30, length 100":                        "tube: missing: two of outer diameter, inner diameter and wall",
		"tube 30x2x100":                                             "tube: missing: two of outer diameter",
		"washer 12x6.4x1.6":                                         "washer: missing: the outer diameter; the inner diameter; the thickness",
		"washer for M6":                                             `not understood: "for", "m"`,
		"flange 120x10 with 6 holes diameter 9":                     "missing: the diameter of the circle that the holes are on",
		"flange 120x10 with bolt circle 90":                         "missing: the holes on the bolt circle",
		"plate 100x80x5 with 4 holes diameter 6":                    "plate: missing: where the holes are",
		"plate 100x80x5 with 4 holes diameter 6 at the corners":     "missing: how far the holes are from the edges",
		"plate 100x80x5 with 3 holes diameter 6 at the corners, 10 from the edges": "missing: where the holes are",
		"plate 100x80x5 with a slot 40 long 8 wide":                                "missing: where the slot is",
		"plate 100x80x5 with a slot in the centre":                                 "missing: the length and width of the slot",
		"plate 100x80x5 with a boss diameter 20 in the centre":                     "missing: the diameter and height of the boss",
		// What is out of range
		"a box 100x80x20 with walls of 50":                                  "a wall of 50 mm is not allowed",
		"a box 100x80x20000":                                                "height of 20000 mm is not allowed",
		"an assembly 100x80x20, 9 supports":                                 "9 supports",
		"a shaft 20x50 with a bore of 19":                                   "the bore of 19 mm is not allowed",
		"a box 0x0x0 with a lid":                                            "length of 0 mm is not allowed",
		"bracket 10x10x50 mm":                                               "the thickness of 50 mm is not allowed",
		"bracket 60x40x5 with 2.5 holes ø4":                                 "2.5 holes",
		"a box 5x5x5 km":                                                    "length of 5000000 mm is not allowed",
		"flange 120x10 with 40 holes diameter 9 on a bolt circle of 90":     "holes that do not meet",
		"flange 120x10 with bore 80 and 6 holes diameter 9, bolt circle 85": "the bolt circle of 85 mm is not allowed",
		"plate 100x80x5 with a slot 90 long 60 wide in the centre and 4 holes ø6 at the corners, 10 from the edges": "the slot would reach the holes",
		// Numbers that can't be read
		"a box -100x80x20":            "the number -100 is not allowed",
		"a box 1e3x80x20":             "the number 1e3 is not allowed",
		"a box 10,5x8x4 cm":           "the number 10,5 is not allowed",
		"a box 1,000x800x200 mm":      "the number 1,000 is not allowed",
		"a box 100x80x20 mm, wall -3": "the number -3 is not allowed",
		"a box 100-200x80x20":         "the number -200 is not allowed",
		"a shaft ø20, 9e99 long":      "the number 9e99 is not allowed",
		"a shaft <20x100":             `not understood: "<"`,
		"a box 10 cm x 8 x 2":         "ambiguous: missing: the unit of some numbers",
		"a box 100x80x20 7":           `"7" (nothing says what it is)`,
		"a box 100x80x20 1/2":         `"1" (nothing says what it is), "/"`,
		// What can be read in two ways
		"a box 100x80x20 in aluminium":                                       "ambiguous: missing: whether the in after 20 means inches",
		"a box 3x3x3 mm, 4x4x4 mm":                                           `box: no place for "4x4x4 mm"`,
		"an open box 100x80x20 with a lid":                                   "ambiguous: missing: whether there is to be a lid",
		"a box 100x80x20 with a lid, no lid":                                 "ambiguous: missing: whether there is to be a lid",
		"a box 100x80x20 without a lid and holes":                            "ambiguous: missing: whether there is to be a hole",
		"a solid shaft 20x100 with a bore 6":                                 "ambiguous: missing: whether it is solid",
		"tube od 30, id 26, wall 3, length 100":                              "ambiguous: missing: which of outer diameter",
		"box 100x80x20, wall 3 lid":                                          `"3" (it is of the wall or of the lid)`,
		"box 100x80x20, wall 3 mm thick lid":                                 `"3 mm" (it is of the wall or of the lid)`,
		"plate 100x80x5 with 4 holes of 6 at each corner, 10 from the edges": "missing: where the holes are",
		"a box 100x80x20 with no":                                            `"no" (it denies nothing)`,
		"plate 100x80x5 with a hole 20 mm in the centre and a boss diameter 30 height 5 in the centre": "which of a hole, a slot and a boss",
		// What no plan carries
		"shaft 20x100 with a thread":                         `"thread" (no kernel here makes threads`,
		"M6 threaded rod 100 long":                           `"m", "6" (nothing says what it is), "threaded"`,
		"shaft 20x100 with 1 mm chamfers":                    `"chamfers" (solid.chamfer makes it, on kernel occt)`,
		"box 100x80x20 with rounded edges":                   `"rounded" (only upright corners are rounded here`,
		"box 100x80x20 with fillets of 2 mm":                 `"fillets"`,
		"box 100x80x20 with a slot 40 long 8 wide":           `box: no place for "slot"`,
		"box 100x80x20 with 4 holes of 6":                    `box: no place for "4 holes"`,
		"box 100x80x20 with a boss diameter 10 height 5":     `box: no place for "boss"`,
		"a solid box 100x80x20":                              `box: no place for "solid"`,
		"a round plate 100x80x5":                             `plate: no place for "round"`,
		"a square tube od 30, wall 2, length 100":            `not understood: "square"`,
		"tube diameter 30, wall 2, length 100":               "tube: missing: two of outer diameter",
		"plate 100x80x5 with a keyway 6 wide 3 deep 40 long": `plate: no place for "keyway", "6 wide" of the keyway`,
		"bracket 60x40x5 with blind holes":                   `not understood: "blind"`,
		"shaft 20x100 with a bore 6, 30 deep":                `shaft: no place for "30 deep" of the bore`,
		"steel washer od 12, id 6.4, thickness 1.6":          `"steel" (no plan carries a material)`,
		"a red box 100x80x20":                                `"red" (no plan carries a colour)`,
		"a polished shaft 20x100":                            `"polished" (no plan carries a finish)`,
		"a shaft 20x100 ±0.1":                                `"±" (no plan carries a tolerance)`,
		"a shaft 20x100 with a tolerance of 0.1":             `"tolerance" (no plan carries a tolerance)`,
		"a box 100x80x20, height 30":                         `box: no place for "height 30"`,
		"a shaft 20x100, 5 thick":                            `shaft: no place for "5 thick"`,
		"a box 100x80x20 with a lid and a lid":               `box: no place for "lid"`,
		"plate 100x80x5 with two slots":                      `"slots" (how many; one is made)`,
		"a bracket 60x40x5 with 2 holes ø6 and 1 hole ø8":    `bracket: no place for "1 hole", "ø 8" of the hole`,
		"a box 100x80x20 or 90x80x20":                        `not understood: "or"`,
		"a box twice as big as 100x80x20":                    `not understood: "twice", "as", "big"`,
		"a box 100x80x20 with a window":                      `"window" (no pattern makes it)`,
	} {
		_, err := planFor(goal)
		if err == nil || !strings.Contains(err.Error(), want) || core.AsError(err).Code != core.InvalidInput || core.AsError(err).Details["field"] != "goal" {
			t.Errorf("%s: %v, want %q", goal, err, want)
		}
	}
}

func TestAnAgentsAnswerIsFoundInItsText(t *testing.T) {
	for output, want := range map[string]string{
		`{"text":"Here it is:\n` + "```json" + `\n{\"a\":1}\n` + "```" + `"}`: `{"a":1}`,
		`{"text":"{\"a\":{\"b\":2}}"}`:                                        `{"a":{"b":2}}`,
		`{"scenario_name":"x"}`:                                               `{"scenario_name":"x"}`,
		`{"text":"no"}`:                                                       `{"text":"no"}`,
	} {
		if got := objectOf(core.Raw(output)); string(got) != want {
			t.Errorf("%s: %s, want %s", output, got, want)
		}
	}
	if got := missingIn(core.Raw(`{"missing":["the\nsize"]}`)); len(got) != 1 || got[0] != "the size" {
		t.Errorf("%q", got)
	}
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
			if _, err := planFor(more); err == nil {
				t.Fatalf("%q: a word is passed over", more)
			}
		}
	})
}
