package dag_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// finding is one search of a record that fillTurns made.
type finding struct {
	name string
	find func(*rig) error
}

func searches(when time.Time, last string) []finding {
	events := func(q dag.Query) func(*rig) error {
		return func(r *rig) error {
			_, err := r.Events(r.T.Context(), acme, q)
			return err
		}
	}
	calls := func(f core.Filter) func(*rig) error {
		return func(r *rig) error {
			_, err := r.Calls(r.T.Context(), acme, dag.Query{Filter: f})
			return err
		}
	}
	long := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	return []finding{
		{"since-the-middle", events(dag.Query{Filter: core.Filter{Since: when}})},
		{"until-the-middle-page-1000", events(dag.Query{Filter: core.Filter{Until: when, Page: 1000}})},
		{"a-minute", events(dag.Query{Filter: core.Filter{Since: when, Until: when.Add(time.Minute)}})},
		{"until-nothing", events(dag.Query{Filter: core.Filter{Until: long}})},
		{"status-ok", events(dag.Query{Filter: core.Filter{Status: "ok"}})},
		{"status-nothing", events(dag.Query{Filter: core.Filter{Status: "canceled"}})},
		{"status-unknown", events(dag.Query{Filter: core.Filter{Status: "nosuch"}})},
		{"text-everywhere", events(dag.Query{Filter: core.Filter{Match: "CALL THE tool"}})},
		{"text-once", events(dag.Query{Filter: core.Filter{Match: last}})},
		{"text-nowhere", events(dag.Query{Filter: core.Filter{Match: "zebra"}})},
		{"text-nowhere-of-3", events(dag.Query{Filter: core.Filter{Match: "zqx"}})},
		{"text-nowhere-of-1", events(dag.Query{Filter: core.Filter{Match: "~"}})},
		{"text-nowhere-of-hex", events(dag.Query{Filter: core.Filter{Match: strings.Repeat("ab12cd34", 8)}})},
		{"text-nowhere-of-8-digits", events(dag.Query{Filter: core.Filter{Match: "0a1b2c3f"}})},
		{"text-nowhere-of-words-everywhere", events(dag.Query{Filter: core.Filter{Match: "I call the work"}})},
		{"text-rare-of-words-everywhere", events(dag.Query{Filter: core.Filter{Match: "turn-7"}})},
		{"text-nowhere-until-the-middle", events(dag.Query{Filter: core.Filter{Match: "I call the work", Until: when}})},
		{"trace-nowhere", events(dag.Query{Filter: core.Filter{Trace: strings.Repeat("ab12cd34", 4)}})},
		{"agent-and-status", events(dag.Query{Filter: core.Filter{Agent: "agent-3", Status: "ok"}})},
		{"agent-and-kind-and-time", events(dag.Query{Filter: core.Filter{Agent: "agent-3", Kind: "tool_call", Until: when}})},
		{"task-and-agent", events(dag.Query{Filter: core.Filter{Agent: "agent-3", Task: "task-3"}})},
		{"calls-ok", calls(core.Filter{Status: "ok"})},
		{"calls-error", calls(core.Filter{Status: "error"})},
		{"calls-open-since", calls(core.Filter{Status: "open", Since: when})},
		{"calls-of-agent", calls(core.Filter{Agent: "agent-3", Status: "ok"})},
		{"calls-text-nowhere", calls(core.Filter{Match: "zebra"})},
		{"calls-text-nowhere-of-words-everywhere", calls(core.Filter{Match: "I call the work"})},
		{"agent-text-nowhere-of-words-everywhere", events(dag.Query{Filter: core.Filter{Agent: "agent-3", Match: "I call the work"}})},
	}
}

