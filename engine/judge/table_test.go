package judge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// ruleLine is one rule of a policy under test.
func ruleLine(id, when, decision string) string {
	return fmt.Sprintf("  - {id: %s, gates: [task.start], when: %q, decision: %s, reason_code: r.%s, risk: low}\n", id, when, decision, id)
}

func policy(rules ...string) string {
	return "schema: 1\nname: test\nrules:\n" + strings.Join(rules, "")
}

func TestFirstMatchWinsUnderTheDenyFloor(t *testing.T) {
	f := setup(t, withPolicy(policy(
		ruleLine("one", `action.args.n == 1`, "approve"),
		ruleLine("many", `action.args.n > 1`, "hitl"),
		ruleLine("two", `action.args.n == 2`, "approve"),
		ruleLine("no", `action.args.n == 1 && context.priority > 90 || action.args.n == 3`, "deny"),
	)))
	for _, c := range []struct {
		args     string
		priority int
		want     string
	}{
		{`{"n":1}`, 50, "r.one"},
		{`{"n":1}`, 95, "r.no"},
		{`{"n":2}`, 50, "r.many"},
		{`{"n":3}`, 50, "r.no"},
		{`{"n":0}`, 50, "no_rule"},
		{`{"n":1.0}`, 50, "r.one"},
	} {
		ask := execBy(alice, c.args)
		ask.Priority = c.priority
		if v := f.Evaluate(t.Context(), acme, ask); v.ReasonCode != c.want {
			t.Errorf("%s at %d: %s, want %s", c.args, c.priority, v.ReasonCode, c.want)
		}
	}
}

func TestEveryVariableCanBeRead(t *testing.T) {
	all := `action.kind == "exec.run" && action.server == "s" && action.tool == "t" && action.args.a[0].b == "c" &&
	 has(action.args.a) && !has(action.args.z) && action.risk == "medium" && action.intent == "i" && size(action.effects) == 1 &&
	 agent.name == "n" && agent.role == "ro" && agent.project == "p" && context.gate == "task.start" && context.driver == "exec" &&
	 context.attempt == 1 && context.priority == 50 && context.requested_by == "alice" && context.actor_kind == "operator" &&
	 context.session == "se" && result.has_confidence && result.confidence > 0.5 && result.text.matches("^x+$") &&
	 size(result.topics) == 0 && result.last_try`
	f := setup(t, withPolicy(policy(ruleLine("all", strings.Join(strings.Fields(all), " "), "approve"))))
	confidence := 0.75
	ask := execBy(alice, `{"a":[{"b":"c"}]}`)
	ask.Action.Server, ask.Action.Tool, ask.Risk, ask.Intent, ask.Session = "s", "t", judge.Medium, "i", "se"
	ask.Agent = judge.AgentRef{Name: "n", Role: "ro", Project: "p"}
	ask.Confidence, ask.Text, ask.LastTry = &confidence, "xxx", true
	if v := f.Evaluate(t.Context(), acme, ask); v.Decision != judge.Approve {
		t.Errorf("%s: %s", v.ReasonCode, v.Rationale)
	}
}

// No judge, no effect.
func TestR9FaultsAskAPerson(t *testing.T) {
	slow := `[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, a + b + c + d >= 0))))`
	bomb := strings.Replace(slow, "a + b", `[0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(g, e + g >= 0)) && a + b`, 1)
	for name, c := range map[string]struct {
		rules   string
		timeout time.Duration
		want    string
	}{
		"absent argument":         {policy(ruleLine("x", `action.args.nope == 1`, "approve")), 0, "policy.error"},
		"absent confidence":       {policy(ruleLine("x", `result.confidence > 0.5`, "approve")), 0, "policy.error"},
		"not a bool":              {policy(ruleLine("x", `action.args.text`, "approve")), 0, ""},
		"wrong type":              {policy(ruleLine("x", `action.args.text > 1`, "approve")), 0, "policy.error"},
		"division by zero":        {policy(ruleLine("x", `1 / int(action.args.zero) == 1`, "approve")), 0, "policy.error"},
		"bad pattern":             {policy(ruleLine("x", `"x".matches(action.args.text)`, "approve")), 0, "policy.error"},
		"error in the floor":      {policy(ruleLine("x", `action.args.nope == 1`, "deny"), ruleLine("y", "true", "approve")), 0, "policy.error"},
		"error before a match":    {policy(ruleLine("x", `action.args.nope == 1`, "hitl"), ruleLine("y", "true", "approve")), 0, "policy.error"},
		"cost":                    {policy(ruleLine("x", bomb, "approve")), 0, "policy.error"},
		"time":                    {policy(ruleLine("x", slow, "approve")), time.Nanosecond, "policy.timeout"},
		"time, before any rule":   {policy(ruleLine("x", "true", "approve")), time.Nanosecond, "policy.timeout"},
		"no rule for this gate":   {strings.Replace(policy(ruleLine("x", "true", "approve")), "task.start", "budget", 1), 0, "no_rule"},
		"an absent one, guarded":  {policy(ruleLine("x", `has(action.args.nope) && action.args.nope == 1`, "approve")), 0, "no_rule"},
		"an unread one is no bar": {policy(ruleLine("x", `true || action.args.nope == 1`, "approve")), 0, "r.x"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := func(o *judge.Options) { o.Policy, o.Evaluation = []byte(c.rules), c.timeout }
			if c.want == "" {
				if _, err := judge.New(judge.Options{Policy: []byte(c.rules)}); err == nil {
					t.Fatal("compiled")
				}
				return
			}
			f := setup(t, opt)
			ask := execBy(alice, `{"text":"[","zero":0}`)
			v := f.Evaluate(t.Context(), acme, ask)
			if v.ReasonCode != c.want {
				t.Fatalf("%s: %s", v.ReasonCode, v.Rationale)
			}
			if c.want != "r.x" && (v.Decision != judge.HITL || v.Risk != judge.Medium) {
				t.Errorf("%s at %s risk", v.Decision, v.Risk)
			}
		})
	}
	t.Run("cancelled caller", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if v := setup(t).Evaluate(ctx, acme, execBy(alice, argv("ls"))); v.Decision != judge.HITL {
			t.Errorf("%s %s", v.Decision, v.ReasonCode)
		}
	})
}

