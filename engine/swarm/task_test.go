package swarm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestDispatchRefusesBadFieldsByName(t *testing.T) {
	r := newRig(t)
	num := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		d     swarm.Dispatch
		field string
		code  core.Code
	}{
		"no kind":        {swarm.Dispatch{Input: core.Raw(`{}`)}, "kind", core.InvalidInput},
		"long kind":      {swarm.Dispatch{Kind: strings.Repeat("k", 129), Input: core.Raw(`{}`)}, "kind", core.InvalidInput},
		"unknown kind":   {swarm.Dispatch{Kind: "nope", Input: core.Raw(`{}`)}, "kind", core.InvalidInput},
		"priority":       {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Priority: num(101)}, "priority", core.InvalidInput},
		"low priority":   {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Priority: num(-1)}, "priority", core.InvalidInput},
		"attempts":       {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), MaxAttempts: num(-1)}, "max_attempts", core.InvalidInput},
		"short timeout":  {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Timeout: time.Millisecond}, "timeout_s", core.InvalidInput},
		"long timeout":   {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Timeout: 86401 * time.Second}, "timeout_s", core.InvalidInput},
		"short start":    {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), StartTimeout: time.Millisecond}, "start_timeout_s", core.InvalidInput},
		"long start":     {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), StartTimeout: 86401 * time.Second}, "start_timeout_s", core.InvalidInput},
		"negative start": {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), StartTimeout: -time.Second}, "start_timeout_s", core.InvalidInput},
		"not an object":  {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`[1]`)}, "input", core.InvalidInput},
		"not JSON":       {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{"a":`)}, "input", core.InvalidInput},
		"two documents":  {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{} {}`)}, "input", core.InvalidInput},
		"huge":           {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{"a":"` + strings.Repeat("x", core.MaxInput) + `"}`)}, "input", core.InvalidInput},
		"trace":          {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Trace: "xyz"}, "trace_id", core.InvalidInput},
		"session":        {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Session: "ghost"}, "session", core.NotFound},
		"parent":         {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Parent: core.NewID("tk", acme, 99)}, "task", core.NotFound},
		"dependency":     {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), After: []string{core.NewID("tk", acme, 99)}}, "task", core.NotFound},
		"lossy number":   {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{"n":90071992547409931.0}`)}, "", core.InvalidInput},
		"foreign parent": {swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Parent: core.NewID("tk", "t_other", 1)}, "", core.Denied},
	} {
		_, err := r.swarm.Dispatch(t.Context(), alice, c.d)
		expect.True(t, hasCode(err, c.code) && (c.field == "" || strings.Contains(err.Error(), c.field)),
			"%s: %v, want %s naming %q", name, err, c.code, c.field)
	}
	list, _ := r.tasks.List(t.Context(), acme, core.Filter{})
	expect.True(t, list.Info.Total == 0, "refused dispatches left %d tasks", list.Info.Total)
	r.whole()
}