// TestASearchFindsWhatAWalkFinds compares what is found by lists, columns and
// pieces with what is found by a look at each event, page by page.
func TestASearchFindsWhatAWalkFinds(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 3_000
	}
	if s := os.Getenv("SEARCH_EVENTS"); s != "" { // of a long trial
		expect.Of(fmt.Sscan(s, &n))(t)
	}
	r := newRig(t)
	mid, last, when := fillTurns(t, r, n)
	// Calls whose results come when their block is full, are replaced, or stay open.
	var own dag.Event
	for _, id := range []string{"late", "late", "open"} {
		own = r.emit(r.head("agent-3", "run-x"), &dag.ToolCall{Server: "s", Tool: "Größe K", CallID: id, Args: core.Raw(`{}`), RequestedBy: dag.EventRef{EventID: mid}})
	}
	fork := r.head("agent-3", "")
	fork.Nodes = []dag.Node{dag.NewNode(&dag.Subagent{ID: "agent-3-2", ParentAgentID: "agent-3"})}
	r.emit(fork, &dag.AgentForked{FromBranch: "main", ToBranch: "try", AtEvent: ref(own)})
	pad(r)
	r.emit(r.head("agent-3", "run-x"), &dag.ToolResult{CallID: "late", Status: dag.CallTimeout, Result: core.Raw(`{}`), Error: &dag.Fault{Code: "x", Message: "late"}})
	pad(r)
	var all []dag.Recorded
	for page := 1; ; page++ {
		p := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Page: page, Size: 100}}))(r.T)
		all = append(all, p.Items...)
		if !p.Info.Next {
			break
		}
	}
	for _, c := range []struct {
		name string
		q    dag.Query
	}{
		{"since", dag.Query{Filter: core.Filter{Since: when}}},
		{"until", dag.Query{Filter: core.Filter{Until: when}}},
		{"between", dag.Query{Filter: core.Filter{Since: when, Until: when.Add(30 * time.Second)}}},
		{"status", dag.Query{Filter: core.Filter{Status: "ok"}}},
		{"a status of one", dag.Query{Filter: core.Filter{Status: "timeout"}}},
		{"no such status", dag.Query{Filter: core.Filter{Status: "nosuch"}}},
		{"text in another case", dag.Query{Filter: core.Filter{Match: "GRÖßE"}}},
		{"text with the Kelvin sign", dag.Query{Filter: core.Filter{Match: "größe k"}}},
		{"text of one event", dag.Query{Filter: core.Filter{Match: last[:20]}}},
		{"text in most", dag.Query{Filter: core.Filter{Match: "I call"}}},
		{"no such text", dag.Query{Filter: core.Filter{Match: "zebra"}}},
		{"words of most", dag.Query{Filter: core.Filter{Match: "I call the work"}}},
		{"text of a few among words of most", dag.Query{Filter: core.Filter{Match: "out-77"}}},
		{"kind and text of a few", dag.Query{Filter: core.Filter{Kind: "tool_call", Match: "c-77"}}},
		{"kind and text of a few, the oldest first", dag.Query{Forward: true, Filter: core.Filter{Kind: "tool_call", Match: "c-77"}}},
		{"text until a time", dag.Query{Filter: core.Filter{Match: "turn-77", Until: when}}},
		{"agent and kind", dag.Query{Filter: core.Filter{Agent: "agent-3", Kind: "tool_call"}}},
		{"agent and status and text", dag.Query{Filter: core.Filter{Agent: "agent-3", Status: "ok", Match: "done"}}},
		{"agent and task", dag.Query{Filter: core.Filter{Agent: "agent-3", Task: "task-13"}}},
		{"another's task", dag.Query{Filter: core.Filter{Agent: "agent-3", Task: "task-4"}}},
		{"run and kind", dag.Query{Run: "run-7", Filter: core.Filter{Kind: "tool_result"}}},
		{"correlation and agent", dag.Query{Correlation: "turn-3", Filter: core.Filter{Agent: "agent-3"}}},
		{"kind and time", dag.Query{Filter: core.Filter{Kind: "model_request", Since: when}}},
		{"the oldest first", dag.Query{Forward: true, Filter: core.Filter{Kind: "model_request", Agent: "agent-5"}}},
		{"text, the oldest first", dag.Query{Forward: true, Filter: core.Filter{Match: "turn-77\""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for _, e := range all {
				if wanted(c.q, e) {
					want = append(want, e.Event.EventID)
				}
			}
			if c.q.Forward || c.q.Run != "" {
				slices.Reverse(want)
			}
			total := 0
			for _, page := range []int{1, 2, max(1, len(want)/20), len(want)/20 + 1, len(want)/20 + 2} {
				c.q.Page, c.q.Size = page, 20
				got := expect.Of(r.Events(t.Context(), acme, c.q))(r.T)
				var ids []string
				for _, e := range got.Items {
					ids = append(ids, e.Event.EventID)
				}
				from, to := min((page-1)*20, len(want)), min(page*20, len(want))
				expect.Must(t, slices.Equal(ids, want[from:to]) && got.Info.Next == (to < len(want)),
					"page %d has %d events, next %v; want %d of %d", page, len(ids), got.Info.Next, to-from, len(want))
				if total = got.Info.Total; total != len(want) && (!got.Info.AtLeast || total > len(want)) {
					t.Errorf("page %d of %d in all, want %d", page, total, len(want))
				}
			}
		})
	}
	for agent, want := range map[string]int{"agent-3": 1, "agent-4": 0} { // which have lists of their own
		got := expect.Of(r.Forks(t.Context(), acme, core.Filter{Agent: agent}))(r.T)
		expect.True(t, got.Info.Total == want && len(got.Items) == want, "%d forks of %s, want %d", got.Info.Total, agent, want)
	}
	for status, want := range map[string]int{"timeout": 1, "replaced": 1, "open": 1, "error": 0} {
		got := expect.Of(r.Calls(t.Context(), acme, dag.Query{Filter: core.Filter{Status: status}}))(r.T)
		expect.True(t, got.Info.Total == want && len(got.Items) == want && (want <= 0 || got.Items[0].Status == status),
			"%d calls are %s, want %d: %+v", got.Info.Total, status, want, got.Items)
	}
	deltas := expect.Of(r.Ledger.Reconcile(t.Context(), acme))(r.T)
	expect.True(t, len(deltas) == 0, "%v", deltas)
}

