package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// asking sets up bob, who calls a tool once for each task.
func asking(t *testing.T, e fleet.Event) (*world, chan fleet.ToolAnswer) {
	t.Helper()
	w := newWorld(t).run()
	answers := make(chan fleet.ToolAnswer, 16)
	w.rt.does(call(e, answers))
	w.create("bob")
	return w, answers
}

var write = fleet.Event{CallID: "c1", Tool: "write", Args: core.Raw(`{"path":"a.txt","text":"hi"}`), Intent: "write a\nfile"}

// tells has the agent bob tell of events in one task, and returns what it was
// answered to each.
func (w *world) tells(events ...fleet.Event) (answers []fleet.ToolAnswer) {
	w.T.Helper()
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		for _, e := range events {
			a, err := p.Emit(ctx, e)
			if err != nil {
				return task.Outcome{}, err
			}
			answers = append(answers, a)
		}
		return done(ctx, h, p)
	})
	w.create("bob")
	w.result(w.assign("bob", "x").TaskID)
	return answers
}

func TestCallAllowedByRuleIsAnsweredAtOnce(t *testing.T) {
	w, answers := asking(t, fleet.Event{CallID: "c1", Tool: "read", Args: core.Raw(`{"path":"x"}`)})
	tk := w.assign("bob", "x")
	a := <-answers
	expect.True(t, a.Decision == "approve" && a.CallID == "c1" && string(a.Args) == `{"path":"x"}`, "answer: %+v", a)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded && len(r.Denials) == 0, "result: %+v", r)
	expect.Is(t, len(w.events("tool.requested")), 1, "events of the request")
}

func TestCallDeniedByRuleIsToldAndCounted(t *testing.T) {
	w, answers := asking(t, fleet.Event{CallID: "c1", Tool: "remove"})
	tk := w.assign("bob", "x")
	a := <-answers
	expect.True(t, a.Decision == "deny" && a.Reason == "never remove", "answer: %+v", a)
	r := w.result(tk.TaskID)
	expect.Must(t, r.Status == task.Succeeded && len(r.Denials) == 1, "result: %+v", r)
	d, err := w.judge.Decision(t.Context(), home, r.Denials[0])
	expect.True(t, err == nil && d.Decision == judge.Deny && d.Agent == "bob" && d.TaskID == tk.TaskID, "decision: %+v, %v", d, err)
}

func TestApprovalHoldsTheCallUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, answers := asking(t, write)
		tk := w.assign("bob", "x")
		ap := w.approval()
		expect.True(t, ap.TaskID == tk.TaskID && ap.Agent.Name == "bob" && ap.Agent.Role == "coder" && ap.Action.Tool == "write" && ap.Intent == "write a",
			"approval: %+v", ap)
		w.Await("the agent waits", func() bool {
			a := w.agent("bob")
			return a.Waiting == ap.ApprovalID && a.Status == fleet.Busy && a.State() == "waiting for you"
		})
		now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
		expect.True(t, err == nil && now.Waiting != "" && now.ApprovalID == ap.ApprovalID, "task: %+v, %v", now, err)
		time.Sleep(1500 * time.Millisecond) // longer than a lease
		select {
		case a := <-answers:
			t.Fatalf("answered by nobody: %+v", a)
		default:
		}
		expect.Of(w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Reason: "go on"}))(t)
		a := <-answers
		expect.True(t, a.Decision == "approve" && string(a.Args) == string(write.Args), "answer: %+v", a)
		r := w.result(tk.TaskID)
		expect.True(t, r.Status == task.Succeeded, "result: %+v", r)
		used, _ := w.judge.Approval(t.Context(), home, ap.ApprovalID)
		expect.True(t, !used.UsedAt.IsZero(), "the approval was not marked used")
		if a := w.agent("bob"); a.Waiting != "" || a.Status != fleet.Idle {
			t.Errorf("agent: %+v", a)
		}
		w.consistent()
	})
}

func TestApprovalEditedGivesTheAgentTheNewArguments(t *testing.T) {
	w, answers := asking(t, write)
	tk := w.assign("bob", "x")
	ap := w.approval()
	for edit, code := range map[string]core.Code{`["not an object"]`: core.InvalidInput, `{"force":true}`: core.Denied} {
		_, err := w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(edit), Reason: "r"})
		refused(t, err, code, "", "")
	}
	expect.Of(w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(`{"path":"b.txt"}`), Reason: "r"}))(t)
	a := <-answers
	expect.True(t, a.Decision == "approve" && string(a.Args) == `{"path":"b.txt"}`, "answer: %+v", a)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded, "result: %+v", r)
}

func TestDenialIsToldAndTheAgentGoesOn(t *testing.T) {
	w, answers := asking(t, write)
	tk := w.assign("bob", "x")
	expect.Of(w.judge.Answer(t.Context(), alice, w.approval().ApprovalID, judge.Answer{Reason: "not there"}))(t)
	a := <-answers
	expect.True(t, a.Decision == "deny" && a.Reason == "not there", "answer: %+v", a)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded && len(r.Denials) == 1, "its outcome is its own: %+v", r)
	w.consistent()
}

