package skill

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// base is a valid file, one field a line, that the cases below break.
var base = []string{
	`name: navigate`,
	`version: 1.0.0`,
	`description: text`,
	`parameters_schema: {type: object, properties: {a: {type: string}}}`,
	`returns_schema: {type: object}`,
	`timeout: 30`,
	`max_retries: 0`,
	`dependencies: [other]`,
	`tags: [one]`,
	`effects: [read]`,
	`topic: area`,
	`runner: {kind: builtin, name: echo}`,
}

// changed is the base with one field's line replaced, or left out.
func changed(field, line string) string {
	var all []string
	for _, l := range base {
		switch {
		case !strings.HasPrefix(l, field+":"):
			all = append(all, l)
		case line != "":
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}

func numbered(format string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ", ")
}

// Every attribute and rule of the model's Skill, and ours, broken: the file, the
// line, the field, the value and what is allowed are told.
func TestEveryRuleOfASkillFile(t *testing.T) {
	const name, semver = `3-50 of a-z A-Z 0-9 -`, `X.Y.Z, three numbers of at most 9 digits without leading zeros`
	const tag = `1-30 printable characters without space around them`
	for _, c := range []struct {
		field, line string
		want        []string // line:field: message
	}{
		{"name", "", []string{`1: name: missing`}},
		{"name", "name:", []string{`1: name: want text, got nothing`}},
		{"name", "name: 123", []string{`1: name: want text, got a number`}},
		{"name", "name: ab", []string{`1: name: "ab" is not allowed; allowed: ` + name}},
		{"name", "name: " + strings.Repeat("n", 51), []string{`1: name: "` + strings.Repeat("n", 51) + `" is not allowed; allowed: ` + name}},
		{"name", "name: go_to", []string{`1: name: "go_to" is not allowed; allowed: ` + name}},
		{"name", "name: größe", []string{`1: name: "größe" is not allowed; allowed: ` + name}},
		{"name", `name: "abc\n"`, []string{`1: name: "abc\n" is not allowed; allowed: ` + name}},
		{"version", "", []string{`1: version: missing`}},
		{"version", "version: 1.0", []string{`2: version: "1.0" is not allowed; allowed: ` + semver}},
		{"version", "version: 1.0.0-beta", []string{`2: version: "1.0.0-beta" is not allowed; allowed: ` + semver}},
		{"version", "version: 01.0.0", []string{`2: version: "01.0.0" is not allowed; allowed: ` + semver}},
		{"version", "version: v1.0.0", []string{`2: version: "v1.0.0" is not allowed; allowed: ` + semver}},
		{"version", `version: ""`, []string{`2: version: "" is not allowed; allowed: ` + semver}},
		{"version", "version: 1.2.1234567890", []string{`2: version: "1.2.1234567890" is not allowed; allowed: ` + semver}},
		{"description", "description: [a]", []string{`3: description: want text, got a list`}},
		{"description", "description: " + strings.Repeat("é", 501), []string{`3: description: "501 characters" is not allowed; allowed: at most 500 characters`}},
		{"parameters_schema", "", []string{`1: parameters_schema: missing`}},
		{"parameters_schema", "parameters_schema: true", []string{`4: parameters_schema: want a mapping, got true or false`}},
		{"parameters_schema", "parameters_schema: {type: objekt}", []string{`4: parameters_schema.type: fits none of the alternatives: "objekt" is not allowed; allowed: "array", "boolean", "integer", "null", "number", "object", "string"; or want array, got string`}},
		{"parameters_schema", "parameters_schema:\n  properties:\n    a:\n      minLength: -1", []string{`7: parameters_schema.properties.a.minLength: -1 is not allowed; allowed: 0 or more`}},
		{"parameters_schema", "parameters_schema: {type: array}", []string{`4: parameters_schema.type: "array" is not allowed; allowed: object, as parameters and results are JSON objects`}},
		{"parameters_schema", "parameters_schema:\n  properties:\n    a: {$ref: 'https://example.com/x.json'}", []string{`6: parameters_schema.properties.a.$ref: "https://example.com/x.json" is not allowed; allowed: a reference within the schema, like #/$defs/name`}},
		{"parameters_schema", "parameters_schema: {properties: {a: {$ref: 'file:///etc/passwd'}}}", []string{`4: parameters_schema.properties.a.$ref: "file:///etc/passwd" is not allowed; allowed: a reference within the schema, like #/$defs/name`}},
		{"parameters_schema", "parameters_schema: {$ref: '#/$defs/no'}", []string{`4: parameters_schema: a $ref names #/$defs/no, which is not there`}},
		{"parameters_schema", "parameters_schema:\n  $schema: http://json-schema.org/draft-07/schema#", []string{`5: parameters_schema.$schema: "http://json-schema.org/draft-07/schema#" is not allowed; allowed: https://json-schema.org/draft/2020-12/schema`}},
		{"parameters_schema", "parameters_schema: {properties: {a: {pattern: '(?=x)'}}}", []string{`4: parameters_schema.properties.a.pattern: `}},
		{"parameters_schema", "parameters_schema: {properties: {a: {type: number, default: fast}}}", []string{`4: parameters_schema.properties.a.default: the default does not fit: want number, got string`}},
		{"parameters_schema", "parameters_schema: {maximum: 1e999}", []string{`4: parameters_schema`}},
		{"parameters_schema", "parameters_schema: &x {type: object}", []string{`4: parameters_schema: want a mapping, got an anchor or alias, which is not allowed`}},
		{"returns_schema", "returns_schema: 5", []string{`5: returns_schema: want a mapping, got a number`}},
		{"returns_schema", "returns_schema: {required: a}", []string{`5: returns_schema.required: want array, got string`}},
		{"timeout", "timeout: 0", []string{`6: timeout: 0 is not allowed; allowed: a whole number, 1-3600`}},
		{"timeout", "timeout: 3601", []string{`6: timeout: 3601 is not allowed; allowed: a whole number, 1-3600`}},
		{"timeout", "timeout: -5", []string{`6: timeout: -5 is not allowed; allowed: a whole number, 1-3600`}},
		{"timeout", "timeout: 1.5", []string{`6: timeout: 1.5 is not allowed; allowed: a whole number, 1-3600`}},
		{"timeout", "timeout: 30s", []string{`6: timeout: want a number, got text`}},
		{"max_retries", "max_retries: -1", []string{`7: max_retries: -1 is not allowed; allowed: a whole number, 0-5`}},
		{"max_retries", "max_retries: 6", []string{`7: max_retries: 6 is not allowed; allowed: a whole number, 0-5`}},
		{"max_retries", "max_retries: true", []string{`7: max_retries: want a number, got true or false`}},
		{"dependencies", "dependencies: other", []string{`8: dependencies: want a list, got text`}},
		{"dependencies", "dependencies: [1]", []string{`8: dependencies[0]: want text, got a number`}},
		{"dependencies", "dependencies: [other, nowhere]", []string{`8: dependencies[1]: "nowhere" is not allowed; allowed: a skill that is loaded`}},
		{"dependencies", "dependencies:\n  - other\n  - other@2.0.0", []string{`10: dependencies[1]: "other@2.0.0" is not allowed; allowed: each skill once`}},
		{"dependencies", "dependencies: [other@2.0.0]", []string{`8: dependencies[0]: "other@2.0.0" is not allowed; allowed: a skill that is loaded, as other@1.0.0 is`}},
		{"dependencies", "dependencies: [a_b, other@1]", []string{`8: dependencies[0]: "a_b" is not allowed; allowed: a skill's name or name@X.Y.Z`, `8: dependencies[1]: "other@1" is not allowed; allowed: a skill's name or name@X.Y.Z`}},
		{"dependencies", "dependencies: [navigate]", []string{`8: dependencies[0]: "navigate" is not allowed; allowed: what does not need this skill itself; a cycle: navigate → navigate`}},
		{"dependencies", "dependencies: [" + numbered("dep-%d", 51) + "]", []string{`8: dependencies: "51 entries" is not allowed; allowed: at most 50`}},
		{"tags", "tags: [" + numbered("t%d", 11) + "]", []string{`9: tags: "11 entries" is not allowed; allowed: at most 10`}},
		{"tags", "tags: [" + strings.Repeat("t", 31) + "]", []string{`9: tags[0]: "` + strings.Repeat("t", 31) + `" is not allowed; allowed: ` + tag}},
		{"tags", "tags: [a, '']", []string{`9: tags[1]: "" is not allowed; allowed: ` + tag}},
		{"tags", "tags: {a: b}", []string{`9: tags: want a list, got a mapping`}},
		{"effects", "effects: [read, delete]", []string{`10: effects[1]: "delete" is not allowed; allowed: read, write, network, exec`}},
		{"effects", "effects: [read, read]", []string{`10: effects[1]: "read" is not allowed; allowed: each effect once`}},
		{"topic", "topic: a b", []string{`11: topic: "a b" is not allowed; allowed: tokens of a-z A-Z 0-9 _ - with dots between, not below "sys"`}},
		{"topic", "topic: sys.task", []string{`11: topic: "sys.task" is not allowed; allowed: tokens of a-z A-Z 0-9 _ - with dots between, not below "sys"`}},
		{"runner", "", []string{`1: runner: missing`}},
		{"runner", "runner: echo", []string{`12: runner: want a mapping, got text`}},
		{"runner", "runner: {name: echo}", []string{`12: runner.kind: missing`}},
		{"runner", "runner: {kind: lambda}", []string{`12: runner.kind: "lambda" is not allowed; allowed: agent, builtin, cad, composite, exec, mcp`}},
		{"runner", "runner: {kind: builtin, name: broken}", []string{`12: runner.name: "broken" is not allowed; allowed: echo, sleep`}},
		{"runner", "runner: {kind: builtin, name: echo, argv: [x]}", []string{`12: runner.argv: unknown field; allowed: kind, name`}},
		{"runner", "runner: {kind: mcp, server: a, tool: b}", []string{`12: runner.kind: "mcp" is not allowed; allowed: agent, builtin, composite, exec; mcp skills need a driver that is not here`}},
		{"runner", "runner: {kind: cad, method: solid.extrude}", []string{`12: runner.kind: "cad" is not allowed; allowed: agent, builtin, composite, exec; cad skills need a driver that is not here`}},
		{"runner", "runner: {kind: mcp}", []string{`12: runner.server: missing`, `12: runner.tool: missing`}},
		{"runner", "runner: {kind: exec}", []string{`12: runner.argv: missing`}},
		{"runner", "runner: {kind: exec, argv: []}", []string{`12: runner.argv: empty; want a program and its arguments`}},
		{"runner", "runner: {kind: exec, argv: [x], env: {'A=B': c}}", []string{`12: runner.env.A=B: "A=B" is not allowed; allowed: a name without = in it`}},
		{"runner", "runner: {kind: agent, agent: helper}", []string{`12: runner.prompt: missing`}},
		{"runner", "runner: {kind: agent, agent: helper, prompt: ' '}", []string{`12: runner.prompt: " " is not allowed; allowed: a text that is not only white space`}},
		{"runner", "runner: {kind: agent, agent: helper, prompt: 'do ${b}'}", []string{`12: runner.prompt: ${b}: the skill has no parameter b; it has a`}},
		{"runner", "runner: {kind: composite, steps: []}", []string{`12: runner.steps: empty; want 1-100 steps`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {skill: other}", []string{`15: runner.steps[0].id: missing`, `15: runner.steps[0].id: "" is not allowed`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: nowhere}", []string{`15: runner.steps[0].skill: "nowhere" is not allowed; allowed: a skill that is loaded`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: other, error_policy: ignore}", []string{`15: runner.steps[0].error_policy: "ignore" is not allowed; allowed: retry, abort, fallback`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: other, error_policy: fallback}", []string{`15: runner.steps[0].fallback: missing; error_policy fallback needs the skill that runs instead`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: other, fallback: other}", []string{`15: runner.steps[0].fallback: "other" is not allowed; allowed: a fallback only with error_policy: fallback`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: other, error_policy: fallback, fallback: nowhere}", []string{`15: runner.steps[0].fallback: "nowhere" is not allowed; allowed: a skill that is loaded`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: other, backoff_multiplier: 0.5}", []string{`15: runner.steps[0].backoff_multiplier: 0.5 is not allowed; allowed: 1-10`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: other}\n    - id: b\n      skill: other\n      params: {x: '${c.y}'}", []string{`18: runner.steps[1].params.x: step b: ${c.y}: there is no step c; earlier ones are a`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: other, params: {x: '${params.b}'}}", []string{`15: runner.steps[0].params.x: step a: ${params.b}: the skill has no parameter b; it has a`}},
		{"runner", "runner:\n  kind: composite\n  steps:\n    - {id: a, skill: navigate}", []string{`15: runner.steps[0].skill: "navigate" is not allowed; allowed: what does not need this skill itself; a cycle: navigate → navigate`}},
		{"name", "name: navigate\ncolour: red", []string{`2: colour: unknown field; allowed: dependencies, description, effects, max_retries, name, parameters_schema, returns_schema, runner, tags, timeout, topic, version`}},
		{"name", "name: navigate\ncreated_at: 2025-12-19T10:00:00Z", []string{`2: created_at: unknown field`}},
		{"name", "name: navigate\nname: again", []string{`2: file: not valid YAML: `}},
		{"name", "name: \"\xff\"", []string{`1: file: not valid UTF-8`}},
		{"timeout", "timeout: 0\nmax_retries: 9", []string{`file: not valid YAML`}},
	} {
		t.Run(c.field+" "+strings.ReplaceAll(core.ClipTo(c.line, 40), "\n", " "), func(t *testing.T) {
			s := newShelf(t)
			s.load(s.file("lib/other.yaml", skillText("other", "1.0.0")))
			got := s.load(s.file("bad.yaml", changed(c.field, c.line)))
			problems := s.problems(got)
			ok := len(problems) == len(c.want)
			for i := range problems {
				ok = ok && strings.Contains(problems[i], c.want[i]) && strings.HasPrefix(problems[i], "bad.yaml:")
			}
			expect.True(t, ok && len(got.Changes) == 0,
				"\n got %s\nwant bad.yaml:%s", strings.Join(problems, "\n     "), strings.Join(c.want, "\n              "))
			for _, p := range got.Refused {
				expect.True(t, p.Allowed == "" || strings.Contains(p.Message, p.Allowed), "allowed %q is not in %q", p.Allowed, p.Message)
			}
			expect.Is(t, len(s.Catalog(home)), 1)
		})
	}
}

func TestTheBoundsThemselvesAreAllowed(t *testing.T) {
	for field, lines := range map[string][]string{
		"name":         {"name: abc", "name: " + strings.Repeat("N", 50), "name: a-1", "name: '007'"},
		"version":      {"version: 0.0.0", "version: 999999999.1.2", "version: '10.20.30'"},
		"description":  {"description: " + strings.Repeat("é", 500), "description: ''", "description:", ""},
		"timeout":      {"timeout: 1", "timeout: 3600", "timeout: 2.0", "timeout:", ""},
		"max_retries":  {"max_retries: 5", "max_retries: 0", ""},
		"dependencies": {"dependencies: []", "dependencies:", "", "dependencies: [other@1.0.0]"},
		"tags":         {"tags: [" + numbered("t%d", 10) + "]", "tags: [" + strings.Repeat("é", 30) + "]", "tags: [pick up]", "tags: []", ""},
		"effects":      {"effects: [read, write, network, exec]", "effects: []", ""},
		"topic":        {"topic: a.b-c.D_1", ""},
		"returns_schema": {
			"", "returns_schema: {}", "returns_schema: {$schema: 'https://json-schema.org/draft/2020-12/schema', type: [object, 'null']}",
			"returns_schema: {$defs: {a: {type: string}}, properties: {x: {$ref: '#/$defs/a'}}}",
		},
		"runner": {
			"runner: {kind: agent, agent: a, prompt: 'do ${a} for $${b}'}",
			"runner: {kind: composite, steps: [{id: one, skill: other}, {id: two, skill: other@1.0.0, params: {x: '${one.y[0]} ${params.a}'}, error_policy: fallback, fallback: other, backoff_multiplier: 1.5}]}",
		},
	} {
		for _, line := range lines {
			s := newShelf(t)
			s.load(s.file("lib/other.yaml", skillText("other", "1.0.0")))
			got := s.load(s.file("good.yaml", changed(field, line)))
			expect.True(t, len(got.Refused) == 0 && len(got.Changes) == 1, "%s: %q", line, s.problems(got))
		}
	}
}

func TestTheEndOfEverySkillCanBeAnnounced(t *testing.T) {
	for text, want := range map[string]string{
		skillText("drive", "1.0.0"):                                  "drive",
		skillText("drive", "1.0.0") + "tags: [motion]":               "motion",
		skillText("drive", "1.0.0") + "tags: [pick up, motion]":      "drive",
		skillText("drive", "1.0.0") + "tags: [sys.x]":                "drive",
		skillText("drive", "1.0.0") + "tags: [motion]\ntopic: a.b-c": "a.b-c",
		skillText("sys", "1.0.0") + "topic: fine":                    "fine",
		skillText("sys", "1.0.0"):                                    `1: name: "sys" is not allowed; allowed: a name other than "sys", or a topic of its own`,
	} {
		d := parse("/dir/a.yaml", []byte(text), "/dir")
		if d.problems == nil && d.skill.Area() != want || d.problems != nil && !strings.HasSuffix(d.problems[0].String(), want) {
			t.Errorf("%s: area %q, %v; want %q", text, d.skill.Area(), d.problems, want)
		}
	}
}

func TestEveryMistakeOfAFileIsToldAtOnce(t *testing.T) {
	s := newShelf(t)
	got := s.load(s.file("bad.json", `{
  "name": "x",
  "version": "1",
  "timeout": 0,
  "max_retries": 7,
  "parameters_schema": {
    "type": "object",
    "properties": {"a": {"type": "strin"}}
  },
  "tags": [1],
  "runner": {
    "kind": "exec",
    "arg": ["a"]
  },
  "extra": null
}`))
	var lines []string
	for _, p := range s.problems(got) {
		at, _, _ := strings.Cut(p, ": ")
		field := strings.TrimPrefix(p, at+": ")
		field, _, _ = strings.Cut(field, ":")
		lines = append(lines, at+" "+field)
	}
	want := []string{
		"bad.json:2 name", "bad.json:3 version", "bad.json:4 timeout", "bad.json:5 max_retries",
		"bad.json:8 parameters_schema.properties.a.type", "bad.json:10 tags[0]",
		"bad.json:11 runner.argv", "bad.json:13 runner.arg", "bad.json:15 extra",
	}
	expect.True(t, slices.Equal(lines, want), "\n got %q\nwant %q\n%s", lines, want, strings.Join(s.problems(got), "\n"))
}

func TestSkillsOfTheProgramItself(t *testing.T) {
	s := newShelf(t)
	s.static = []Skill{{
		Name: "echo", Version: "1.0.0", ParametersSchema: core.Raw(`{"type":"object"}`), Timeout: 30,
		Runner: Spec{Kind: "builtin", Name: "echo"},
	}}
	s.again()
	for _, tenant := range []string{home, "t_new"} {
		have, err := s.Skill(tenant, "echo")
		expect.True(t, err == nil && have.Source == Builtin && have.TenantID == tenant && len(have.Digest) == 64, "%+v %v", have, err)
	}
	got := s.problems(s.load(s.file("echo.yaml", skillText("echo", "1.0.0")+"tags: [x]\n")))
	expect.True(t, len(got) == 1 && strings.Contains(got[0], "echo@1.0.0 is defined by the program itself"), "%q", got)
	s.load(s.file("echo.yaml", skillText("echo", "1.0.1")))
	have, _ := s.Skill(home, "echo")
	expect.True(t, have.Version == "1.0.1", "%+v", have)
	if got, err := s.Unload(t.Context(), alice, "echo"); err != nil || len(got) != 1 || got[0].Version != "1.0.1" {
		t.Errorf("%v %v", got, err)
	}
	expect.Says(t, expect.Fault(s.Unload(t.Context(), alice, "echo")), "part of the program")
	s.again()
	have, _ = s.Skill(home, "echo")
	expect.True(t, have != nil && have.Version == "1.0.0", "%+v", have)
}

func TestAProgramWithABadSkillOfItsOwnDoesNotStart(t *testing.T) {
	s := newShelf(t)
	_, err := newRegistry(t.Context(), Options{Ledger: s.ledger, Runners: s.opt.Runners, Static: []Skill{{Name: "x", Version: "1.0.0", Timeout: 5000, Runner: Spec{Kind: "builtin"}}}}, nil)
	expect.True(t, err != nil && strings.Contains(err.Error(), "name:") && strings.Contains(err.Error(), "timeout:"), "%v", err)
}
