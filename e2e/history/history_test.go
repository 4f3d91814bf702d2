package history

import (
	"testing"
	"time"

	"swarmdeck/expect"
)

// line is one call of a hand-made history; from and to are in seconds.
func line(client int, verb Verb, from, to time.Duration, a Answer) Call {
	op := Op{Verb: verb, Key: "k"}
	switch verb {
	case Begin, Work, End:
		op.ID = "run1"
	case Approve, Deny, ShowApproval:
		op.ID = "ap1"
	}
	return Call{client, op, a, from * time.Second, to * time.Second}
}

// asks has the task of some calls need an approval.
func asks(calls ...Call) []Call {
	for i := range calls {
		calls[i].Op.Asks = true
	}
	return calls
}

// of names the run or the approval of a call.
func (c Call) of(id string) Call {
	c.Op.ID = id
	return c
}

func done(status string) Answer { return Answer{Outcome: Done, Task: "tk1", Status: status} }

func verdict(o Outcome, v string) Answer { return Answer{Outcome: o, Verdict: v} }

func TestHistoriesThatOneOrderExplainsAreAccepted(t *testing.T) {
	t.Parallel()
	lost, begun := Answer{}, Answer{Outcome: Done}
	waiting := Answer{Outcome: Done, Task: "tk1", Status: "queued", Approval: "ap1"}
	stopping := Answer{Outcome: Done, Task: "tk1", Status: "running", Stopping: true}
	for name, calls := range map[string][]Call{
		"a life": {
			line(0, Dispatch, 0, 1, done("queued")), line(0, Begin, 2, 2, begun), line(1, Show, 2, 3, done("running")),
			line(0, End, 4, 4, begun), line(1, Show, 3, 6, done("running")), line(2, Show, 4, 5, done("succeeded")),
		},
		"a dispatch nobody heard of that happened":     {line(0, Dispatch, 0, 0, lost), line(1, Dispatch, 5, 6, done("running"))},
		"a dispatch nobody heard of that did not":      {line(0, Dispatch, 0, 0, lost), line(1, StopShow, 5, 6, Answer{Outcome: Done})},
		"a dispatch twice":                             {line(0, Dispatch, 0, 4, done("queued")), line(1, Dispatch, 1, 2, done("queued"))},
		"work cut off by a crash and done by the next": {line(0, Dispatch, 0, 1, done("queued")), line(0, Begin, 1, 2, begun), line(0, Show, 3, 4, done("queued")), line(0, Begin, 5, 6, begun).of("run2"), line(0, Work, 6, 7, begun).of("run2"), line(0, End, 7, 8, begun).of("run2"), line(0, Show, 9, 10, done("succeeded"))},
		"a cancellation nobody heard of": {
			line(0, Dispatch, 0, 1, done("queued")), line(1, Cancel, 2, 0, lost), line(0, Show, 3, 4, done("running")), line(0, Show, 20, 21, done("cancelled")),
		},
		"a cancellation of a run": {
			line(0, Dispatch, 0, 1, done("queued")), line(0, Begin, 1, 2, begun), line(1, Cancel, 2, 3, stopping),
			line(2, Cancel, 3, 4, Answer{Outcome: Refused, Stopping: true}), line(0, Show, 5, 6, done("cancelled")),
		},
		"a cancellation too late": {
			line(0, Dispatch, 0, 1, done("queued")), line(0, Begin, 1, 2, begun), line(0, End, 3, 3, begun),
			line(1, Cancel, 2, 4, Answer{Outcome: Refused, Status: "succeeded"}),
		},
		"approved, then asked anew after a crash": asks(
			line(0, Dispatch, 0, 1, waiting), line(1, ShowApproval, 1, 2, verdict(Done, "open")), line(1, Approve, 2, 3, verdict(Done, "approved")), line(0, Begin, 3, 4, begun),
			line(1, Show, 5, 6, Answer{Outcome: Done, Task: "tk1", Status: "queued", Approval: "ap2"}), line(1, Approve, 7, 8, verdict(Done, "approved")).of("ap2"),
			line(0, Begin, 9, 9, begun).of("run2"), line(0, End, 9, 10, begun).of("run2")),
		"asked anew after a crash, then cancelled": asks(
			line(0, Dispatch, 0, 1, waiting), line(1, Approve, 2, 3, verdict(Done, "approved")), line(0, Begin, 3, 4, begun), line(0, End, 4, 5, begun),
			line(2, Cancel, 7, 8, Answer{Outcome: Done, Task: "tk1", Status: "cancelled", Approval: "ap2"}), line(1, ShowApproval, 9, 10, verdict(Done, "void")).of("ap2"),
			line(1, Show, 11, 12, Answer{Outcome: Done, Task: "tk1", Status: "cancelled", Approval: "ap2"})),
		"denied, and the other is told": asks(
			line(0, Dispatch, 0, 1, waiting), line(1, Deny, 2, 5, verdict(Done, "denied")), line(2, Approve, 3, 6, verdict(Refused, "denied")), line(0, Show, 4, 7, done("blocked"))),
		"a deadline":        asks(line(0, Dispatch, 0, 1, waiting), line(2, Approve, 3, 6, verdict(Refused, "expired")), line(0, Show, 7, 8, done("blocked"))),
		"a stop":            {line(0, StopOn, 0, 1, begun), line(1, StopShow, 2, 3, Answer{Outcome: Done, On: true}), line(0, StopOff, 3, 5, begun), line(0, Start, 2, 4, begun), line(1, StopOff, 5, 6, Answer{Outcome: Refused})},
		"a stop unheard of": {line(0, StopOn, 0, 0, lost), line(1, StopShow, 2, 3, Answer{Outcome: Done}), line(1, StopShow, 4, 5, Answer{Outcome: Done, On: true})},
	} {
		t.Run(name, func(t *testing.T) {
			expect.No(t, Check(calls, time.Minute))
		})
	}
}

