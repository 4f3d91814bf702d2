package cad

import (
	"strings"
	"testing"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func someFacts() *facts {
	f := &facts{files: []string{"a.step", "a.stl"}, conflicts: 1, results: map[string]any{"mass": map[string]any{"mass": 251.2, "parts": []any{1.0, 2.5}}}}
	f.add(&model.Entity{ID: "box", Type: model.Solid, Properties: core.Raw(`{"volume":1000,"topology":{"is_closed":true}}`)})
	f.add(&model.Entity{ID: "rod", Type: model.Solid, Properties: core.Raw(`{"volume":500.5,"topology":{"is_closed":true}}`)})
	f.add(&model.Entity{ID: "line", Type: model.Line, Properties: core.Raw(`{"length":4}`)})
	return f
}

func TestAChecksVerdictSaysWhatItMeasured(t *testing.T) {
	two := 2
	for _, c := range []struct {
		check string
		holds bool
		says  string
	}{
		{"", true, ""},
		{"size(solids) == 2 && size(entities) == 3", true, ""},
		{"volume > 1500 && volume < 1501.0", true, ""},
		{"volume < 1500.0", false, "volume = 1500.5"},
		{"size(solids) == 6 && conflicts == 0", false, "size(solids) = 2, conflicts = 1"},
		{"results.mass.mass < 220.0", false, "results.mass.mass = 251.2"},
		{"results.mass.parts[1] == 2.5", true, ""},
		{`results["mass"]["mass"] > 100`, true, ""},
		{"results.weight.mass < 1.0", false, "no such key: weight"},
		{"interferences == 0", false, "no operation of the task measured interference"},
		{`solids.exists(s, s.entity_id == "rod" && s.volume > 500)`, true, ""},
		{`entities.filter(e, e.entity_type == "line").all(e, e.properties.length == 4)`, true, ""},
		{`"a.step" in files && size(files) == 2`, true, ""},
	} {
		v, err := someFacts().evaluate(c.check)
		expect.True(t, err == nil && v.holds == c.holds && strings.Contains(v.why, c.says) && (!c.holds || v.why == ""),
			"%s: %+v, %v; want %v %q", c.check, v, err, c.holds, c.says)
	}
	f := someFacts()
	f.interferences = &two
	v, err := f.evaluate("interferences == 0")
	expect.True(t, err == nil && !v.holds && len(v.measures) == 1 && v.measures[0].Value == int64(2), "%+v %v", v, err)
}

func TestWithoutACheckEverySolidMustBeClosed(t *testing.T) {
	f := someFacts()
	f.add(&model.Entity{ID: "sheet", Type: model.Solid, Properties: core.Raw(`{"topology":{"is_closed":false}}`)})
	v, err := f.evaluate("")
	expect.True(t, err == nil && !v.holds && v.why == "solid sheet is not closed", "%+v %v", v, err)
}

func TestAChecksCostIsBounded(t *testing.T) {
	f := someFacts()
	for range 400 {
		f.add(&model.Entity{ID: "p", Type: model.Point, Properties: core.Raw(`{}`)})
	}
	check := "entities.all(a, entities.all(b, entities.all(c, entities.all(d, a.entity_id != b.entity_id || c.entity_id != d.entity_id || true))))"
	expect.No(t, checkCheck("check", check))
	v, err := f.evaluate(check)
	expect.True(t, err == nil && !v.holds && strings.Contains(v.why, "can't be decided"), "%.200s %v", v.why, err)
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"volume > 1.0", "size(solids) == 1", "results.a.b[0] == 1", "results[\"x\"]", "1 + 1", "interferences == 0", "(((", "files.map(f, f + f).size() == 0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkCheck("check", text) != nil {
			return
		}
		v, err := someFacts().evaluate(text)
		expect.Must(t, err == nil && (v.holds || v.why != ""), "%q: %+v %v", text, v, err)
	})
}