func TestDispatchFillsTheSeedsFields(t *testing.T) {
	r := newRig(t)
	tk := r.dispatch(`{"n":1}`)
	expect.True(t, tk.Priority == 50 && tk.MaxAttempts == 3 && tk.Attempt == 0 && tk.Status == task.Queued, "defaults: %+v", tk)
	expect.True(t, core.CheckTrace(tk.TraceID) == nil && !tk.UpdatedAt.Before(tk.CreatedAt) && tk.TenantID == acme, "record: %+v", tk)
	got := r.task(tk.TaskID)
	expect.Is(t, string(got.Input), `{"n":1}`, "input read back", got.Input)
	child := r.dispatch(`{}`, func(d *swarm.Dispatch) {
		d.Parent, d.Trace = tk.TaskID, "00-"+strings.Repeat("cd", 16)+"-0123456789abcdef-01" // of the dispatching process
	})
	expect.True(t, child.TraceID == tk.TraceID && child.ParentTaskID == tk.TaskID, "child: trace %s parent %s", child.TraceID, child.ParentTaskID)
	other := strings.Repeat("ab", 16)
	_, err := r.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`), Parent: tk.TaskID, Trace: other})
	expect.True(t, hasCode(err, core.InvalidInput) && strings.Contains(err.Error(), tk.TraceID), "a child with a trace of its own: %v", err)
	tree, err := r.tasks.Tree(t.Context(), acme, tk.TaskID)
	expect.True(t, err == nil && len(tree) == 2 && tree[1].TaskID == child.TaskID, "tree: %v %v", tree, err)
}

func TestHigherPriorityGoesFirstAndEqualsInOrder(t *testing.T) {
	r := newRig(t)
	for i, p := range []int{50, 10, 90, 50, 90, 0, 100} {
		r.dispatch(fmt.Sprintf(`{"i":%d}`, i), func(d *swarm.Dispatch) { d.Priority = &p })
	}
	var got []string
	for range 7 {
		got = append(got, string(r.task(r.claim().TaskID).Input))
	}
	want := `[{"i":6} {"i":2} {"i":4} {"i":0} {"i":3} {"i":1} {"i":5}]`
	expect.Is(t, fmt.Sprint(got), want, "order", got)
}

func TestAResultIsCommittedOnce(t *testing.T) {
	r := newRig(t)
	r.dispatch(`{}`)
	tk := r.claim()
	res := r.complete(tk, ok(`{"x":1}`))
	expect.True(t, res.Status == task.Succeeded && !res.CompletedAt.IsZero(), "result %+v", res)
	if _, err := r.swarm.Complete(t.Context(), alice, tk.TaskID, tk.Lease, ok(`{"x":2}`)); !hasCode(err, core.Conflict) {
		t.Errorf("second result: %v, want CONFLICT", err)
	}
	res, err := r.tasks.Result(t.Context(), acme, tk.TaskID)
	expect.True(t, err == nil && string(res.Output) == `{"x":1}` && res.Error == nil, "result %+v, %v", res, err)
	events, err := r.Ledger.List(t.Context(), acme, core.Filter{Kind: "result.refused"})
	expect.True(t, err == nil && events.Info.Total == 1, "refusals audited: %d, %v", events.Info.Total, err)
	r.whole()
}

func TestOutcomesThatTheSeedForbidsAreRefused(t *testing.T) {
	r := newRig(t)
	r.dispatch(`{}`)
	tk := r.claim()
	half := 1.5
	for name, out := range map[string]task.Outcome{
		"success with error":    {Status: task.Succeeded, Error: &task.Error{Code: "x"}},
		"failure without error": {Status: task.Failed},
		"not terminal":          {Status: task.Running},
		"unknown":               {Status: "done"},
		"confidence":            {Status: task.Succeeded, Confidence: &half},
		"output not an object":  {Status: task.Succeeded, Output: core.Raw(`3`)},
	} {
		_, err := r.swarm.Complete(t.Context(), alice, tk.TaskID, tk.Lease, out)
		expect.True(t, hasCode(err, core.InvalidInput), "%s: %v, want INVALID_INPUT", name, err)
	}
	r.complete(tk, ok(`{}`))
}

func TestRetryableFailuresComeBackUntilTheAttemptsAreUsed(t *testing.T) {
	r := newRig(t)
	two := 2
	tk := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.MaxAttempts = &two })
	r.complete(r.claim(), failure(true))
	got := r.task(tk.TaskID)
	expect.True(t, got.Status == task.Queued && got.Attempt == 1 && !got.RunAt.Before(got.UpdatedAt.Add(time.Second)) && got.ErrorCode == "boom",
		"after the first failure: %+v", got)
	why, _ := r.swarm.Why(t.Context(), acme, tk.TaskID)
	expect.True(t, why.Kind == "backoff", "why: %+v", why)
	list, err := r.swarm.Claim(t.Context(), alice, "w1", 1)
	expect.True(t, err == nil && len(list) == 0, "claimed during the back-off: %v %v", list, err)
	r.run()
	w := <-r.runner.started
	expect.Is(t, w.job.Task.Attempt, 1, "second run is attempt")
	w.end(failure(true))
	done := r.status(tk.TaskID, task.Failed)
	expect.True(t, !done.CompletedAt.IsZero() && done.Attempt == 1, "at the end: %+v", done)
	r.whole()
}

func TestNotRetryableAndOneAttemptFailAtOnce(t *testing.T) {
	r := newRig(t)
	zero := 0
	a := r.dispatch(`{}`)
	b := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.MaxAttempts = &zero })
	r.complete(r.claim(), failure(false))
	r.complete(r.claim(), failure(true))
	for _, id := range []string{a.TaskID, b.TaskID} {
		got := r.task(id)
		expect.True(t, got.Status == task.Failed, "task %s is %s", id, got.Status)
	}
	again, err := r.swarm.Retry(t.Context(), alice, a.TaskID)
	expect.True(t, err == nil && again.RetryOf == a.TaskID && again.TraceID == a.TraceID && again.TaskID != a.TaskID, "retry: %+v %v", again, err)
	expect.Is(t, r.task(a.TaskID).RetriedAs, again.TaskID, "the first says by which")
	_, err = r.swarm.Retry(t.Context(), alice, a.TaskID)
	expect.True(t, hasCode(err, core.Conflict) && strings.Contains(err.Error(), again.TaskID), "once more: %v", err)
	why, err := r.swarm.Why(t.Context(), acme, a.TaskID)
	expect.True(t, err == nil && why.Kind == "retried" && why.Ref == again.TaskID, "why: %+v %v", why, err)
	head, err := r.tasks.Urgent(t.Context(), acme, nil)
	expect.True(t, err == nil && !slices.Contains(head, task.Seq(a.TaskID)) && slices.Contains(head, task.Seq(b.TaskID)), "those that need somebody: %v %v", head, err)
	r.whole()
}

func TestIdempotencyKeyReturnsTheFirstTask(t *testing.T) {
	r := newRig(t)
	key := func(d *swarm.Dispatch) { d.IdempotencyKey = "order-1" }
	a := r.dispatch(`{"n":1}`, key)
	b := r.dispatch(`{"n":1}`, key)
	expect.True(t, b.TaskID == a.TaskID, "second dispatch made %s beside %s", b.TaskID, a.TaskID)
	d := swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{"n":2}`), IdempotencyKey: "order-1"}
	_, err := r.swarm.Dispatch(t.Context(), alice, d)
	expect.True(t, hasCode(err, core.Conflict), "same key, other request: %v, want CONFLICT", err)
	r.whole()
}

