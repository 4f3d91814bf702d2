package skill

import (
	"bytes"
	"strings"
	"testing"

	"swarmdeck/engine/core"
)

var fetchScope = map[string]core.Raw{
	"params":   core.Raw(`{"location":"kitchen","speed":1.50,"big":9007199254740993,"tags":["a","b"],"none":null}`),
	"navigate": core.Raw(`{"final_position":{"x":10,"y":-2.5e3},"ok":true,"note":"it's \"here\"\n"}`),
	"detect-1": core.Raw(`{"objects":[{"id":"cup"},{"id":"plate"}],"empty":[],"grid":[[1,2],[3]]}`),
}

func TestReferencesTakeValuesWithTheirTypes(t *testing.T) {
	for _, c := range []struct{ params, want string }{
		{``, `{}`},
		{`{}`, `{}`},
		{`{"a":"plain","b":1.50,"c":null,"d":[true]}`, `{"a":"plain","b":1.50,"c":null,"d":[true]}`},
		{`{"a":"${params.speed}"}`, `{"a":1.50}`},
		{`{"a":"${params.big}"}`, `{"a":9007199254740993}`},
		{`{"a":"${params.none}"}`, `{"a":null}`},
		{`{"a":"${params.location}"}`, `{"a":"kitchen"}`},
		{`{"a":"${params.tags}","b":"${params.tags[1]}"}`, `{"a":["a","b"],"b":"b"}`},
		{`{"a":"${navigate}"}`, `{"a":` + string(fetchScope["navigate"]) + `}`},
		{`{"a":"${navigate.final_position}"}`, `{"a":{"x":10,"y":-2.5e3}}`},
		{`{"a":["${detect-1.objects[0].id}","${detect-1.grid[1][0]}"]}`, `{"a":["cup",3]}`},
		{`{"a":"go to ${params.location} at ${params.speed}!"}`, `{"a":"go to kitchen at 1.50!"}`},
		{`{"a":"<${navigate.note}>"}`, `{"a":"<it's \"here\"\n>"}`},
		{`{"a":"at ${navigate.final_position} ${params.none} ${navigate.ok}"}`, `{"a":"at {\"x\":10,\"y\":-2.5e3} null true"}`},
		{`{"a":"$${params.x} costs $5 $"}`, `{"a":"${params.x} costs $5 $"}`},
		{`{"a":"$${${params.location}}"}`, `{"a":"${kitchen}"}`},
		{`{"${params.x}":"name"}`, `{"${params.x}":"name"}`},
		{`{"a":{"b":[{"c":"${params.location}"}]}}`, `{"a":{"b":[{"c":"kitchen"}]}}`},
	} {
		got, err := fillParams(core.Raw(c.params), fetchScope)
		if err != nil || string(got) != c.want {
			t.Errorf("%s\n got %s %v\nwant %s", c.params, got, err, c.want)
		}
	}
}

func TestAMissingValueSaysWhereTheWayEnded(t *testing.T) {
	for _, c := range []struct{ params, field, say string }{
		{`{"a":"${navigate.speed}"}`, "params.a", "${navigate.speed}: navigate has no field speed; it has final_position, ok, note"},
		{`{"a":["x","${detect-1.objects[2].id}"]}`, "params.a[1]", "detect-1.objects has 2 items, counted from 0"},
		{`{"a":"${detect-1.empty[0]}"}`, "params.a", "detect-1.empty has 0 items"},
		{`{"a":"${navigate[0]}"}`, "params.a", "navigate is an object and no list"},
		{`{"a":"${params.location.street}"}`, "params.a", "params.location is a text and has no fields"},
		{`{"a":"${params.none.x}"}`, "params.a", "params.none is null and has no fields"},
		{`{"a":"${grasp.x}"}`, "params.a", "grasp has no value"},
		{`{"a":"${params.location"}`, "params.a", "no closing brace"},
		{`["${params.location}"]`, "params", "want a JSON object"},
		{`{"a":`, "", "not valid JSON"},
	} {
		_, err := fillParams(core.Raw(c.params), fetchScope)
		if err == nil || !strings.Contains(err.Error(), c.say) || !strings.HasPrefix(err.Error(), c.field) {
			t.Errorf("%s: %v, want %q at %q", c.params, err, c.say, c.field)
		}
		if field := core.AsError(err).Details["field"]; c.field != "" && field != c.field {
			t.Errorf("%s: field %v, want %s", c.params, field, c.field)
		}
	}
}

