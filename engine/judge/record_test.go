package judge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// The digest is of the document that the contract names.
func TestDigestIsOfTheCanonicalDocument(t *testing.T) {
	ask := call("to\"ol\u2028", `{"b":[1.0,1e2,"\u00e9"],"a":{"z":null,"\ud83d\ude00":true}}`)
	ask.Agent.Name, ask.TaskID = "a\tgent", "tk_x"
	got := expect.Of(judge.Digest(acme, "v1", ask))(t)
	want, err := core.Digest(map[string]any{
		"action": map[string]any{
			"gate": ask.Gate, "kind": ask.Action.Kind, "server": ask.Action.Server, "tool": ask.Action.Tool,
			"call_id": ask.Action.CallID, "agent": ask.Agent.Name,
		},
		"arguments": ask.Action.Args, "attempt": ask.Attempt, "policy_version": "v1", "task": "tk_x", "tenant": acme,
	})
	if err != nil || got != want {
		t.Errorf("digest %s, want %s (%v)", got, want, err)
	}
}

// The swarm knows a task's id only inside the transaction.
func TestCommitBindsTheTaskThatEvaluateDidNotKnow(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, rmBuild)
	ask.TaskID = ""
	v := f.Evaluate(t.Context(), acme, ask)
	expect.Is(t, v.Digest, "", "a digest without a task")
	ask.TaskID = taskID
	var d judge.GateDecision
	err := f.ledger.Update(t.Context(), robot, func(tx *audit.Tx) (err error) {
		d, _, err = f.Commit(tx, ask, v)
		return err
	})
	want, _ := judge.Digest(acme, f.PolicyVersion(acme), ask)
	if err != nil || d.Digest != want {
		t.Errorf("digest %s, want %s (%v)", d.Digest, want, err)
	}
}

func TestCommitTakesOnlyTheVerdictOfItsAsk(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, argv("ls"))
	v := f.Evaluate(t.Context(), acme, ask)
	other := f.Evaluate(t.Context(), acme, execBy(robot, `{"n":1e400}`))
	expect.Is(t, other.Decision, judge.Deny, "unbindable arguments")
	swapped, later := ask, ask
	swapped.Action.Args = core.Raw(argv("rm x"))
	later.Attempt++
	for name, c := range map[string]struct {
		ask judge.Ask
		v   judge.Verdict
	}{
		"other arguments":      {swapped, v},
		"another attempt":      {later, v},
		"a verdict of no one":  {ask, judge.Verdict{Decision: judge.Approve, PolicyVersion: v.PolicyVersion}},
		"unbindable arguments": {execBy(robot, `{"n":1e400}`), other},
	} {
		err := f.ledger.Update(t.Context(), robot, func(tx *audit.Tx) error {
			_, _, err := f.Commit(tx, c.ask, c.v)
			return err
		})
		expect.Fails(t, err, name)
	}
	for _, args := range []string{`{"n":9007199254740993.0}`, `{"n":1e400}`, `[]`, `{`, `{"a":1,"a":2}`, `"x"`, `{} {}`} {
		expect.Is(t, code(judge.CheckArgs(core.Raw(args))), core.InvalidInput, args)
	}
	expect.No(t, judge.CheckArgs(nil), "no arguments")
}

// Every field of a decision comes back as it was recorded.
func TestDecisionsReadAsTheyWereMade(t *testing.T) {
	f := setup(t)
	confidence := 0.75
	ask := execBy(robot, `{}`)
	ask.Gate, ask.Confidence, ask.Session, ask.Agent.Name = judge.GateResult, &confidence, "se_1", `ro"bot`
	var made []judge.GateDecision
	keep := func(d judge.GateDecision, _ *judge.Approval) { made = append(made, d) }
	keep(f.commit(ask))
	keep(f.commit(execBy(alice, argv("ls"))))
	keep(f.commit(execBy(alice, argv("rm -rf /"))))
	keep(f.commit(execBy(core.Self(acme, "x"), argv("nothing"))))
	for _, d := range made {
		got := f.decision(d.DecisionID)
		a, b := core.MustEncode(got), core.MustEncode(d)
		expect.Is(t, string(a), string(b), "read", a, "made", b)
		if d.Rationale == "" || d.PolicyVersion == "" || d.TenantID != acme || d.CreatedAt.IsZero() {
			t.Errorf("incomplete: %s", a)
		}
	}
}

// A task's ordinary approval costs no event of its own, and still is in the log.
func TestAnApproveByPolicyIsFoldedIntoTheCallersEvent(t *testing.T) {
	f := setup(t)
	d, _ := f.commit(execBy(alice, argv("ls")))
	expect.Is(t, count(f.events(), "judge.outcome"), 0, "events of its own")
	page, err := f.ledger.List(t.Context(), acme, core.Filter{Kind: "task.queued"})
	if err != nil || len(page.Items) != 1 {
		t.Fatal(page, err)
	}
	var payload struct {
		Detail map[string]string `json:"detail"`
	}
	expect.No(t, json.Unmarshal(page.Items[0].Payload, &payload))
	for name, want := range map[string]string{
		"decision_id": d.DecisionID, "decision": "approve", "reason_code": "exec.read_only", "rule_id": "exec.read-only", "digest": d.Digest,
	} {
		expect.Is(t, payload.Detail[name], want, name, "is")
	}
	f.commit(execBy(alice, argv("rm -rf /")))
	f.commit(execBy(robot, rmBuild))
	f.commit(call("read_file", `{}`))
	expect.Is(t, count(f.events(), "judge.outcome"), 3, "events for a denial, an ask and a tool call")
	expect.Is(t, count(f.events(), "policy.active"), 1, "events about one policy")
	f.healthy()
}