func TestAbortEndsTheTaskBlocked(t *testing.T) {
	w, answers := asking(t, write)
	tk := w.assign("bob", "x")
	expect.Of(w.judge.Answer(t.Context(), alice, w.approval().ApprovalID, judge.Answer{Reason: "stop that", Abort: true}))(t)
	a := <-answers
	expect.True(t, a.Decision == "abort", "answer: %+v", a)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Blocked && r.Error.Code == "approval_denied" && r.Error.Message == "stop that", "result: %+v %+v", r, r.Error)
	w.awaitStatus("bob", fleet.Idle)
	w.consistent()
}

func TestEndingARunVoidsItsQuestion(t *testing.T) {
	for name, end := range map[string]func(w *world) error{
		"cancel":  func(w *world) error { _, err := w.fleet.CancelTask(w.T.Context(), alice, "bob"); return err },
		"delete":  func(w *world) error { return w.fleet.Delete(w.T.Context(), alice, "bob") },
		"stop":    func(w *world) error { _, err := w.fleet.Stop(w.T.Context(), alice, "bob"); return err },
		"restart": func(w *world) error { _, err := w.fleet.Restart(w.T.Context(), alice, "bob"); return err },
		"death": func(w *world) error {
			w.rt.handle("bob").notify(fleet.Health{Status: fleet.Failed, Reason: "killed"})
			w.rt.handle("bob").end()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).run()
			w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
				ctx, stop := context.WithCancel(ctx) // a runtime stops asking when its process is dead
				defer stop()
				kill := h.dead()
				go func() {
					select {
					case <-kill:
						stop()
					case <-ctx.Done():
					}
				}()
				e := write
				e.Type = "tool_request"
				_, err := p.Emit(ctx, e)
				return task.Outcome{}, err
			})
			w.create("bob")
			w.assign("bob", "x")
			ap := w.approval()
			expect.No(t, end(w))
			w.Await("the approval is void", func() bool {
				got, err := w.judge.Approval(t.Context(), home, ap.ApprovalID)
				return err == nil && got.Status == judge.Voided
			})
			_, err := w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Reason: "late"})
			refused(t, err, core.Conflict, "", "")
			for _, a := range w.fleet.Live(home) {
				w.Await("nobody waits", func() bool { return w.agent(a.Name).Waiting == "" })
			}
			w.consistent()
		})
	}
}

func TestMalformedRequestsAreDeniedUnasked(t *testing.T) {
	for name, e := range map[string]fleet.Event{
		"no call id":    {Tool: "read"},
		"no tool":       {CallID: "c"},
		"odd tool":      {CallID: "c", Tool: "read\x1b[2J"},
		"list":          {CallID: "c", Tool: "read", Args: core.Raw(`[1]`)},
		"not json":      {CallID: "c", Tool: "read", Args: core.Raw(`{"a":`)},
		"double member": {CallID: "c", Tool: "read", Args: core.Raw(`{"a":1,"a":2}`)},
		"lossy number":  {CallID: "c", Tool: "read", Args: core.Raw(`{"a":12345678901234567890.0}`)},
		"deep":          {CallID: "c", Tool: "read", Args: core.Raw(`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`)},
		"long id":       {CallID: strings.Repeat("c", 500), Tool: "read"},
	} {
		t.Run(name, func(t *testing.T) {
			w, answers := asking(t, e)
			task := w.assign("bob", "x")
			a := <-answers
			expect.True(t, a.Decision == "deny" && a.Reason != "", "answer: %+v", a)
			w.result(task.TaskID)
		})
	}
}

func TestACallIDOfAnOpenCallIsNotTakenTwice(t *testing.T) {
	w := newWorld(t).run()
	var words []string
	for _, a := range w.tells(
		fleet.Event{Type: "tool_request", CallID: "c", Tool: "read"},
		fleet.Event{Type: "tool_request", CallID: "c", Tool: "read"},
		fleet.Event{Type: "tool_result", CallID: "c", Status: "ok"},
		fleet.Event{Type: "tool_request", CallID: "c", Tool: "read"},
	) {
		words = append(words, a.Decision)
	}
	expect.Is(t, strings.Join(words, " "), "approve deny  approve", "answers", words)
	expect.Is(t, len(w.events("tool.result")), 1)
}

// witness writes down what an observer is told of tool calls.
type witness struct {
	mu    sync.Mutex
	lines []string
}

func (o *witness) add(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *witness) Began(context.Context, fleet.Agent, task.Task, string) (fleet.Observed, error) {
	return o, nil
}

// Overheard records nothing of its own.
func (o *witness) Overheard(*audit.Tx, fleet.Agent, fleet.Event) (fresh bool, err error) {
	return true, nil
}

func (o *witness) Event(_ context.Context, e fleet.Event) {
	if e.CallID != "" {
		o.add("%s %s %s", e.Type, e.CallID, e.Args)
	}
}

