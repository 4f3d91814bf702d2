package notice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
	"swarmdeck/expect"
)

const home = "t_home"

var root = core.Caller{Tenant: home, Name: "root", Kind: core.Operator, Door: core.DoorCLI}

// receiver is the other side.
type receiver struct {
	mu   sync.Mutex
	got  []notice.Message
	at   []time.Time
	fail func(try int) error
	try  int
}

func (r *receiver) Send(_ context.Context, _ notice.Notice, m notice.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.try++
	if r.fail != nil {
		if err := r.fail(r.try); err != nil {
			return err
		}
	}
	r.got = append(r.got, m)
	r.at = append(r.at, time.Now())
	return nil
}

// soFar is what arrived until now.
func (r *receiver) soFar() (got []notice.Message, at []time.Time, tries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got), slices.Clone(r.at), r.try
}

func (r *receiver) ids() (all []string) {
	got, _, _ := r.soFar()
	for _, m := range got {
		all = append(all, m.ID)
	}
	return all
}

func (r *receiver) bodies(t testing.TB) []notice.Body {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]notice.Body, len(r.got))
	for i, m := range r.got {
		expect.No(t, core.Decode(m.Body, &all[i]))
	}
	return all
}

type asks map[string]judge.Approval

func (a asks) Approval(_ context.Context, _, id string) (judge.Approval, error) {
	found, ok := a[id]
	if !ok {
		return found, core.Missing("approval", id)
	}
	return found, nil
}

type world struct {
	*enginetest.World
	*notice.Notices
	to   *receiver
	asks asks
}

func newWorld(t testing.TB, path string) *world {
	w := &world{to: &receiver{}, asks: asks{}}
	enginetest.New(t, enginetest.Options{Path: path, File: true, Tenants: []string{home}, Build: func(e *enginetest.World) {
		w.World = e
		w.Notices = notice.New(notice.Options{Ledger: e.Ledger, Approvals: w.asks, Sender: w.to, Tenants: e.DB.Tenants, Watch: e.Watch})
	}})
	return w
}

func (w *world) run() { w.Start(w.Run) }

func (w *world) put(n notice.Notice) {
	w.T.Helper()
	if n.URL == "" {
		n.URL = "https://there.example/hook"
	}
	_, _, err := w.Put(context.Background(), root, n)
	expect.Must(w.T, err == nil, "%v", err)
}

func (w *world) event(typ, subject, id string, detail any) {
	w.T.Helper()
	err := w.Ledger.Update(context.Background(), root, func(tx *audit.Tx) error {
		_, err := tx.Record(audit.Entry{Type: typ, Subject: subject, ID: id, Detail: detail})
		return err
	})
	expect.No(w.T, err)
}

func (w *world) status(name string) notice.Status {
	w.T.Helper()
	return expect.Of(w.Status(context.Background(), home, name))(w.T)
}

// inTime runs a story on a clock that only sleeping moves.
func inTime(t *testing.T, story func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.run()
		story(w)
	})
}

func TestWhatWasAskedForIsTold(t *testing.T) {
	inTime(t, func(w *world) {
		w.event("task.failed", "task", "before", nil)
		w.put(notice.Notice{Name: "all", Events: []string{"approval", "failure", "budget", "stuck", "estop", "sys.dag.*"}, MinRisk: judge.High})
		w.asks["a1"] = judge.Approval{ApprovalID: "a1", Status: judge.Open, Risk: judge.Low, Intent: "small"}
		w.asks["a2"] = judge.Approval{
			ApprovalID: "a2", Status: judge.Open, Risk: judge.High, Subject: judge.Subject{Headline: "drop\x1b[2J the \u202etable"}, DeadlineAt: time.Now().Add(time.Minute),
			Action: judge.Action{Kind: "exec.run", Args: core.Raw(`{"secret":1}`)},
		}
		for _, e := range [][3]string{
			{"approval.opened", "approval", "a1"},
			{"approval.opened", "approval", "a2"},
			{"approval.approved", "approval", "a2"},
			{"approval.escalated", "approval", "a2"},
			{"task.succeeded", "task", "k1"},
			{"task.failed", "task", "k2"},
			{"budget.reached", "budget", "tenant"},
			{"agent.stuck", "agent", "bob"},
			{"agent.busy", "agent", "bob"},
			{"estop.on", "estop", home},
			{"dag.emitted", "dag", "e"},
		} {
			w.event(e[0], e[1], e[2], nil)
		}
		for _, to := range []string{"idle", "failed"} {
			w.event("agent.status", "agent", "bob", map[string]any{"from": "busy", "to": to, "reason": "gone"})
		}
		time.Sleep(2 * time.Second)
		got := w.to.bodies(w.T)
		var types []string
		for _, b := range got {
			types = append(types, b.Type)
			expect.True(w.T, !strings.ContainsFunc(b.Text, func(r rune) bool { return r < ' ' || r == 0x202e }), "hidden characters in %q", b.Text)
		}
		want := []string{"approval.opened", "approval.escalated", "task.failed", "budget.reached", "agent.stuck", "estop.on", "dag.emitted", "agent.status"}
		expect.Must(w.T, slices.Equal(types, want), "told %v, want %v", types, want)
		messages, _, _ := w.to.soFar()
		if all := string(messages[0].Body); strings.Contains(all, "secret") || !strings.Contains(all, `"approval_id":"a2"`) || !strings.Contains(got[0].Text, "high approval a2 needs an answer: drop[2J the table, until ") {
			w.T.Errorf("%s", all)
		}
		expect.Has(w.T, got[7].Text, "failed, gone")
		st := w.status("all")
		expect.True(w.T, st.Delivered == 8 && st.Lag == 0 && st.LastError == "", "%+v", st)
	})
}