func TestListsPageFilterAndCount(t *testing.T) {
	f := setup(t)
	start := f.clock.Now()
	for i := range 50 {
		ask := execBy(alice, argv("ls"))
		if i%10 == 0 {
			ask = execBy(robot, argv("make"))
		}
		if i == 33 {
			ask = execBy(alice, argv("rm -rf /"))
		}
		ask.TaskID = fmt.Sprintf("tk_%05d", i)
		f.commit(ask)
		f.clock.pass(time.Second)
	}
	for name, c := range map[string]struct {
		f     core.Filter
		total int
		first string
	}{
		"all":           {core.Filter{}, 50, "tk_00049"},
		"third page":    {core.Filter{Page: 3}, 50, "tk_00009"},
		"past the end":  {core.Filter{Page: 9}, 50, ""},
		"approve":       {core.Filter{Status: "approve"}, 44, "tk_00049"},
		"hitl":          {core.Filter{Status: "hitl"}, 5, "tk_00040"},
		"deny":          {core.Filter{Status: "deny"}, 1, "tk_00033"},
		"two":           {core.Filter{Agent: "robot,other"}, 5, "tk_00040"},
		"agent":         {core.Filter{Agent: "robot"}, 5, "tk_00040"},
		"task":          {core.Filter{Task: "tk_00012"}, 1, "tk_00012"},
		"kind":          {core.Filter{Kind: "exec.run", Size: 1}, 50, "tk_00049"},
		"no such kind":  {core.Filter{Kind: "exec"}, 0, ""},
		"match":         {core.Filter{Match: "CATASTROPH"}, 1, "tk_00033"},
		"since":         {core.Filter{Since: start.Add(45 * time.Second)}, 5, "tk_00049"},
		"until":         {core.Filter{Until: start.Add(9 * time.Second)}, 10, "tk_00009"},
		"between":       {core.Filter{Since: start.Add(10 * time.Second), Until: start.Add(19 * time.Second)}, 10, "tk_00019"},
		"between, hitl": {core.Filter{Since: start.Add(10 * time.Second), Until: start.Add(19 * time.Second), Status: "hitl"}, 1, "tk_00010"},
		"never":         {core.Filter{Since: start.Add(time.Hour)}, 0, ""},
	} {
		page, err := f.Decisions(t.Context(), acme, c.f)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		first := ""
		if len(page.Items) > 0 {
			first = page.Items[0].TaskID
		}
		if page.Info.Total != c.total || first != c.first {
			t.Errorf("%s: %d in all, first %q; want %d, %q", name, page.Info.Total, first, c.total, c.first)
		}
	}
	for name, c := range map[string]struct {
		f     core.Filter
		total int
	}{
		"open": {core.Filter{Status: "open"}, 5}, "none denied": {core.Filter{Status: "denied"}, 0},
		"all": {core.Filter{}, 5}, "agent": {core.Filter{Agent: "robot", Status: "open"}, 5}, "match": {core.Filter{Match: "make"}, 5},
	} {
		page, err := f.Approvals(t.Context(), acme, c.f)
		if err != nil || page.Info.Total != c.total {
			t.Errorf("approvals, %s: %d, %v", name, page.Info.Total, err)
		}
	}
	_, err := f.Decisions(t.Context(), acme, core.Filter{Status: "maybe"})
	expect.Is(t, code(err), core.InvalidInput, "a status that is none")
	_, err = f.Approvals(t.Context(), acme, core.Filter{Status: "maybe"})
	expect.Is(t, code(err), core.InvalidInput, "a status that is none")
}

func TestPastIsOfTheSameShape(t *testing.T) {
	f := setup(t)
	answer := func(ask judge.Ask, yes bool) judge.Approval {
		a := f.opened(ask)
		got := expect.Of(f.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: yes, Reason: "r"}))(t)
		return got
	}
	first := answer(execBy(robot, argv("make build")), true)
	second := answer(execBy(robot, argv("make test")), false)
	answer(execBy(robot, argv("go build")), true)
	answer(call("make", `{}`), true)
	a := f.opened(execBy(robot, argv("make lint")))
	past, err := f.Past(t.Context(), acme, a, 5)
	if err != nil || len(past) != 2 || past[0].ApprovalID != second.ApprovalID || past[1].ApprovalID != first.ApprovalID || past[0].Status != judge.Refused {
		t.Errorf("past: %+v, %v", past, err)
	}
	if past, _ = f.Past(t.Context(), acme, a, 1); len(past) != 1 {
		t.Errorf("asked for 1, got %d", len(past))
	}
	if past, _ = f.Past(t.Context(), acme, second, 5); len(past) != 1 || past[0].ApprovalID != first.ApprovalID {
		t.Errorf("its own past: %+v", past)
	}
}

func TestHostileTextIsKeptBounded(t *testing.T) {
	f := setup(t)
	ask := execBy(robot, rmBuild)
	ask.Intent = strings.Repeat("x\x1b]52;c;\xff", 1000)
	ask.Agent.Name = "robot"
	a := f.approval(f.opened(ask).ApprovalID)
	if len(a.Intent) > 1100 || strings.Contains(a.Intent, "\xff") {
		t.Errorf("intent of %d bytes", len(a.Intent))
	}
}