func TestUndoOnlyBeforeTheClaim(t *testing.T) {
	r := newRig(t)
	a, b := r.dispatch(`{}`), r.dispatch(`{}`)
	r.claim()
	_, err := r.swarm.Undo(t.Context(), alice, a.TaskID)
	expect.True(t, hasCode(err, core.Conflict), "undo of a running task: %v", err)
	got, err := r.swarm.Undo(t.Context(), alice, b.TaskID)
	expect.True(t, err == nil && got.Status == task.Cancelled && got.ErrorCode == "undone", "undo: %+v %v", got, err)
	list, _ := r.swarm.Claim(t.Context(), alice, "w1", 1)
	expect.True(t, len(list) == 0, "an undone task was claimed")
	r.whole()
}

func TestTasksWaitForTheirDependencies(t *testing.T) {
	r := newRig(t)
	a, x := r.dispatch(`{"a":1}`), r.dispatch(`{"x":1}`)
	after := func(ids ...string) func(*swarm.Dispatch) { return func(d *swarm.Dispatch) { d.After = ids } }
	b := r.dispatch(`{"b":1}`, after(a.TaskID, x.TaskID))
	c := r.dispatch(`{"c":1}`, after(b.TaskID))
	why, _ := r.swarm.Why(t.Context(), acme, b.TaskID)
	expect.True(t, why.Kind == "dependency", "why: %+v", why)
	r.complete(r.claim(), ok(`{}`))
	tx := r.claim()
	list, _ := r.swarm.Claim(t.Context(), alice, "w1", 5)
	expect.Must(t, len(list) == 0, "claimed too early: %v", list)
	r.complete(tx, ok(`{}`))
	tb := r.claim()
	expect.Must(t, tb.TaskID == b.TaskID, "claimed %s, want %s", tb.TaskID, b.TaskID)
	r.complete(tb, failure(false))
	got := r.task(c.TaskID)
	expect.True(t, got.Status == task.Blocked && got.ErrorCode == "dependency_failed", "dependent of a failed task: %s %s", got.Status, got.ErrorCode)
	r.whole()
}