func TestBadPoliciesAreNamed(t *testing.T) {
	ok := ruleLine("a", "true", "approve")
	for want, source := range map[string]string{
		"schema":                 "rules: []\n",
		"rules: 0":               "schema: 1\nrules: []\n",
		"rules[1].id":            policy(ok, ok),
		"rules[0].id":            policy(ruleLine("A!", "true", "approve")),
		"rules.a.when":           policy(ruleLine("a", "action.kidn == 'x'", "approve")),
		"want a bool, got int":   policy(ruleLine("a", "1 + 1", "approve")),
		"Syntax error":           policy(ruleLine("a", "1 +", "approve")),
		"rules.a.decision":       policy(ruleLine("a", "true", "allow")),
		"rules.a.gates":          strings.Replace(policy(ok), "task.start", "nowhere", 1),
		"rules.a.reason_code":    strings.Replace(policy(ok), "r.a", "R a", 1),
		"rules.a.risk":           strings.Replace(policy(ok), "risk: low", "risk: none", 1),
		"rules.a.confidence":     strings.Replace(policy(ok), "risk: low", "risk: low, confidence: 1.5", 1),
		"rules.a.retry":          strings.Replace(policy(ok), "risk: low", "risk: low, retry: true", 1),
		"unknown field":          strings.Replace(policy(ok), "risk: low", "risk: low, colour: red", 1),
		"one YAML document":      policy(ok) + "---\nschema: 1\n",
		"aliases":                "schema: 1\nname: &n x\nrules:\n" + ok + "shells: [*n]\n",
		"commands.effect":        policy(ok) + "commands: [{effect: nice, names: [x]}]\n",
		"commands.names":         policy(ok) + "commands: [{effect: read, names: [/bin/x]}]\n",
		"tools.words":            policy(ok) + "tools: [{effect: read, words: [get]}]\n",
		"topics.t":               policy(ok) + "topics: [{name: t, words: ['!']}]\n",
		"at most 262144 bytes":   strings.Repeat("# padding\n", 30000),
		"policy:":                "schema: [1\n",
		"mapping key \"schema\"": "schema: 1\nschema: 1\n" + policy(ok)[10:],
	} {
		_, err := judge.New(judge.Options{Policy: []byte(source)})
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestPolicyVersionIsOfTheMeaning(t *testing.T) {
	version := func(source string) string {
		j := expect.Of(judge.New(judge.Options{Policy: []byte(source)}))(t)
		return j.PolicyVersion(acme)
	}
	a := version(policy(ruleLine("a", "true", "approve")))
	if b := version("# a comment\n" + policy(ruleLine("a", "true", "approve"))); a != b {
		t.Error("a comment changed the version")
	}
	if b := version(policy(ruleLine("a", "true", "hitl"))); a == b {
		t.Error("a decision did not change the version")
	}
	expect.Is(t, len(a), 64, "version", a)
}

func FuzzPolicy(f *testing.F) {
	f.Add(string(judge.DefaultPolicy()))
	f.Add(policy(ruleLine("a", "true", "approve")))
	f.Add("schema: 1\nrules: [{id: a}]\n")
	f.Add("a: &a [*a]\n")
	f.Add("? [\n")
	f.Fuzz(func(t *testing.T, source string) {
		j, err := judge.New(judge.Options{Policy: []byte(source)})
		if err != nil && code(err) != core.InvalidInput {
			t.Fatalf("not a clear error: %v", err)
		}
		if err == nil && len(j.PolicyVersion(acme)) != 64 {
			t.Fatal("no version")
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	f.Add(`{"argv":["sh","-c","rm -rf $(echo / ) | sh"]}`, "fs.deleteFile", "text")
	f.Add(`{"command":"a 'b \"c $( `+"`"+` > /dev/sda \\"}`, "", "health check")
	f.Add(`{"argv":["env","-u","timeout","--","find","-exec"]}`, "x", "")
	j := expect.Of(judge.New(judge.Options{}))(f)
	f.Fuzz(func(t *testing.T, args, tool, text string) {
		for _, ask := range []judge.Ask{execBy(robot, args), call(tool, args), {Gate: judge.GateResult, Text: text, Action: judge.Action{Kind: "agent.prompt", Args: core.Raw(args)}}} {
			v := j.Evaluate(t.Context(), acme, ask)
			if bad := judge.CheckArgs(core.Raw(args)); bad != nil && v.Decision != judge.Deny {
				t.Fatalf("arguments without a digest were not denied: %v", bad)
			}
		}
	})
}