func TestFilledParametersAreBounded(t *testing.T) {
	scope := map[string]core.Raw{"big": core.MustEncode(map[string]string{"text": strings.Repeat("x", 300<<10)})}
	for _, value := range []string{
		`["${big}","${big}","${big}","${big}"]`,
		`"${big.text}${big.text} ${big.text}${big.text}"`,
		`[` + strings.Repeat(`"${big}",`, 50_000) + `0]`,
	} {
		_, err := fillParams(core.Raw(`{"a":`+value+`}`), scope)
		if err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
			t.Errorf("%.40s: %v", value, err)
		}
	}
	deep := map[string]core.Raw{"d": core.Raw(strings.Repeat("[", 100) + strings.Repeat("]", 100))}
	_, err := fillParams(core.Raw(`{"a":`+strings.Repeat("[", 50)+`"${d}"`+strings.Repeat("]", 50)+`}`), deep)
	if err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("depth: %v", err)
	}
}

func TestStepsAreCheckedAgainstWhatRunsBefore(t *testing.T) {
	schema := core.Raw(`{"type":"object","properties":{"location":{"type":"string"},"speed":{}}}`)
	steps := func(params ...string) (list []Step) {
		for i, p := range params {
			list = append(list, Step{ID: []string{"navigate", "detect", "grasp"}[i], Params: core.Raw(p)})
		}
		return list
	}
	for _, c := range []struct {
		steps []Step
		want  []string
	}{
		{steps(`{"a":"${params.location}","b":"${params}"}`, `{"a":"${navigate.x[0]}"}`, `{"a":["${detect}","$${grasp.x}"]}`), nil},
		{steps(``, ``), nil},
		{steps(`{"a":"${detect.x}"}`, ``), []string{"runner.steps[0].params.a: step navigate: ${detect.x}: step detect runs later"}},
		{steps(`{"a":"${navigate.x}"}`), []string{"runner.steps[0].params.a: step navigate: ${navigate.x}: a step can't use its own result"}},
		{steps(`{"a":"${detct.x}"}`), []string{"step navigate: ${detct.x}: no step comes before this one"}},
		{steps(``, ``, `{"o":{"id":["${detct.objects[0]}"]}}`), []string{"runner.steps[2].params.o.id[0]: step grasp: ${detct.objects[0]}: there is no step detct; earlier ones are navigate, detect"}},
		{steps(`{"a":"${params.locaton}"}`), []string{"${params.locaton}: the skill has no parameter locaton; it has location, speed"}},
		{steps(`{"a":"${params[0]}"}`), []string{"params has fields, not items"}},
		{steps(`{"${params.x}":1}`), []string{"references stand in values, not in names"}},
		{steps(`[1]`), []string{"runner.steps[0].params: want a JSON object"}},
		{steps(`{"a":"${}","b":"${params.}","c":"${params.location[x]}","d":"${params location}","e":"${x"}`), []string{
			"params.a: step navigate: ${}: it names nothing", "params.b: step navigate: ${params.}: a field's name is missing",
			"params.c: step navigate: ${params.location[x]}: an index is a number", `params.d: step navigate: ${params location}: " " is not expected`,
			"params.e: step navigate: ${x: the reference has no closing brace",
		}},
		{
			[]Step{{ID: "params"}, {ID: ""}, {ID: "a b"}, {ID: "x"}, {ID: "x"}},
			[]string{"runner.steps[0].id", "runner.steps[1].id", "runner.steps[2].id", "runner.steps[4].id"},
		},
		{steps(`{"a":"${params` + strings.Repeat(".a", 40) + `}"}`), []string{"deeper than 32 fields"}},
		{steps(`{"a":"${params.` + strings.Repeat("a", 600) + `}"}`), []string{"longer than 500 bytes"}},
		{steps(`{"a":"${params.location[99999999999]}"}`), []string{"an index is a number"}},
	} {
		errs := checkSteps(c.steps, schema)
		if len(errs) != len(c.want) {
			t.Errorf("%+v: %v, want %d errors", c.steps, errs, len(c.want))
			continue
		}
		for i, err := range errs {
			if !strings.Contains(err.Error(), c.want[i]) || core.AsError(err).Details["field"] == nil {
				t.Errorf("got  %v\nwant %s", err, c.want[i])
			}
		}
	}
	if errs := checkSteps(steps(`{"a":"${params.anything}"}`), core.Raw(`{"type":"object"}`)); len(errs) > 0 {
		t.Errorf("a schema that declares no properties takes any: %v", errs)
	}
}

