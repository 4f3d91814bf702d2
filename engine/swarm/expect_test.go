package swarm_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// expecting dispatches tasks that are tried once, and must come to something.
func expecting(e task.Expect) func(*swarm.Dispatch) {
	return func(d *swarm.Dispatch) { d.Expect, d.MaxAttempts = &e, new(1) }
}

func TestAnOutputIsHeldToWhatWasAskedFor(t *testing.T) {
	schema := core.Raw(`{"type":"object","required":["files"],"properties":{"files":{"type":"array","items":{"type":"string"}}}}`)
	for _, c := range []struct {
		name   string
		expect task.Expect
		output string
		want   task.Status
		why    string
	}{
		{"by its schema", task.Expect{Schema: schema}, `{"files":["a"]}`, task.Succeeded, ""},
		{"not by its schema", task.Expect{Schema: schema}, `{"files":[1]}`, task.Failed, "output.files"},
		{"by its criterion", task.Expect{Success: "output.rc == 0"}, `{"rc":0}`, task.Succeeded, ""},
		{"not by its criterion", task.Expect{Success: "output.rc == 0"}, `{"rc":2}`, task.Failed, "output.rc == 0 is not true"},
		{"by a criterion that can't be told", task.Expect{Success: "output.rc == 0"}, `{}`, task.Failed, "no such key"},
		{"by both", task.Expect{Schema: schema, Success: "size(output.files) > 1"}, `{"files":["a"]}`, task.Failed, "size(output.files) > 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			id := r.dispatch(`{}`, expecting(c.expect)).TaskID
			r.complete(r.claim(), ok(c.output))
			got := r.status(id, c.want)
			res, err := r.tasks.Result(t.Context(), acme, id)
			if err != nil || c.why != "" && (res.Error == nil || res.Error.Code != "result_unexpected" || !strings.Contains(res.Error.Message, c.why)) {
				t.Errorf("%+v, %v; feedback %q", res, err, got.Feedback)
			}
			r.whole()
		})
	}
}

func TestAnUnexpectedOutputIsTriedAgainWithWhyItIsNot(t *testing.T) {
	r := newRig(t)
	id := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Expect = &task.Expect{Success: "output.rc == 0"} }).TaskID
	res := r.complete(r.claim(), ok(`{"rc":1}`))
	expect.Must(t, res.Status == task.Queued, "%+v", res)
	got := r.task(id)
	expect.Must(t, got.Attempt == 1 && strings.Contains(got.Feedback, "output.rc == 0") && got.Expect != nil, "%+v", got)
	r.whole()
}

func TestABadExpectationIsRefused(t *testing.T) {
	r := newRig(t)
	for field, e := range map[string]task.Expect{
		"result_schema": {Schema: core.Raw(`{"type":"array"}`)},
		"success":       {Success: "output.rc +"},
	} {
		_, err := r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "test", Input: core.Raw(`{}`), Expect: &e})
		expect.True(t, core.AsError(err).Code == core.InvalidInput && strings.Contains(err.Error(), field), "%s: %v", field, err)
	}
}
