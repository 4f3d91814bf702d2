package command_test

import (
	"context"
	"errors"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
	"swarmdeck/expect"
)

// wishes is an effect that does what its arguments say.
type wishes struct{}

func (wishes) Probe(context.Context, control.Job) (control.Seen, error) { return control.Seen{}, nil }

func (wishes) Act(ctx context.Context, j control.Job) (control.Seen, error) {
	switch {
	case strings.Contains(string(j.Args), "later"):
		return control.Seen{}, errors.New("the \x1b[31mdisk\u202e is full")
	case strings.Contains(string(j.Args), "never"):
		return control.Seen{}, core.Missing("volume", "vol-9")
	}
	return control.Seen{Met: true, Result: core.Raw(`{"made":1}`)}, nil
}

func (wishes) Compensate(context.Context, control.Job) (control.Seen, error) {
	return control.Seen{Met: true}, nil
}

// intents is the part of the walk that looks after intents.
func (w *walk) intents() {
	t := w.t
	intend := func(args string) string {
		i, err := w.eng.Intents.Intend(context.Background(), core.Caller{Tenant: "t_test", Name: "alice", Kind: core.Operator, Door: core.DoorScript},
			control.Spec{AgentID: "ada", Subject: "resource:vol-1", Steps: []control.Step{{Action: "test.make", Args: core.Raw(args)}}})
		w.no(err)
		return i.IntentID
	}
	one := intend(`{}`)
	expect.Row(t, w.do("dag intent wait "+one+" --timeout 20s"), "status", "done")
	got := w.do("dag intent show " + one)
	expect.True(t, got["steps"].([]any)[0].(map[string]any)["result"].(map[string]any)["made"] == 1.0, "show: %v", got)
	never := intend(`{"never":1}`)
	code, out, _ := w.run("dag", "intent", "wait", never, "-o", "json")
	expect.True(t, code == 1 && strings.Contains(out, "NOT_FOUND"), "wait: %d %s", code, out)
	later, next := intend(`{"later":1}`), intend(`{}`)
	w.text("dag intent show "+later, "test.make")
	w.do("dag intents")
	w.text("dag intents --open", later, next, "test.make", "resource:vol-1")
	all := w.objects("dag intents --open --page 1")
	expect.True(t, len(all) == 3 && all[0]["waits_for"] == later && all[2]["total_count"] == 2.0, "open: %v", all)
	code, _, _ = w.run("dag", "intent", "wait", next, "--timeout", "10ms")
	expect.True(t, code == 4, "wait: exit %d", code)
	got = w.do("dag intent cancel " + later + " --reason enough")
	expect.True(t, got["withdrawn"] == true && strings.Contains(str(got["why"]), "alice: enough"), "cancel: %v", got)
	w.do("dag intent wait " + next)
	again := w.do("dag intent retry " + never)
	expect.Is[any](t, again["retry_of"], never, "retry", again)
	code, _, _ = w.run("dag", "intent", "wait", str(again["intent_id"]))
	expect.True(t, code == 1, "wait: exit %d", code)
	all = w.objects("dag intents --status failed --kind test.make")
	expect.True(t, len(all) == 2, "failed: %v", all)
	for line, want := range map[string]string{
		"dag intents --status over":                    "waiting, open",
		"dag intent show in_1":                         "intent_id",
		"dag intent show in_00000_0000000001":          "another tenant",
		"dag intent cancel " + one:                     "is done already",
		"dag intent retry " + one:                      "is done",
		"dag intent show " + one[:len(one)-4] + "9999": "not found",
	} {
		code := 1
		if strings.Contains(line, "--status") || strings.HasSuffix(line, "in_1") {
			code = 2
		}
		_, message, _ := w.fails(code, line)
		expect.True(t, strings.Contains(message, want), "%s: %q", line, message)
	}
}
