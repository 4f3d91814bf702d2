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
	if got := w.do("dag intent show " + one); got["steps"].([]any)[0].(map[string]any)["result"].(map[string]any)["made"] != 1.0 {
		t.Errorf("show: %v", got)
	}
	never := intend(`{"never":1}`)
	if code, out, _ := w.run("dag", "intent", "wait", never, "-o", "json"); code != 1 || !strings.Contains(out, "NOT_FOUND") {
		t.Errorf("wait: %d %s", code, out)
	}
	later, next := intend(`{"later":1}`), intend(`{}`)
	w.text("dag intent show "+later, "test.make")
	w.do("dag intents")
	w.text("dag intents --open", later, next, "test.make", "resource:vol-1")
	if all := w.objects("dag intents --open --page 1"); len(all) != 3 || all[0]["waits_for"] != later || all[2]["total_count"] != 2.0 {
		t.Errorf("open: %v", all)
	}
	if code, _, _ := w.run("dag", "intent", "wait", next, "--timeout", "10ms"); code != 4 {
		t.Errorf("wait: exit %d", code)
	}
	if got := w.do("dag intent cancel " + later + " --reason enough"); got["withdrawn"] != true || !strings.Contains(str(got["why"]), "alice: enough") {
		t.Errorf("cancel: %v", got)
	}
	w.do("dag intent wait " + next)
	again := w.do("dag intent retry " + never)
	expect.Is[any](t, again["retry_of"], never, "retry", again)
	if code, _, _ := w.run("dag", "intent", "wait", str(again["intent_id"])); code != 1 {
		t.Errorf("wait: exit %d", code)
	}
	if all := w.objects("dag intents --status failed --kind test.make"); len(all) != 2 {
		t.Errorf("failed: %v", all)
	}
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
		if _, message, _ := w.fails(code, line); !strings.Contains(message, want) {
			t.Errorf("%s: %q", line, message)
		}
	}
}
