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
		{"Box and lid 10 x 8 x 2 cm, wall 2 mm", "box lid merge", []string{`"start":[2,2,2]`, `"end":[98,2,2]`}},
		{"an enclosure 60×40×30", "box", []string{`"end":[60,0,0]`, `"file_path":"box.step"`}},
		{"a bracket 60x40x5 mm", "bracket", []string{`"direction":[0,1,0]`, `"distance":40`}},
		{"L bracket 60x50x40x5 mm with two holes diameter 6 mm", "bracket", []string{`"entity_id":"hole_2"`, `"radius":3`}},
		{"brackets 60x40x5 with 3 holes ø4", "bracket", []string{`"entity_id":"hole_3"`, `"radius":2`}},
		{"a shaft, diameter 20 mm, length 100 mm", "shaft", []string{`"radius":10`, `"distance":100`}},
		{"shaft ø20 100 mm long", "shaft", []string{`"radius":10`, `"distance":100`}},
		{"stepped shaft 20x50 and 16x30 mm with a bore of 6", "shaft", []string{`"entity_id":"section_2_bore"`, `"radius":8`, `"operation":"union"`}},
		{"an assembly 100x80x20 mm of housing, lid and four supports", "housing lid supports_a supports_b merge", []string{"size(solids) == 6", `"entity_id":"support_4"`}},
		{"box 10 cm x 80 mm x 0.02 m", "box", []string{`"end":[100,80,0]`, `"distance":20`}},
		{"box 4 inches x 3 in x 2 in tall", "box", []string{`"end":[101.6,0,0]`, `"distance":50.8`}},
		{`box 4x3x2", wall of 2 mm`, "box", []string{`"end":[101.6,0,0]`, `"start":[2,2,2]`}},
		{"box 10mmx20mmx30mm", "box", []string{`"end":[10,20,0]`, `"distance":30`}},
		{"box 100 by 80 by 20 mm", "box", []string{`"end":[100,80,0]`}},
		{"box of length 100, width 80 and height 2 cm", "box", []string{`"end":[100,80,0]`, `"distance":20`}},
		{"box 100 mm long, 80 mm wide, 20 mm high, 2 mm thick walls", "box", []string{`"end":[100,80,0]`, `"start":[2,2,2]`}},
		{"shaft diameter 2 inches, length 1 ft", "shaft", []string{`"radius":25.4`, `"distance":304.8`}},
		{"shaft 20x50 and 16x30 mm with bore diameter 6", "shaft", []string{`"entity_id":"section_2_bore"`, `"radius":3`}},
		{"shaft diameter 20 length 100 with an inner diameter of 8", "shaft", []string{`"entity_id":"shaft_bore"`, `"radius":4`, `"radius":10`}},
		{"bracket 60x40x5 mm with two 6 mm holes", "bracket", []string{`"entity_id":"hole_2"`, `"radius":3`}},
		{"assembly 100x80x20 with 3 supports", "housing lid supports_a supports_b merge", []string{"size(solids) == 5"}},
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

func TestAnAmbiguousGoalSaysWhatIsMissing(t *testing.T) {
	for goal, want := range map[string]string{
		"make something nice":                                  "missing: what is to be made; known are a box",
		"a box with a lid":                                     "box and lid: missing: the outer size, as in 100x80x20 mm",
		"a bracket":                                            "bracket: missing: leg, width and thickness",
		"a bracket 60x40x5 with 2 holes":                       "bracket: missing: the diameter of its holes",
		"a shaft":                                              "missing: the diameter, as in \"diameter 20\"; the length",
		"a shaft of diameter 20":                               "missing: the length",
		"a shaft and a bracket 60x40x5":                        "ambiguous: it speaks of bracket and shaft",
		"a box 100x80x20 with walls of 50":                     "a wall of 50 mm is not allowed",
		"a box 100x80x20000":                                   "height of 20000 mm is not allowed",
		"an assembly 100x80x20, 9 supports":                    "9 supports",
		"a shaft 20x50 with a bore of 19":                      "the bore of 19 mm is not allowed",
		"a box 0x0x0 with a lid":                               "length of 0 mm is not allowed",
		"bracket 10x10x50 mm":                                  "the thickness of 50 mm is not allowed",
		"a box -100x80x20":                                     "the number -100 is not allowed",
		"a box 1e3x80x20":                                      "the number 1e3 is not allowed",
		"a box 10,5x8x4 cm":                                    "the number 10,5 is not allowed",
		"a box 1,000x800x200 mm":                               "the number 1,000 is not allowed",
		"a box 100x80x20 mm, wall -3":                          "the number -3 is not allowed",
		"a box 100-200x80x20":                                  "the number -200 is not allowed",
		"a box 10 cm x 8 x 2":                                  "ambiguous: missing: the unit of some numbers",
		"a box 100x80x20 in aluminium":                         "ambiguous: missing: whether the in after 20 means inches",
		"a box 3x3x3 mm and a box 4x4x4 mm":                    "ambiguous: missing: which of its sizes is meant",
		"a box 5x5x5 km":                                       "length of 5e+06 mm is not allowed",
		"a box of length 100 and width 80":                     "box and lid: missing: the height",
		"a bracket 60x40x5 with holes":                         "bracket: missing: how many holes",
		"a shaft 20 mm diameter, 100 long, with a flange 50x5": "ambiguous: missing: which of its sizes is meant",
		"a shaft ø20, 9e99 long":                               "the number 9e99 is not allowed",
		"an assembly of a housing and a lid":                   "assembly: missing: the outer size",
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
	for _, s := range []string{"box 1x1x1", "shaft ø1 1 long", "bracket 9x9x1 999 holes ø0.1", "box 1e9x9x9", "shaft 1x1 1x1 bore 0.5", "assembly 5 x 5 x 5 m four supports"} {
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
	})
}