func TestWhatIsFilledInIsNoReferenceItself(t *testing.T) {
	scope := map[string]core.Raw{"params": core.Raw(`{"text":"${secret.key} $${x} ${"}`), "secret": core.Raw(`{"key":"hunter2"}`)}
	got, err := fillParams(core.Raw(`{"whole":"${params.text}","spliced":"<${params.text}>"}`), scope)
	if want := `{"whole":"${secret.key} $${x} ${","spliced":"<${secret.key} $${x} ${>"}`; err != nil || string(got) != want {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
	prompt, err := fillPrompt("say ${text}", core.Raw(`{"text":"${secret}","secret":"hunter2"}`))
	if err != nil || prompt != "say ${secret}" {
		t.Errorf("prompt %q %v", prompt, err)
	}
}

func FuzzTextOfAnAgent(f *testing.F) {
	for _, s := range []string{`{"text":"{}"}`, "{\"stdout\":\"```json\\n{\\\"a\\\":1}\\n```\"}", `{"text":{"text":"{}"}}`, `{"a":[{"text":"{}"}]}`, `{"text":"` + "```" + `"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		if core.CheckObject("output", output, MaxResult) != nil {
			return
		}
		if err := core.CheckObject("result", objectOf(output), MaxResult); err != nil {
			t.Fatalf("%s became %s: %v", output, objectOf(output), err)
		}
	})
}

func TestPromptsAreFilledWithParameters(t *testing.T) {
	schema := core.Raw(`{"properties":{"file":{},"opts":{}}}`)
	prompt := "Review ${file} with ${opts.level} of ${opts}; keep $${file}."
	if errs := checkPrompt(prompt, schema); len(errs) > 0 {
		t.Fatal(errs)
	}
	got, err := fillPrompt(prompt, core.Raw(`{"file":"a \"b\".go","opts":{"level":3}}`))
	if want := `Review a "b".go with 3 of {"level":3}; keep ${file}.`; err != nil || got != want {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
	if _, err := fillPrompt(prompt, core.Raw(`{"file":"x"}`)); err == nil || !strings.Contains(err.Error(), "runner.prompt: ${opts.level}: opts has no value") {
		t.Errorf("missing: %v", err)
	}
	errs := checkPrompt("${fil} ${params.file}", schema)
	if len(errs) != 2 || !strings.Contains(errs[0].Error(), "runner.prompt: ${fil}: the skill has no parameter fil; it has file, opts") {
		t.Errorf("errors %v", errs)
	}
	if errs := checkPrompt("${", schema); len(errs) != 1 {
		t.Errorf("errors %v", errs)
	}
}

func FuzzReferences(f *testing.F) {
	for _, s := range []string{`{"a":"${x.y[0]}"}`, `{"a":"$${x}$${${x}"}`, `{"${":"${x"}`, `{"a":"${x[0][1].k}","b":["${params}"]}`, `"${x}"`, `{"a":"\ud83d${x}"}`} {
		f.Add([]byte(s))
	}
	scope := map[string]core.Raw{"x": core.Raw(`{"y":[1,{"k":"v"}],"z":"t"}`), "params": core.Raw(`{}`)}
	steps := []Step{{ID: "x"}, {ID: "it"}}
	f.Fuzz(func(t *testing.T, params []byte) {
		got, err := fillParams(params, scope)
		if err == nil && len(params) > 0 {
			if err := core.CheckObject("params", got, core.MaxInput); err != nil {
				t.Fatalf("%s became %s: %v", params, got, err)
			}
			if !bytes.Contains(params, []byte("$")) && !bytes.Contains(params, []byte("u0024")) {
				in, _ := core.Canonical(params)
				out, _ := core.Canonical(got)
				if !bytes.Equal(in, out) {
					t.Fatalf("%s without references became %s", params, got)
				}
			}
		}
		steps[1].Params = params
		for _, err := range checkSteps(steps, nil) {
			if core.AsError(err).Details["field"] == nil {
				t.Fatalf("%s: %v names no field", params, err)
			}
		}
		if pieces, err := parseText(string(params)); err == nil {
			var back string
			for _, p := range pieces {
				if p.ref != nil {
					back += p.ref.text
				} else {
					back += strings.ReplaceAll(p.literal, "${", "$${")
				}
			}
			again, err := parseText(back)
			if err != nil || len(again) != len(pieces) {
				t.Fatalf("%q parsed into %v, its text %q into %v %v", params, pieces, back, again, err)
			}
		}
	})
}
