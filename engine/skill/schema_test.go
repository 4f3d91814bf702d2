package skill

import (
	"errors"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/schema"
	"swarmdeck/expect"
)

const driving = `{
	"type": "object",
	"properties": {
		"location": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]+$"},
		"speed": {"type": "number", "default": 1.0, "exclusiveMinimum": 0, "maximum": 2.5},
		"mode": {"enum": ["fast", "slow", 3]},
		"way": {"type": "array", "items": {"$ref": "#/$defs/point"}, "minItems": 1},
		"load": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["kg"]}]},
		"options": {"type": "object", "properties": {"careful": {"type": "boolean", "default": true}}, "default": {}}
	},
	"required": ["location"],
	"additionalProperties": false,
	"$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}}, "required": ["x", "y"]}}
}`

func TestParametersAreCheckedAndFilledIn(t *testing.T) {
	s := &Skill{Name: "drive", Version: "1.0.0", ParametersSchema: core.Raw(driving)}
	new(contracts).adopt(s)
	for given, want := range map[string]string{
		`{"location":"hall"}`:                                      `{"location":"hall","options":{"careful":true},"speed":1.0}`,
		`{"location":"hall","speed":0.50,"options":{}}`:            `{"location":"hall","options":{"careful":true},"speed":0.50}`,
		`{"location":"hall","options":{"careful":false}}`:          `{"location":"hall","options":{"careful":false},"speed":1.0}`,
		`{"location":"hall","way":[{"x":12345678901234567890}]}`:   `{"location":"hall","options":{"careful":true},"speed":1.0,"way":[{"x":12345678901234567890,"y":0}]}`,
		`{"location":"hall","speed":2,"options":{"careful":true}}`: `{"location":"hall","speed":2,"options":{"careful":true}}`,
	} {
		got, err := s.CheckParams(core.Raw(given))
		expect.True(t, err == nil && string(got) == want, "%s: %s, %v\nwant %s", given, got, err, want)
		expect.No(t, s.partialParams(core.Raw(given)), given, "in part")
	}
	first, _ := s.CheckParams(core.Raw(`{"location":"a","options":{"careful":false}}`))
	expect.True(t, !strings.Contains(string(first), "true"), "a default was changed: %s", first)
}

func TestEveryMistakeInParametersIsNamed(t *testing.T) {
	s := &Skill{Name: "drive", Version: "1.0.0", ParametersSchema: core.Raw(driving), ReturnsSchema: core.Raw(driving)}
	for given, want := range map[string]string{
		`{}`:                                    "params.location: missing",
		`[]`:                                    "params: want a JSON object",
		``:                                      "params: not valid JSON: nothing there",
		`{"location":1}`:                        "params.location: want string, got number",
		`{"location":""}`:                       "params.location: 0 characters is not allowed; allowed: 1 or more\nparams.location: \"\" is not allowed; allowed: text that matches ^[a-z]+$",
		`{"location":"toolong"}`:                "params.location: 7 characters is not allowed; allowed: 5 or less",
		`{"location":"a","speed":0}`:            "params.speed: 0 is not allowed; allowed: more than 0",
		`{"location":"a","speed":2.75}`:         "params.speed: 2.75 is not allowed; allowed: 2.5 or less",
		`{"location":"a","mode":"x"}`:           `params.mode: "x" is not allowed; allowed: "fast", "slow", 3`,
		`{"location":"a","way":[]}`:             "params.way: ",
		`{"location":"a","way":[{}]}`:           "params.way[0].x: missing",
		`{"location":"a","way":[{"x":1.5}]}`:    "params.way[0].x: want integer, got number",
		`{"location":"a","load":5}`:             "params.load: fits none of the alternatives: want string, got number; or want object, got number",
		`{"location":"a","load":{}}`:            "params.load: fits none of the alternatives: want string, got object; or kg: missing",
		`{"location":"a","colour":"red"}`:       "params.colour: unknown field",
		`{"speed":"x","colour":1}`:              "params.colour: unknown field\nparams.location: missing\nparams.speed: want number, got string",
		`{"location":"a","location":"b"}`:       "params: not valid JSON: ",
		`{"location":"a","speed":1e1000000}`:    "params: number 1e1000000 is not allowed; allowed: at most 400 digits, an exponent of -400 to 400",
		`{"location":"a","speed":1e-999999999}`: "params: number 1e-999999999 is not allowed",
	} {
		got, err := s.CheckParams(core.Raw(given))
		var e *core.Error
		expect.True(t, errors.As(err, &e) && e.Code == core.InvalidInput && strings.HasPrefix(err.Error(), want) && len(got) <= len(given),
			"%s: %s, %v\nwant %s", given, got, err, want)
		if err := s.checkResult(core.Raw(given)); given != `{"location":"a","way":[{}]}` && !strings.HasPrefix(err.Error(), strings.Split(strings.ReplaceAll(want, "params", "result"), "\n")[0]) {
			t.Errorf("as a result: %v", err)
		}
	}
	var e *core.Error
	_, err := s.CheckParams(core.Raw(`{"speed":"x"}`))
	expect.True(t, errors.As(err, &e) && e.Details["field"] == "params.location" && e.Details["problems"] != nil, "%+v", e)
}

