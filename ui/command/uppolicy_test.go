package command_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

const (
	fineTable = `schema: 1
name: fine
rules:
  - id: all
    gates: [tool.call]
    when: "true"
    decision: approve
    reason_code: fine.all
    risk: low
`
	fineCases = `{"name":"one","input":{"action":{"tool":"fs.write"}},"expect":{"decision":"approve"}}
{"name":"two","input":{"action":{"tool":"fs.move"}},"expect":{"decision":"approve"}}
`
)

func TestUpRefusesABadPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		table, cases, swarm string // what is put in place of what
		want                []string
	}{
		"no expression":              {table: `"true"|"nope("`, want: []string{"p.yaml:6: rules.all.when: ", "Syntax error"}},
		"a word that is no decision": {table: `approve|allow`, want: []string{`p.yaml:7: rules.all.decision: "allow" is not allowed; allowed: approve, deny, hitl`}},
		"a field that is unknown":    {table: `    risk|    rissk`, want: []string{"p.yaml:9: ", `unknown field "rissk"`}},
		"no table":                   {table: `schema: 1|schema: 2`, want: []string{"p.yaml:1: schema: 2 is not allowed; allowed: 1"}},
		"no YAML":                    {table: `rules:|rules: [`, want: []string{"p.yaml:"}},
		"a case that is no JSON":     {cases: `{"name":"two"|{"name""two"`, want: []string{"p.jsonl:2: "}},
		"a case that wants nonsense": {cases: `approve|allow`, want: []string{`p.jsonl:1: expect.decision: "allow" is not allowed`}},
		"a case that fails":          {cases: `"two","input"|"two","context"`, want: []string{"p.jsonl:2: ", "context"}},
		"cases that fail":            {cases: `"decision":"approve"}}` + "\n" + `{|"decision":"deny"}}` + "\n" + `{`, want: []string{`p.jsonl:1: tests: policy fine: 1 of 2 cases fail, first "one": want deny, got approve fine.all`}},
		"a file that is not there":   {swarm: `p.yaml|q.yaml`, want: []string{"swarm.yaml:4: policy.file: ", "no such file"}},
		"cases that are not there":   {swarm: `p.jsonl|q.jsonl`, want: []string{"swarm.yaml:5: policy.tests: ", "no such file"}},
		"rules with an interpreter":  {swarm: `tests: p.jsonl|tests: p.jsonl` + "\n" + `  interpreter: [sh]`, want: []string{"swarm.yaml:", "rules take no interpreter"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeck(t)
			put := func(text, change string) string {
				old, now, _ := strings.Cut(change, "|")
				expect.Must(t, strings.Contains(text, old), "no %q in %s", old, text)
				return strings.Replace(text, old, now, 1)
			}
			d.write("p.yaml", put(fineTable, c.table))
			d.write("p.jsonl", put(fineCases, c.cases))
			d.write("swarm.yaml", put("tenant: t_up\nsessions: [{name: day}]\npolicy:\n  file: p.yaml\n  tests: p.jsonl\n", c.swarm))
			code, message, _ := d.fails(1, "up swarm.yaml")
			expect.Is(t, code, "INVALID_INPUT", "code")
			for _, want := range c.want {
				expect.Has(t, message, want)
			}
			if all := d.objects("tenant list"); len(all) > 0 {
				for _, o := range all {
					expect.True(t, o["tenant_id"] != "t_up", "the tenant was made")
				}
			}
		})
	}
}

func TestAGoodPolicyOfASwarmFileIsAppliedOnce(t *testing.T) {
	d := newDeck(t)
	d.write("p.yaml", fineTable)
	d.write("p.jsonl", fineCases)
	d.write("swarm.yaml", "tenant: t_up\npolicy:\n  file: p.yaml\n  tests: p.jsonl\n")
	for _, want := range []string{"created policy fine", "unchanged policy fine"} {
		got := d.applied("swarm.yaml")
		expect.True(t, len(got) == 2 && got[1] == want, "%q, want %s", got, want)
	}
}
