package skill

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

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
			expect.True(t, strings.Contains(err.Error(), c.want[i]) && core.AsError(err).Details["field"] != nil, "got  %v\nwant %s", err, c.want[i])
		}
	}
	errs := checkSteps(steps(`{"a":"${params.anything}"}`), core.Raw(`{"type":"object"}`))
	expect.True(t, len(errs) == 0, "a schema that declares no properties takes any: %v", errs)
}

func TestWhatIsFilledIntoAPromptIsNoReferenceItself(t *testing.T) {
	prompt, err := fillPrompt("say ${text}", core.Raw(`{"text":"${secret}","secret":"hunter2"}`))
	expect.True(t, err == nil && prompt == "say ${secret}", "prompt %q %v", prompt, err)
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
	want := `Review a "b".go with 3 of {"level":3}; keep ${file}.`
	expect.True(t, err == nil && got == want, "got %q %v, want %q", got, err, want)
	expect.Says(t, expect.Fault(fillPrompt(prompt, core.Raw(`{"file":"x"}`))), "runner.prompt: ${opts.level}: opts has no value", "missing")
	errs := checkPrompt("${fil} ${params.file}", schema)
	expect.True(t, len(errs) == 2 && strings.Contains(errs[0].Error(), "runner.prompt: ${fil}: the skill has no parameter fil; it has file, opts"),
		"errors %v", errs)
	errs = checkPrompt("${", schema)
	expect.True(t, len(errs) == 1, "errors %v", errs)
}

func FuzzSteps(f *testing.F) {
	for _, s := range []string{`{"a":"${x.y[0]}"}`, `{"a":"$${x}$${${x}"}`, `{"${":"${x"}`, `"${x}"`, `{"a":"\ud83d${x}"}`} {
		f.Add([]byte(s))
	}
	steps := []Step{{ID: "x"}, {ID: "it"}}
	f.Fuzz(func(t *testing.T, params []byte) {
		steps[1].Params = params
		for _, err := range checkSteps(steps, nil) {
			expect.Must(t, core.AsError(err).Details["field"] != nil, "%s: %v names no field", params, err)
		}
	})
}
