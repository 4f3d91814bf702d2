package judge_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// FuzzProposal reads tables with their cases: a mistake is told with a line
// that is there, and what is accepted can be proposed and activated.
func FuzzProposal(f *testing.F) {
	f.Add(mild, mildCases)
	f.Add(mild, mildCases+"\n"+`{"name":"x","input":{"name":"a_b","arguments":{}},"expect":{"decision":"deny","reason_code":"no"}}`)
	f.Add("schema: 1\nrules:\n  - id: a.b\n    when: \"x(\"\n", "{")
	f.Add("rules: [{id: a}, 7]\n", `{"name":"x","input":{"context":{"gate":"result"}},"expect":{"decision":"abort"}}`)
	f.Add("? {a: 1}\n: b\nrules:\n- 1\n", "\n\n{}\n")
	j := setup(f)
	f.Fuzz(func(t *testing.T, source, cases string) {
		in := rulesOf(source, cases)
		err := j.CheckApply(context.Background(), alice, in)
		if err != nil {
			e := core.AsError(err)
			if e.Code != core.InvalidInput && e.Code != core.Conflict {
				t.Fatalf("not a clear error: %v", err)
			}
			if line, ok := e.Details["line"].(int); ok {
				of := map[any]string{"source": source, "tests": cases}[e.Details["in"]]
				if lines := strings.Count(of, "\n") + strings.Count(of, "\r") + 1; line < 1 || line > lines {
					t.Fatalf("line %d of %d in %v: %v", line, lines, e.Details["in"], err)
				}
			}
			return
		}
		p, err := j.Propose(context.Background(), alice, in)
		expect.No(t, err, "checked, then refused")
		expect.Of(j.Withdraw(context.Background(), alice, p.PolicyID))(t)
	})
}

// FuzzInput asks the policy about what nobody expects.
func FuzzInput(f *testing.F) {
	f.Add(`{"action":{"tool":"fs.write","args":{"path":"/x"}}}`)
	f.Add(`{"name":"exec_fs.write","arguments":{"path":"a"}}`)
	f.Add(`{"schema":1,"action":{"kind":"exec.run","args":{"argv":["sh","-c","rm -rf /"]}},"context":{"actor_kind":"operator","gate":"task.start"}}`)
	f.Add(`{"result":{"confidence":0.5,"text":"password","last_try":true}}`)
	f.Add(`{"action":{"args":{"a":1e999}}}`)
	f.Add(`{"action":{"kind":"cad.op","args":[1]}}`)
	j := setup(f)
	f.Fuzz(func(t *testing.T, input string) {
		got, err := j.Explain(context.Background(), acme, "", core.Raw(input))
		if err != nil {
			if code(err) != core.InvalidInput {
				t.Fatalf("not a clear error: %v", err)
			}
			return
		}
		if !slices.Contains([]string{"approve", "deny", "hitl"}, got.Decision) || got.ReasonCode == "" {
			t.Errorf("got %+v", got)
		}
		if _, err := core.Encode(got); err != nil {
			t.Errorf("can't be shown: %v", err)
		}
	})
}