// pad fills up more than a block.
func pad(r *rig) {
	var all []dag.Event
	for range 300 {
		all = append(all, r.event(r.head("pad", "run-pad"), &dag.HistoryAppend{List: "main", MessageRef: "m"}))
	}
	expect.Of(r.Emit(r.T.Context(), alice, all...))(r.T)
}

// wanted is what a query means.
func wanted(q dag.Query, e dag.Recorded) bool {
	status := ""
	switch b := e.Event.Body.(type) {
	case *dag.ToolResult:
		status = string(b.Status)
	case *dag.ModelResponse:
		status = string(b.Status)
	}
	is := core.Wants
	return is(q.Run, e.Event.RunID) && is(q.Task, e.Event.TaskID) && is(q.Agent, e.Event.AgentID) && is(q.Kind, string(e.Event.Kind)) &&
		is(q.Status, status) && is(q.Correlation, e.Event.CorrelationID) && q.Within(e.Event.TS.Time()) &&
		strings.Contains(strings.ToLower(string(e.Event.Canonical())), strings.ToLower(q.Match))
}

// TestAnOldRecordBecomesSearchable takes the rows away that searches go by, as in a
// record that an earlier version wrote.
func TestAnOldRecordBecomesSearchable(t *testing.T) {
	r := newRig(t)
	fillTurns(t, r, 1800)
	for _, b := range []store.Bucket{"dag.columns", "dag.returns", "dag.pieces"} {
		r.No(r.DB.Update(t.Context(), acme, func(tx store.Tx) error {
			var keys [][]byte
			err := tx.Scan(b, nil, nil, false, func(k, _ []byte) (bool, error) {
				keys = append(keys, slices.Clone(k))
				return true, nil
			})
			for _, k := range keys {
				err = errors.Join(err, tx.Delete(b, k))
			}
			if len(keys) != 7 {
				err = fmt.Errorf("%s has %d rows", b, len(keys))
			}
			return err
		}))
	}
	r.No(r.DB.Update(t.Context(), acme, func(tx store.Tx) error {
		tx.Add("dag.blocks", -7)
		return nil
	}))
	find := func() (n int) {
		for _, f := range []core.Filter{{Status: "ok"}, {Match: "please"}} {
			p := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: f}))(r.T)
			n += p.Info.Total
		}
		p := expect.Of(r.Calls(t.Context(), acme, dag.Query{Filter: core.Filter{Status: "ok"}}))(r.T)
		return n + p.Info.Total
	}
	expect.Is(t, find(), 900, "are found without rows, want 900")
	for range 5 {
		r.emit(r.head("ada", "run-old"), &dag.HistoryAppend{List: "main", MessageRef: "m"})
		expect.Is(t, find(), 900, "are found with some, want 900")
	}
	deltas := expect.Of(r.Ledger.Reconcile(t.Context(), acme))(r.T)
	expect.True(t, len(deltas) == 0, "%v", deltas)
}

// TestWhatIsErasedIsInNoPiece has the pieces of a block written anew.
func TestWhatIsErasedIsInNoPiece(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	r.No(rec.Said(t.Context(), "main", dag.RoleUser, "Xylophone"))
	r.No(rec.Flush(t.Context()))
	fillTurns(t, r, 600)
	row := func() (v []byte) {
		r.No(r.DB.View(t.Context(), acme, func(tx store.Tx) error {
			got, err := tx.Get("dag.pieces", record.Seq(0))
			v = slices.Clone(got)
			return err
		}))
		return v
	}
	before := row()
	of := &record.Subject{Name: "ada", Task: func(*audit.Tx, string) (record.Whose, bool, error) { return record.NotTheirs, true, nil }}
	_, n, err := r.Erasers()[0].Erase(t.Context(), alice, of, nil)
	expect.Must(t, err == nil && n != 0, "%v %v", n, err)
	after := row()
	expect.True(t, len(after) != 0 && !slices.Equal(before, after), "the pieces of an erased text are left")
	p := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Match: "xylophone"}}))(r.T)
	expect.True(t, p.Info.Total <= 0, "what was erased is found")
	deltas := expect.Of(r.Ledger.Reconcile(t.Context(), acme))(r.T)
	expect.True(t, len(deltas) == 0, "%v", deltas)
}

func TestABlockOfLargeEventsIsLookedThrough(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 18 MB")
	}
	r := newRig(t)
	for i := range 256 {
		text := fmt.Sprint("needle-", i, strings.Repeat("x", 70<<10))
		h := r.head("ada", "large")
		h.Nodes = []dag.Node{r.message(fmt.Sprint("m-", i), text, dag.RoleUser)}
		r.emit(h, &dag.HistoryAppend{List: "main", MessageRef: fmt.Sprint("m-", i)})
	}
	for text, want := range map[string]int{"needle-77x": 1, "zebra": 0} {
		p := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Match: text}}))(r.T)
		expect.True(t, p.Info.Total == want, "%q is in %d events, want %d", text, p.Info.Total, want)
	}
	deltas := expect.Of(r.Ledger.Reconcile(t.Context(), acme))(r.T)
	expect.True(t, len(deltas) == 0, "%v", deltas)
}
