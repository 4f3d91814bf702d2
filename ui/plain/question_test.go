package plain_test

import (
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// asked puts a question and returns where what came of it is told.
func (d *desk) asked(q judge.Question) <-chan judge.Outcome {
	d.t.Helper()
	args := expect.Of(q.Args())(d.t)
	self := core.Self(tenant, "mcp")
	told := make(chan judge.Outcome, 1)
	go func() {
		r, _ := d.eng.Fleet.Ask(d.t.Context(), judge.Request{
			By: self, GivesUp: true,
			Ask: judge.Ask{
				Gate: judge.GateQuestion, TraceID: core.NewTrace(nil), By: self, Intent: q.Message,
				Action: judge.Action{Kind: judge.KindQuestion, Server: "files", Args: args},
			},
			Record: func(*audit.Tx, judge.Step) error { return nil },
		})
		told <- r
	}()
	return told
}

func TestAQuestionIsAnsweredByALineOfJSONOrANumber(t *testing.T) {
	d := sit(t, false)
	told := d.asked(judge.Question{Message: "Who?", Schema: core.Raw(`{"properties":{"name":{"type":"string","minLength":2}},"required":["name"]}`)})
	d.hears("waits: answer files's question")
	d.says("answer")
	d.hears("1. answer it")
	d.says("1")
	d.hears("field: name; string; required")
	d.says(`{"name":"A"}`)
	d.hears("1 characters is not allowed; allowed: 2 or more")
	d.hears("left open")
	d.says("answer", "1", `{"name":"Ada"}`)
	r := <-told
	expect.True(t, r.Approved && string(r.Content) == `{"name":"Ada"}`, "%+v", r)
	told = d.asked(judge.Question{Message: "How?", Options: []judge.Option{{ID: "a", Label: "All\nat once"}, {ID: "b", Label: "Bit by bit"}}})
	d.hears("waits: answer files's question")
	d.says("answer")
	d.hears("1. answer: All at once (a)")
	d.says("2")
	r = <-told
	expect.True(t, string(r.Content) == `{"option":"b"}`, "%+v", r)
	told = d.asked(judge.Question{Message: "Sure?"})
	d.hears("waits: answer files's question")
	d.says("answer", "2", "I am not")
	r = <-told
	expect.True(t, !r.Approved && r.Reason == "I am not", "%+v", r)
	d.hears("state: denied")
	d.in.Close()
	<-d.over
}
