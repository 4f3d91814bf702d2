package skill

import (
	"encoding/json"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
)

// A skill file is anyone's text. Whatever it is, it is taken or refused with
// problems at lines that it has, and what was taken reads the same again.
func FuzzSkillFile(f *testing.F) {
	f.Add(navigate)
	f.Add(strings.Join(base, "\n"))
	f.Add(skillText("a-b", "1.2.3", "other@1.0.0"))
	f.Add(`{"name":"abc","version":"1.0.0","parameters_schema":{"$ref":"#/$defs/a","$defs":{"a":{"pattern":"(a+)+$","default":{}}}},"runner":{"kind":"agent","agent":"x","prompt":"${a} $${b"}}`)
	f.Add("name: abc\nversion: 1.0.0\nparameters_schema: {properties: {a: {default: 1e999}}}\nrunner: {kind: composite, steps: [{id: a, skill: abc, params: {x: '${params.a}'}}]}")
	f.Add("name: abc\nversion: 0.0.0\nparameters_schema: {allOf: [{$ref: '#'}, {$ref: 'http://x'}, {$dynamicRef: '#y'}, {minimum: -1e400}]}\nrunner: {kind: exec, argv: ['\\x00']}")
	f.Fuzz(func(t *testing.T, text string) {
		for _, file := range []string{"/dir/a.yaml", "/dir/a.json"} {
			d := parse(file, []byte(text), "/dir")
			lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r")
			for _, p := range d.problems {
				expect.Must(t, p.Line >= 1 && p.Line <= lines && p.Field != "" && p.Message != "" && len(p.Message) <= 4000 && p.File == file,
					"%q: %+v", text, p)
			}
			if len(d.problems) > 0 {
				continue
			}
			s := &d.skill
			sum := digest(s)
			again := FromCode(*s)
			expect.Must(t, len(again.problems) == 0 && digest(&again.skill) == sum && sum != "", "%q: %v\n%+v\n%+v", text, again.problems, s, again.skill)
			for _, params := range []string{`{}`, `{"a":1}`, `{"a":{"a":[1,"x"]}}`} {
				full, err := s.CheckParams(core.Raw(params))
				expect.Must(t, err != nil || json.Valid(full), "%q: %s → %s", text, params, full)
				_ = s.partialParams(core.Raw(params))
				_ = s.checkResult(core.Raw(params))
			}
		}
	})
}

func FuzzVersion(f *testing.F) {
	for _, s := range []string{"1.2.3", "0.0.0", "999999999.999999999.999999999", "1.2", "01.2.3", "1.2.3\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, ok := parseVersion(s)
		if key := refKey("abc@" + s); ok && refOf(record.Parts(key)) != "abc@"+s {
			t.Fatalf("%q came back as %q", s, refOf(record.Parts(key)))
		}
		_, _, err := SplitRef("abc@" + s)
		expect.Must(t, (err == nil) == ok, "%q: %v", s, err)
	})
}