func (o *witness) Along(commit func(func(*audit.Tx) error) error) error {
	return commit(func(*audit.Tx) error { return nil })
}

func (o *witness) Judged(_ *audit.Tx, a judge.Action, d judge.GateDecision) error {
	o.add("%s %s", d.Decision, a.CallID)
	return nil
}

func (o *witness) Answered(_ context.Context, e fleet.Event, a fleet.ToolAnswer) {
	o.add("answered %s %s", e.CallID, a.Decision)
}

func (o *witness) Ended(context.Context, task.Outcome) error { return nil }

func TestARefusedCallIsNotTakenForAnOpenOneOfItsID(t *testing.T) {
	seen := &witness{}
	w := newWatched(t, seen)
	var answers []string
	for _, a := range w.tells(
		fleet.Event{Type: "tool_request", CallID: "c", Tool: "read", Args: core.Raw(`{"path":"evil"}`)},
		fleet.Event{Type: "tool_request", CallID: "call", Tool: "read", Args: core.Raw(`{"path":"also evil"}`)},
		fleet.Event{Type: "tool_request", CallID: "c", Tool: "read", Args: core.Raw(`{"path":"good"}`)},
		fleet.Event{Type: "tool_request", CallID: "c", Tool: "read", Args: core.Raw(`{"path":"better"}`)},
		fleet.Event{Type: "tool_request", CallID: "", Tool: "read", Args: core.Raw(`{"path":"best"}`)},
		fleet.Event{Type: "tool_result", CallID: "c", Status: "ok"},
	) {
		answers = append(answers, a.CallID+" "+a.Decision)
	}
	expect.True(t, slices.Equal(answers, []string{"c approve", "call approve", "c deny", "c deny", " deny", " "}), "answers: %q", answers)
	want := []string{
		`tool_request c {"path":"evil"}`, "approve c", "answered c approve",
		`tool_request call {"path":"also evil"}`, "approve call", "answered call approve",
		`tool_request c#2 {"path":"good"}`, "answered c#2 deny",
		`tool_request c#2 {"path":"better"}`, "answered c#2 deny",
		`tool_request call#2 {"path":"best"}`, "answered call#2 deny",
		"tool_result c null",
	}
	expect.True(t, slices.Equal(seen.lines, want), "the record is told:\n%s", strings.Join(seen.lines, "\n"))
	shown := expect.Of(w.fleet.Activity(t.Context(), home, "bob", time.Time{}))(t)
	for _, c := range shown.Calls {
		expect.True(t, c.CallID != "c" || c.Args == `{"path":"evil"}`, "shown is %+v", c)
	}
}

func TestNothingIsApprovedWhileTheAgentStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, answers := asking(t, write)
		task := w.assign("bob", "x")
		ap := w.approval()
		a, err := w.fleet.Pause(t.Context(), alice, "bob")
		expect.Must(t, err == nil && a.Paused, "%+v, %v", a, err)
		expect.Of(w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Reason: "go"}))(t)
		select {
		case a := <-answers:
			t.Fatalf("answered while paused: %+v", a)
		case <-time.After(300 * time.Millisecond):
		}
		used, _ := w.judge.Approval(t.Context(), home, ap.ApprovalID)
		expect.True(t, used.UsedAt.IsZero(), "used while paused")
		expect.Of(w.fleet.Resume(t.Context(), alice, "bob"))(t)
		if a := <-answers; a.Decision != "approve" {
			t.Errorf("answer: %+v", a)
		}
		w.result(task.TaskID)
	})
}

func TestSilenceDenies(t *testing.T) {
	w := newWorld(t)
	w.Close()
	w.deadline = time.Second
	w.Open()
	w.run()
	answers := make(chan fleet.ToolAnswer, 1)
	w.rt.does(call(write, answers))
	w.create("bob")
	tk := w.assign("bob", "x")
	a := <-answers
	expect.True(t, a.Decision == "deny", "answer: %+v", a)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded && len(r.Denials) == 1, "result: %+v", r)
	w.consistent()
}

func TestAQuestionVoidedByOthersIsAskedAnew(t *testing.T) {
	w, answers := asking(t, write)
	task := w.assign("bob", "x")
	first := w.approval()
	err := w.Ledger.Update(t.Context(), alice, func(tx *audit.Tx) error {
		return w.judge.Void(tx, func(a *judge.Approval) bool { return a.ApprovalID == first.ApprovalID }, "the rules changed")
	})
	expect.No(t, err)
	second := w.approval()
	expect.Must(t, second.ApprovalID != first.ApprovalID, "not asked anew")
	expect.Of(w.judge.Answer(t.Context(), alice, second.ApprovalID, judge.Answer{Approve: true, Reason: "yes"}))(t)
	a := <-answers
	expect.True(t, a.Decision == "approve", "answer: %+v", a)
	w.result(task.TaskID)
	w.consistent()
}