func TestATaskIsWaitedForByAnySpellingOfItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		task := r.dispatch(`{}`)
		tag := strings.LastIndex(task.TaskID, "_") + 1
		got := expect.Later(func() error {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_, err := r.tasks.Wait(ctx, acme, task.TaskID[:tag]+"0"+task.TaskID[tag:], "")
			return err
		})
		synctest.Wait()
		expect.Of(r.swarm.Cancel(t.Context(), alice, task.TaskID, "enough"))(t)
		expect.No(t, <-got, "its end was missed")
	})
}

func TestForeignIDsAreRefusedAndAudited(t *testing.T) {
	r := newRig(t)
	other := core.NewID(core.TaskPrefix, "t_other", 1)
	_, err := r.tasks.Get(t.Context(), acme, other)
	expect.True(t, hasCode(err, core.Denied), "read: %v, want DENIED", err)
	_, err = r.swarm.Cancel(t.Context(), alice, other, "")
	expect.True(t, hasCode(err, core.Denied), "cancel: %v, want DENIED", err)
	events, err := r.Ledger.List(t.Context(), acme, core.Filter{Kind: "tenant.violation"})
	expect.True(t, err == nil && events.Info.Total == 2, "violations audited: %d, %v", events.Info.Total, err)
}

func TestListsFilterAndPage(t *testing.T) {
	r := newRig(t)
	ses := expect.Of(r.swarm.Sessions.Create(t.Context(), alice, "night"))(t)
	for i := range 25 {
		r.dispatch(fmt.Sprintf(`{"i":%d}`, i), func(d *swarm.Dispatch) {
			if i%5 == 0 {
				d.Session = "night"
			}
		})
	}
	for range 3 {
		r.complete(r.claim(), failure(false))
	}
	for range 4 {
		r.complete(r.claim(), ok(`{}`))
	}
	for name, c := range map[string]struct {
		f           core.Filter
		items, sum  int
		first       string
		next, prior bool
	}{
		"all":         {core.Filter{}, 20, 25, `"i":24`, true, false},
		"second page": {core.Filter{Page: 2}, 5, 25, `"i":4`, false, true},
		"past it":     {core.Filter{Page: 9}, 0, 25, "", false, true},
		"session":     {core.Filter{Session: ses.SessionID}, 5, 5, `"i":20`, false, false},
		"failed":      {core.Filter{Status: "failed"}, 3, 3, "", false, false},
		"succeeded":   {core.Filter{Status: "succeeded", Size: 3}, 3, 4, "", true, false},
		"queued":      {core.Filter{Status: "queued"}, 18, 18, `"i":24`, false, false},
		"both":        {core.Filter{Status: "queued", Session: ses.SessionID}, 5, 5, "", false, false},
		"match":       {core.Filter{Match: `"I":7}`}, 1, 1, `"i":7`, false, false},
		"kind":        {core.Filter{Kind: "other"}, 0, 0, "", false, false},
		"since":       {core.Filter{Since: time.Now().Add(time.Hour)}, 0, 0, "", false, false},
	} {
		page, err := r.tasks.List(t.Context(), acme, c.f)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		expect.True(t, len(page.Items) == c.items && page.Info.Total == c.sum && page.Info.Next == c.next && page.Info.Previous == c.prior,
			"%s: %d items, %+v", name, len(page.Items), page.Info)
		if c.first != "" && !strings.Contains(page.Items[0].Title, c.first) {
			t.Errorf("%s: first is %s", name, page.Items[0].Title)
		}
	}
	r.whole()
}