func TestWhatIsMoreThanTheRateComesAsOneSummary(t *testing.T) {
	inTime(t, func(w *world) {
		w.put(notice.Notice{Name: "n", Events: []string{"failure"}, Rate: 3})
		for i := range 500 {
			w.event("task.failed", "task", fmt.Sprint("k", i), nil)
		}
		time.Sleep(30 * time.Second)
		n := len(w.to.bodies(w.T))
		expect.Must(w.T, n == 3, "%d messages within a minute, the rate is 3", n)
		time.Sleep(time.Minute)
		got := w.to.bodies(w.T)
		if len(got) != 4 || got[3].Type != "notice.summary" || !strings.Contains(got[3].Text, "497 events") || !strings.Contains(got[3].Text, "497 task.failed") {
			w.T.Fatalf("%d: %+v", len(got), got[len(got)-1])
		}
		_, at, _ := w.to.soFar()
		wait := at[3].Sub(at[0])
		expect.True(w.T, wait >= time.Minute && wait <= 62*time.Second, "the summary came after %v", wait)
		w.event("task.failed", "task", "last", nil)
		time.Sleep(time.Second)
		got = w.to.bodies(w.T)
		expect.True(w.T, len(got) == 5 && got[4].Type == "task.failed", "then %d", len(got))
	})
}

func TestAFailureIsTriedAgainAsTheSameAndSeen(t *testing.T) {
	inTime(t, func(w *world) {
		w.to.fail = func(try int) error {
			if try < 4 {
				return &notice.Failure{Err: errors.New("down\x1b[0m for now"), After: time.Duration(try) * time.Minute}
			}
			return nil
		}
		w.put(notice.Notice{Name: "n", Events: []string{"failure"}})
		began := time.Now()
		w.event("task.failed", "task", "k1", nil)
		time.Sleep(time.Second)
		st := w.status("n")
		expect.True(w.T, st.Failing && st.LastError == "down[0m for now" && st.Pending != nil && st.Lag != 0 && st.Attempts == 1, "%+v", st)
		w.Stop() // and another engine goes on
		w.run()
		time.Sleep(10 * time.Minute)
		got, at, tries := w.to.soFar()
		expect.True(w.T, len(got) == 1 && tries == 4 && at[0].Sub(began) >= 6*time.Minute && at[0].Sub(began) <= 7*time.Minute,
			"%d after %v tries, at %v", len(got), tries, at)
		page, err := w.Ledger.List(context.Background(), home, core.Filter{Kind: "notice.*"})
		expect.True(w.T, err == nil && len(page.Items) == 3 && page.Items[0].EventType == "notice.recovered" && page.Items[1].EventType == "notice.failing",
			"%v, %v", page.Items, err)
		st = w.status("n")
		expect.True(w.T, !st.Failing && st.Pending == nil && st.Lag == 0, "%+v", st)
	})
}

func TestAMessageThatIsNotTakenDoesNotStandInTheWay(t *testing.T) {
	inTime(t, func(w *world) {
		w.to.fail = func(try int) error {
			if try <= 5 {
				return &notice.Failure{Err: errors.New("answered 400"), Final: true}
			}
			return nil
		}
		w.put(notice.Notice{Name: "n", Events: []string{"failure"}})
		w.event("task.failed", "task", "k1", nil)
		w.event("task.timed_out", "task", "k2", nil)
		time.Sleep(5 * time.Minute)
		got := w.to.bodies(w.T)
		expect.Must(w.T, len(got) == 1 && got[0].Type == "task.timed_out", "%+v", got)
		st := w.status("n")
		expect.True(w.T, st.GivenUp == 1 && st.Delivered == 1, "%+v", st)
	})
}

func TestALongStopIsNoFlood(t *testing.T) {
	inTime(t, func(w *world) {
		w.put(notice.Notice{Name: "n", Events: []string{"failure"}})
		w.Stop()
		for i := range 300 {
			w.event("task.failed", "task", fmt.Sprint("old", i), nil)
		}
		time.Sleep(2 * time.Hour)
		w.event("task.failed", "task", "fresh", nil)
		w.run()
		time.Sleep(time.Second)
		got := w.to.bodies(w.T)
		expect.Must(w.T, len(got) == 2 && got[0].Type == "notice.summary" && strings.Contains(got[0].Text, "300 events") && got[1].Type == "task.failed",
			"%+v", got)
	})
}