func TestAPartOfTheParametersIsCheckedForWhatIsThere(t *testing.T) {
	s := &Skill{Name: "drive", Version: "1.0.0", ParametersSchema: core.Raw(strings.Replace(driving, `"additionalProperties"`,
		`"minProperties": 3, "anyOf": [{"required": ["mode"]}], "dependentRequired": {"speed": ["way"]}, "additionalProperties"`, 1))}
	for given, want := range map[string]string{
		`{}`:            "",
		`{"speed":2}`:   "",
		`{"speed":"x"}`: "params.speed: want number, got string",
		`{"other":1}`:   "params.other: unknown field",
		`{"way":[{}]}`:  "params.way[0].x: missing",
	} {
		err := s.partialParams(core.Raw(given))
		expect.Says(t, err, want, given)
	}
}

func TestResultsOfASkillWithoutASchemaAreAnyObject(t *testing.T) {
	s := &Skill{Name: "drive", Version: "1.0.0", ParametersSchema: core.Raw(`{}`)}
	expect.No(t, s.checkResult(core.Raw(`{"a":[1]}`)))
	expect.Fails(t, s.checkResult(core.Raw(`3`)), "3 is no object")
}

func TestSkillsWithTheSameSchemasShareThem(t *testing.T) {
	var c contracts
	a := &Skill{ParametersSchema: core.Raw(driving)}
	b := &Skill{ParametersSchema: core.Raw(driving)}
	other := &Skill{ParametersSchema: core.Raw(driving), ReturnsSchema: core.Raw(`{}`)}
	c.adopt(a)
	c.adopt(b)
	c.adopt(other)
	expect.True(t, a.contract == b.contract && a.contract != other.contract, "contracts are mixed up")
}

func TestAValueThatWouldBeCheckedForeverIsRefused(t *testing.T) {
	s := &Skill{Name: "deep", Version: "1.0.0", ParametersSchema: core.Raw(
		`{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}],"$defs":{"n":{"properties":{"a":{"$ref":"#"}}}}}`)}
	violations := schema.Check(s.ParametersSchema)
	expect.Must(t, violations == nil, "%+v", violations)
	_, err := s.CheckParams(core.Raw(`{"a":{"a":{"a":{}}}}`))
	expect.True(t, err == nil, "%v", err)
	expect.Says(t, expect.Fault(s.CheckParams(core.Raw(strings.Repeat(`{"a":`, 100)+`{}`+strings.Repeat(`}`, 100)))), "too deeply for what its schema asks")
}
