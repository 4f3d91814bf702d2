package judge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// writing is a grant of the robot's for its own writes.
func writing(change ...func(*judge.Grant)) judge.Grant {
	g := judge.Grant{
		Kind: "tool", Server: "exec", Tool: "fs.write", Agent: "robot", Any: []string{"*"},
		ExpiresS: 3600, MaxUses: 2, Reason: "the nightly report",
	}
	for _, fn := range change {
		fn(&g)
	}
	return g
}

func (f *fixture) request(by core.Caller, g judge.Grant) judge.Approval {
	f.t.Helper()
	a := expect.Of(f.RequestGrant(f.t.Context(), judge.Ask{By: by, TraceID: core.NewTrace(nil), Session: "se_1"}, g))(f.t)
	return a
}

func (f *fixture) granted(by core.Caller, g judge.Grant) judge.Rule {
	f.t.Helper()
	a := f.request(by, g)
	expect.Of(f.Answer(f.t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine"}))(f.t)
	return f.rule()
}

func (f *fixture) passes(ask judge.Ask) bool {
	f.t.Helper()
	return f.Evaluate(f.t.Context(), acme, ask).ReasonCode == "always.rule"
}

func TestAGrantLetsPassWhatWasAskedForUntilItIsUsedUp(t *testing.T) {
	f := setup(t)
	write := call("fs.write", `{"path":"a"}`)
	was := f.opened(write)
	expect.Of(f.Answer(t.Context(), alice, was.ApprovalID, judge.Answer{Reason: "not now"}))(t)
	a := f.request(robot, writing())
	if a.Gate != judge.GateGrant || a.Action.Kind != "grant" || a.Status != judge.Open || a.Risk != judge.Medium || a.TaskID != "" ||
		a.Agent.Name != "robot" || a.RequestedBy != "robot" || a.RuleID != "tool.write" {
		t.Errorf("%+v", a)
	}
	if want := "let agent robot call exec/fs.write with any arguments up to 2 times within 1h of the approval"; a.Subject.Headline != want {
		t.Errorf("the card says %q, want %q", a.Subject.Headline, want)
	}
	if want := `{"agent":"robot","any":["*"],"args":{},"backtest":{"checked":1,"flips":1},"expires_s":3600,"gate":"tool.call","kind":"tool",` +
		`"max_uses":2,"reason":"the nightly report","server":"exec","tool":"fs.write"}`; string(a.Action.Args) != want {
		t.Errorf("bound to %s", a.Action.Args)
	}
	if f.passes(write) {
		t.Error("it passes before a person approved it")
	}
	f.clock.pass(10 * time.Minute)
	_, err := f.Answer(t.Context(), robot, a.ApprovalID, judge.Answer{Approve: true})
	expect.Is(t, code(err), core.Denied, "an agent approved it")
	expect.Of(f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Digest: a.Digest}))(t)
	if got := f.approval(a.ApprovalID); !got.UsedAt.Equal(f.clock.Now()) {
		t.Errorf("used at %v", got.UsedAt)
	}
	r := f.rule()
	if r.ApprovalID != a.ApprovalID || r.Owner != "bob" || r.Agent != "robot" || r.Gate != judge.GateTool || r.Risk != judge.Medium ||
		!r.ExpiresAt.Equal(f.clock.Now().Add(time.Hour)) || r.Backtest != (judge.Backtest{Checked: 1, Flips: 1}) {
		t.Errorf("%+v", r)
	}
	for i := range 2 {
		d, asked := f.commit(call("fs.write", `{"path":"b"}`))
		if asked != nil || d.Decision != judge.Approve || d.RuleID != r.RuleID || f.rule().Uses != i+1 {
			t.Errorf("use %d: %+v, %d counted", i+1, d, f.rule().Uses)
		}
	}
	if d, _ := f.commit(write); d.Decision != judge.HITL {
		t.Errorf("after the last use: %s", d.Decision)
	}
	expect.Is(t, len(slices.DeleteFunc(f.events(), func(e string) bool { return e != "rule.used" })), 2, "uses are in the log")
	f.healthy()
}

