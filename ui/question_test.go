package ui

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// asked is a rig whose one approval is a question.
func asked(t *testing.T, q judge.Question) *rig {
	t.Helper()
	args := expect.Of(q.Args())(t)
	a := approval(1, judge.Low, q.Message, string(args))
	a.Gate, a.Action.Kind, a.Action.Server, a.Action.Tool, a.Agent = judge.GateQuestion, judge.KindQuestion, "files", "", judge.AgentRef{}
	a.Subject = reads().Subject(tenant, a.Gate, &a.Action, &a.Agent)
	r := newRig(t, 120, 40)
	r.change(func() { r.w.approvals = []*judge.Approval{a} })
	r.keys("3", "enter")
	r.wait(deadTime)
	return r
}

func TestAQuestionIsAnsweredInAFormOfItsSchema(t *testing.T) {
	r := asked(t, judge.Question{Message: "Who are you?", Schema: core.Raw(
		`{"properties":{"name":{"type":"string","minLength":2},"hero":{"type":"string","oneOf":[{"const":"h1","title":"Superman"},{"const":"h2","title":"Green Lantern"}],"default":"h2"}},"required":["name"]}`)})
	r.has("answer files's question")
	r.press("a")
	r.has("name")
	r.press("tab")
	r.has("h1: Superman")
	r.press("tab")
	r.typeText("A")
	r.press("enter")
	r.ranNothing()
	r.has("1 characters is not allowed")
	r.typeText("da")
	r.press("enter")
	r.ranNothing() // Enter never approves
	r.wait(deadTime)
	r.press("y")
	if len(r.ran) != 1 || !strings.HasPrefix(r.ran[0], "approval approve ap_") || !strings.Contains(r.ran[0], "--digest "+r.w.approvals[0].Digest) || !strings.HasSuffix(r.ran[0], `--content {"name":"Ada","hero":"h2"}`) {
		t.Errorf("ran %q", r.ran)
	}
}

func TestAQuestionWithOptionsIsAnsweredFromAMenu(t *testing.T) {
	r := asked(t, judge.Question{Message: "How?", Options: []judge.Option{{ID: "a", Label: "All\nat once"}, {ID: "b", Label: "Bit by bit"}}})
	r.press("a")
	r.has("All at once (a)")
	r.press("down")
	r.press("enter")
	r.ranNothing()
	r.wait(deadTime)
	r.press("y")
	expect.True(t, len(r.ran) == 1 && strings.HasSuffix(r.ran[0], `--content {"option":"b"}`), "ran %q", r.ran)
}