func TestHistoriesThatNoOrderExplainsAreRefused(t *testing.T) {
	t.Parallel()
	lost, begun := Answer{}, Answer{Outcome: Done}
	waiting := Answer{Outcome: Done, Task: "tk1", Status: "queued", Approval: "ap1"}
	dispatched, ended := line(0, Dispatch, 0, 1, done("queued")), line(0, End, 3, 3, begun)
	ran := []Call{dispatched, line(0, Begin, 2, 2, begun), ended}
	for name, calls := range map[string][]Call{
		"an acknowledged dispatch that is lost":        {dispatched, line(1, Show, 2, 3, Answer{Outcome: Refused})},
		"one made a second time":                       {dispatched, line(1, Dispatch, 2, 3, Answer{Outcome: Done, Task: "tk2", Status: "queued"})},
		"work that nobody asked for":                   {line(0, Begin, 0, 1, begun), line(0, Dispatch, 2, 3, done("running"))},
		"a stale read":                                 append(ran[:3:3], line(1, Show, 4, 5, done("succeeded")), line(2, Show, 6, 7, done("running"))),
		"an end that changes":                          append(ran[:3:3], line(1, Show, 4, 5, done("succeeded")), line(2, Show, 6, 7, done("cancelled"))),
		"complete and cancel, both acknowledged":       append(ran[:3:3], line(1, Show, 4, 5, done("succeeded")), line(1, Cancel, 3, 6, done("cancelled"))),
		"a success whose work never ended":             {dispatched, line(0, Begin, 2, 2, begun), line(1, Show, 4, 5, done("succeeded"))},
		"a failure of what does not fail":              append(ran[:3:3], line(1, Show, 4, 5, done("failed"))),
		"a cancellation that nobody asked for":         {dispatched, line(1, Show, 4, 5, done("cancelled"))},
		"a cancelled task that begins":                 {dispatched, line(1, Cancel, 2, 3, done("cancelled")), line(0, Begin, 4, 4, begun)},
		"a cancellation that is forgotten":             {dispatched, line(1, Cancel, 2, 3, Answer{Outcome: Done, Task: "tk1", Status: "running", Stopping: true}), line(1, Show, 4, 5, done("running"))},
		"a cancellation acknowledged twice":            {dispatched, line(1, Cancel, 2, 3, done("cancelled")), line(2, Cancel, 2, 5, done("cancelled"))},
		"a cancellation refused for a success to come": {dispatched, line(1, Cancel, 2, 2, Answer{Outcome: Refused, Status: "succeeded"}), line(0, Begin, 3, 3, begun)},
		"a former worker that goes on":                 {dispatched, line(0, Begin, 2, 2, begun), line(0, Begin, 3, 3, begun).of("run2"), line(0, End, 4, 4, begun)},
		"a former worker that woke":                    {dispatched, line(0, Begin, 2, 2, begun), line(0, Begin, 3, 3, begun).of("run2"), line(0, Work, 4, 4, begun)},
		"work after its end":                           append(ran[:3:3], line(0, Work, 4, 5, begun)),
		"two approvals of one":                         asks(line(0, Dispatch, 0, 1, waiting), line(1, Approve, 2, 5, verdict(Done, "approved")), line(2, Approve, 3, 6, verdict(Done, "approved"))),
		"approved and denied":                          asks(line(0, Dispatch, 0, 1, waiting), line(1, Approve, 2, 5, verdict(Done, "approved")), line(2, Deny, 3, 6, verdict(Done, "denied"))),
		"an answer refused for one to come":            asks(line(0, Dispatch, 0, 1, waiting), line(1, Approve, 2, 3, verdict(Refused, "denied")), line(2, Deny, 4, 6, verdict(Done, "denied"))),
		"an approval that is forgotten":                asks(line(0, Dispatch, 0, 1, waiting), line(1, Approve, 2, 3, verdict(Done, "approved")), line(2, ShowApproval, 4, 6, verdict(Done, "open"))),
		"work without its approval":                    asks(line(0, Dispatch, 0, 1, waiting), line(0, Begin, 2, 3, begun), line(1, Approve, 4, 5, verdict(Done, "approved"))),
		"work that was denied":                         asks(line(0, Dispatch, 0, 1, waiting), line(1, Deny, 2, 0, lost), line(1, ShowApproval, 3, 4, verdict(Done, "denied")), line(0, Begin, 5, 6, begun)),
		"an approval of a cancelled task":              asks(line(0, Dispatch, 0, 1, waiting), line(1, Cancel, 2, 3, done("cancelled")), line(1, Approve, 4, 5, verdict(Done, "approved"))),
		"a start in a stop":                            {line(0, StopOn, 0, 1, begun), line(0, Start, 2, 3, begun), line(0, StopOff, 4, 5, begun)},
		"a stop that is forgotten":                     {line(0, StopOn, 0, 1, begun), line(0, StopShow, 2, 3, Answer{Outcome: Done})},
		"a stop that nobody pressed":                   {line(0, StopShow, 2, 3, Answer{Outcome: Done, On: true})},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Says(t, Check(calls, time.Minute), "no order explains", "accepted")
		})
	}
}