func TestAGrantEndsAndIsTakenBack(t *testing.T) {
	f := setup(t)
	write := call("fs.write", `{"path":"a"}`)
	f.granted(robot, writing())
	if f.clock.pass(time.Hour - time.Second); !f.passes(write) {
		t.Error("it ended too early")
	}
	if f.clock.pass(time.Second); f.passes(write) {
		t.Error("it outlived its time")
	}
	r := f.granted(robot, writing())
	_, err := f.RevokeRule(t.Context(), robot, r.RuleID)
	expect.Is(t, code(err), core.Denied, "an agent revoked")
	if _, err := f.RevokeRule(t.Context(), alice, r.RuleID); err != nil || f.passes(write) {
		t.Errorf("it stands although it was revoked: %v", err)
	}
	f.healthy()
}

func TestAGrantThatIsDeniedOrForgottenAllowsNothing(t *testing.T) {
	live(t, func(t *testing.T, f *fixture) {
		a, late := f.request(robot, writing()), f.request(robot, writing())
		expect.Of(f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Reason: "no"}))(t)
		time.Sleep(16 * time.Minute)
		if got := f.approval(late.ApprovalID); got.Status != judge.Expired {
			t.Errorf("nobody answered, and it is %s", got.Status)
		}
		if all, err := f.Rules(t.Context(), acme); err != nil || len(all) > 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestWhatCannotBeGrantedIsRefusedAtOnce(t *testing.T) {
	f := setup(t)
	exec := func(args string, places ...string) func(*judge.Grant) {
		return func(g *judge.Grant) {
			g.Kind, g.Server, g.Tool, g.Args, g.Any = "exec.run", "", "", core.Raw(args), places
		}
	}
	for want, change := range map[string]func(*judge.Grant){
		"catastroph":          exec(`{"argv":["rm","-rf","/"]}`),
		"nothing to grant":    exec(`{"argv":["ls"]}`),
		"at high risk exact":  exec(`{"argv":["rm","-r","x"]}`, "argv.2"),
		"after its program":   exec(`{"argv":["make","x"]}`, "*"),
		"args: exec.run":      exec(`{}`),
		"args: want":          exec(`[]`),
		"tool: tool needs":    func(g *judge.Grant) { g.Tool = "" },
		"kind: ":              func(g *judge.Grant) { g.Kind = "" },
		"gate: ":              func(g *judge.Grant) { g.Gate = judge.GateResult },
		"gate: \"grant\"":     func(g *judge.Grant) { g.Gate = judge.GateGrant },
		"any: \"nowhere\"":    func(g *judge.Grant) { g.Any = []string{"nowhere"} },
		"expires: \"0s":       func(g *judge.Grant) { g.ExpiresS = 0 },
		"expires: \"2592001s": func(g *judge.Grant) { g.ExpiresS = 30*24*3600 + 1 },
		"expires: \"9223372":  func(g *judge.Grant) { g.ExpiresS = 1<<63 - 1 },
		"max_uses: 1001":      func(g *judge.Grant) { g.MaxUses = 1001 },
		"reason: ":            func(g *judge.Grant) { g.Reason = " " },
		"server: ":            func(g *judge.Grant) { g.Server = "a\nb" },
		"nothing can stand":   func(g *judge.Grant) { g.Kind = "unheard.of" },
	} {
		_, err := f.RequestGrant(t.Context(), judge.Ask{By: alice}, writing(change))
		if c := code(err); c != core.InvalidInput && (c != core.Denied || want != "catastroph") || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if open, err := f.Open(t.Context(), acme); err != nil || len(open) > 0 {
		t.Errorf("a person is asked all the same: %+v, %v", open, err)
	}
	if !slices.Contains(f.events(), "grant.refused") {
		t.Error("nothing tells of the grant below a deny rule")
	}
	f.healthy()
}

func TestAgentsAskForThemselves(t *testing.T) {
	f := setup(t)
	for name, c := range map[string]struct {
		by     core.Caller
		change func(*judge.Grant)
		want   core.Code
	}{
		"itself":             {robot, func(*judge.Grant) {}, ""},
		"the same call":      {robot, func(g *judge.Grant) { g.Any = nil }, ""},
		"its session":        {robot, func(g *judge.Grant) { g.Session = "se_1" }, ""},
		"another session":    {robot, func(g *judge.Grant) { g.Session = "se_2" }, core.Denied},
		"another agent":      {robot, func(g *judge.Grant) { g.Agent = "other" }, core.Denied},
		"everyone":           {robot, func(g *judge.Grant) { g.Agent, g.Any = "", nil }, core.Denied},
		"an operator does":   {alice, func(g *judge.Grant) { g.Agent = "" }, ""},
		"the engine doesn't": {core.Self(acme, "x"), func(*judge.Grant) {}, core.Denied},
	} {
		_, err := f.RequestGrant(t.Context(), judge.Ask{By: c.by, Session: "se_1"}, writing(c.change))
		expect.Is(t, code(err), c.want, name, err)
	}
	f.healthy()
}

func TestAGrantIsForThoseAloneWhomItNames(t *testing.T) {
	f := setup(t)
	other := call("fs.write", `{"path":"a"}`)
	other.Agent.Name = "other"
	mine, elsewhere := call("fs.write", `{"path":"a"}`), call("fs.write", `{"path":"b"}`)
	f.granted(robot, writing(func(g *judge.Grant) { g.Any, g.Args = nil, core.Raw(`{"path":"a"}`) }))
	if !f.passes(mine) || f.passes(other) || f.passes(elsewhere) {
		t.Errorf("exact, of the robot: %v %v %v", f.passes(mine), f.passes(other), f.passes(elsewhere))
	}
	f.granted(alice, writing(func(g *judge.Grant) { g.Agent = "" }))
	if !f.passes(other) || !f.passes(elsewhere) {
		t.Error("of everyone, and it lets not everyone pass")
	}
}

// A command goes to no agent: it is that of the agent which dispatched it.
func TestAnAgentIsGrantedWhatItDispatches(t *testing.T) {
	f := setup(t)
	f.granted(robot, writing(func(g *judge.Grant) {
		g.Kind, g.Server, g.Tool, g.Args, g.Any = "exec.run", "", "", core.Raw(argv("make all")), []string{"argv.1"}
	}))
	mine, other := execBy(robot, argv("make build")), execBy(named(robot, "other"), argv("make build"))
	mine.Agent.Name, other.Agent.Name = "", ""
	if r := f.rule(); r.Gate != judge.GateStart || !f.passes(mine) || f.passes(other) || f.passes(execBy(robot, argv("go build"))) {
		t.Errorf("%+v: %v, of another %v", r, f.passes(mine), f.passes(other))
	}
	if mine.Action.Args = core.Raw(argv("make rm")); !f.passes(mine) {
		t.Error("another target of make")
	}
	if mine.Risk = judge.High; f.passes(mine) {
		t.Error("it stands at a higher risk than it was granted at")
	}
}

func TestAnEditNarrowsAGrant(t *testing.T) {
	f := setup(t)
	a := f.request(robot, writing())
	for field, edit := range map[string]string{
		"max_uses": `{"max_uses":3}`, "expires_s": `{"expires_s":3601}`, "any": `{"any":["path"]}`, "tool": `{"tool":"fs.delete"}`, "agent": `{"agent":"other"}`,
		"kind": `{"kind":"exec.run"}`, "gate": `{"gate":"task.start"}`, "session_id": `{"session_id":"se_1"}`, "reason": `{"reason":"mine"}`, "nope": `{"nope":1}`,
		"effects": `{"effects":["write"]}`, "server": `{"server":""}`, "args": `{"args":7}`, "expires": `{"expires_s":0}`,
	} {
		_, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "x", Edit: core.Raw(edit)})
		if code(err) != core.InvalidInput || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", edit, err)
		}
	}
	got, err := f.Answer(t.Context(), bob, a.ApprovalID, judge.Answer{Approve: true, Reason: "once", Edit: core.Raw(`{"any":[],"args":{"path":"a"},"max_uses":1,"expires_s":90}`)})
	if err != nil || got.PriorDigest != a.Digest || got.Subject.Headline != "let agent robot call exec/fs.write with path=\"a\" up to 1 time within 1m30s of the approval" {
		t.Errorf("%+v, %v", got, err)
	}
	if r := f.rule(); r.MaxUses != 1 || len(r.Any) > 0 || r.Agent != "robot" || r.ExpiresAt.Sub(r.CreatedAt) != 90*time.Second {
		t.Errorf("%+v", r)
	}
	if f.passes(call("fs.write", `{"path":"b"}`)) || !f.passes(call("fs.write", `{"path":"a"}`)) {
		t.Error("it allows what it did before it was narrowed")
	}
	f.healthy()
}