// The engine may die at any moment: between the message on disk and its way,
// and between its arrival and the note of that. The data file is taken as it
// is at such a moment.
func TestNothingIsLostOverAKill(t *testing.T) {
	inTime(t, func(w *world) {
		w.put(notice.Notice{Name: "n", Events: []string{"failure"}, Rate: 600})
		entered, leave := make(chan string), make(chan struct{})
		w.to.fail = func(try int) error {
			if try == 3 {
				entered <- ""
				<-leave
			}
			return nil
		}
		for i := range 5 {
			w.event("task.failed", "task", fmt.Sprint("k", i), nil)
		}
		<-entered
		path := w.Copy()
		close(leave)
		time.Sleep(time.Second)
		heir := newWorld(w.T, path)
		heir.run()
		time.Sleep(time.Second)
		heir.Close()
		first, then := w.to.ids(), heir.to.ids()
		// The one in hand comes again under its id, those before it don't.
		expect.True(w.T, len(first) == 5 && slices.Equal(first[2:], then), "told %v, and after the kill %v", first, then)
	})
}

func TestNoticesComeAndGo(t *testing.T) {
	inTime(t, func(w *world) {
		w.put(notice.Notice{Name: "n", Events: []string{"failure"}})
		_, action, err := w.Put(context.Background(), root, notice.Notice{Name: "n", Events: []string{"failure"}, URL: "https://there.example/hook"})
		expect.True(w.T, err == nil && action == "unchanged", "%s, %v", action, err)
		w.put(notice.Notice{Name: "n", Events: []string{"estop"}})
		time.Sleep(time.Second) // it has looked once, and looks again a moment after the next
		w.event("task.failed", "task", "k", nil)
		w.event("estop.on", "estop", home, map[string]string{"reason": "smoke"})
		_, err = w.Test(context.Background(), root, "n")
		expect.True(w.T, err == nil, "%v", err)
		time.Sleep(time.Second)
		got := w.to.bodies(w.T)
		expect.True(w.T, len(got) == 2 && got[0].Type == "notice.test" && got[1].Text == "estop t_home: on, smoke", "%+v", got)
		_, err = w.Remove(context.Background(), root, "n")
		expect.True(w.T, err == nil, "%v", err)
		w.event("estop.on", "estop", home, nil)
		time.Sleep(time.Second)
		expect.Is(w.T, len(w.to.ids()), 2, "a removed notice tells on")
		_, err = w.Remove(context.Background(), root, "n")
		expect.True(w.T, errors.Is(err, core.Kind(core.NotFound)), "%v", err)
		deltas, err := w.Ledger.Reconcile(context.Background(), home)
		expect.True(w.T, err == nil && len(deltas) == 0, "%v, %v", deltas, err)
	})
}

func TestMistakesInANoticeAreNamed(t *testing.T) {
	for _, c := range []struct {
		field string
		n     notice.Notice
	}{
		{"name", notice.Notice{Name: "A b", Events: []string{"failure"}, URL: "http://x"}},
		{"events", notice.Notice{Name: "n", URL: "http://x"}},
		{"events", notice.Notice{Name: "n", Events: []string{"everything"}, URL: "http://x"}},
		{"events", notice.Notice{Name: "n", Events: []string{"part.*"}, URL: "http://x"}},
		{"events", notice.Notice{Name: "n", Events: []string{"failure", "failure"}, URL: "http://x"}},
		{"min_risk", notice.Notice{Name: "n", Events: []string{"approval"}, MinRisk: "huge", URL: "http://x"}},
		{"rate", notice.Notice{Name: "n", Events: []string{"approval"}, Rate: -1, URL: "http://x"}},
		{"url", notice.Notice{Name: "n", Events: []string{"approval"}}},
		{"url", notice.Notice{Name: "n", Events: []string{"approval"}, URL: "http://x", Command: []string{"x"}}},
		{"url", notice.Notice{Name: "n", Events: []string{"approval"}, URL: "file:///etc/x"}},
		{"url", notice.Notice{Name: "n", Events: []string{"approval"}, URL: "https://me:pass@x"}},
		{"secret_env", notice.Notice{Name: "n", Events: []string{"approval"}, URL: "https://x", SecretEnv: "whsec_abc+/="}},
		{"secret_env", notice.Notice{Name: "n", Events: []string{"approval"}, Command: []string{"x"}, SecretEnv: "X"}},
		{"command", notice.Notice{Name: "n", Events: []string{"approval"}, Command: []string{""}}},
	} {
		err := c.n.Check()
		if core.AsError(err).Details["field"] != c.field || strings.Contains(fmt.Sprint(err), "me:pass") || strings.Contains(fmt.Sprint(err), "whsec_abc") {
			t.Errorf("%+v: %v", c.n, err)
		}
	}
}