func TestManyStartsThatWaitForOneStopTakeNoLongerThanOne(t *testing.T) {
	t.Parallel()
	begun := Answer{Outcome: Done}
	calls := []Call{line(0, StopOn, 0, 1000, begun)}
	for n := range time.Duration(100) {
		calls = append(calls, line(1, Start, 10+n, 3000+n, begun))
	}
	expect.No(t, Check(append(calls, line(0, StopOff, 2000, 2001, begun), line(0, StopShow, 2002, 2003, Answer{Outcome: Done})), time.Minute))
	calls = append(calls, line(2, Start, 1500, 1501, begun), line(0, StopShow, 1400, 1401, Answer{Outcome: Done, On: true}), line(0, StopOff, 2000, 2001, begun))
	expect.Says(t, Check(calls, time.Minute), "no order explains", "a start in the stop is accepted")
}

func TestACallThatNobodyHeardOfStaysOpen(t *testing.T) {
	t.Parallel()
	now := time.Duration(0)
	r := Recorder{Now: func() time.Duration { now += time.Second; return now }}
	r.Ask(1, Op{Verb: Dispatch, Key: "k"})(Answer{})
	r.Ask(2, Op{Verb: Dispatch, Key: "k"})(done("queued"))
	calls := r.Calls()
	expect.Must(t, len(calls) == 2 && calls[0].From < calls[0].To && calls[0].To < calls[1].From, "%v", calls)
	expect.No(t, Check(calls, time.Minute))
	expect.Is(t, calls[0].String(), "1s to …, client 1: dispatch : unknown")
}
