package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

var (
	alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	trace = strings.Repeat("0a", 16)
)

// stepClock is a clock the test moves.
type stepClock struct{ now time.Time }

func (c *stepClock) Now() time.Time { return c.now }

func newClock() *stepClock {
	return &stepClock{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
}

func entry(typ, id string) audit.Entry {
	return audit.Entry{Type: typ, Trace: trace, Subject: "task", ID: id, State: core.Raw(`{"status":"queued"}`)}
}

// record writes one record and its event.
func record(t testing.TB, l *audit.Ledger, e audit.Entry) uint64 {
	t.Helper()
	var seq uint64
	err := l.Update(t.Context(), alice, func(tx *audit.Tx) (err error) {
		if err := tx.Put("task", []byte(e.ID), []byte("x")); err != nil {
			return err
		}
		seq, err = tx.Record(e)
		return err
	})
	expect.No(t, err)
	return seq
}

func TestEventIsStoredAsItIsEncoded(t *testing.T) {
	m := newStore(t)
	l := audit.New(m, audit.Options{Clock: newClock()})
	hostile := "a\"b\\c\u202e\n\x00é"
	for i, e := range []audit.Entry{
		entry("task.queued", "tk_1"),
		{Type: "x.y", Subject: hostile, ID: hostile, Prev: 1, State: map[string]any{"b": 1, "a": "<&>"}, Detail: []int{1, 2}},
		{Type: "x.gone", Subject: "task", ID: "tk_1", Trace: trace, State: audit.Gone},
		{Type: "x.gone", Subject: "task", ID: "tk_2", Trace: trace, State: core.Raw("null")},
	} {
		seq := record(t, l, e)
		expect.Must(t, seq == uint64(i+1), "seq %d, want %d", seq, i+1)
		id := core.NewID(core.EventPrefix, acme, seq)
		got := expect.Of(l.Get(t.Context(), acme, id))(t)
		p := expect.Of(got.Data())(t)
		if got.EventID != id || got.TenantID != acme || got.EventType != e.Type || got.Seq != seq || got.Prev != e.Prev || p.Subject != e.Subject || p.ID != e.ID {
			t.Errorf("got %+v %+v from %+v", got, p, e)
		}
		expect.True(t, got.Actor == "alice" && got.Kind == core.Operator && got.Door == core.DoorCLI, "actor of %+v", got)
		again := expect.Of(core.Encode(got))(t)
		var stored []byte
		err := m.View(t.Context(), acme, func(tx store.Tx) (err error) {
			stored, err = tx.Get(audit.Events, []byte{0, 0, 0, 0, 0, 0, 0, byte(seq)})
			stored = bytes.Clone(stored)
			return err
		})
		expect.No(t, err)
		expect.Is(t, string(again), string(stored), "stored", stored, "encoded", again)
	}
}

func TestWriteWithoutEventIsRefused(t *testing.T) {
	m := newStore(t)
	l := audit.New(m, audit.Options{})
	for name, write := range map[string]func(*audit.Tx) error{
		"put":    func(tx *audit.Tx) error { return tx.Put("task", []byte("k"), []byte("v")) },
		"delete": func(tx *audit.Tx) error { return tx.Delete("task", []byte("k")) },
		"add":    func(tx *audit.Tx) error { tx.Add("tasks", 1); return nil },
	} {
		expect.Err(t, l.Update(t.Context(), alice, write), core.Kind(core.Internal), name)
		expect.No(t, l.Append(t.Context(), alice, write), "append", name)
	}
	expect.No(t, l.Update(t.Context(), alice, func(*audit.Tx) error { return nil }), "an update that finds nothing to do")
}

func TestFailedUpdateLeavesNoEventAndNoChange(t *testing.T) {
	var changes []core.Change
	m := newStore(t)
	l := audit.New(m, audit.Options{OnChange: func(c core.Change) { changes = append(changes, c) }})
	boom := errors.New("boom")
	err := l.Update(t.Context(), alice, func(tx *audit.Tx) error {
		if _, err := tx.Record(entry("task.queued", "tk_1")); err != nil {
			return err
		}
		tx.Changed("task", "tk_1")
		return boom
	})
	expect.Must(t, errors.Is(err, boom) && len(changes) == 0, "err %v, changes %v", err, changes)
	seq := record(t, l, entry("task.queued", "tk_1"))
	expect.Must(t, seq == 1, "seq %d after a failed update, want 1", seq)
}

func TestChangesArriveAfterCommitInOrder(t *testing.T) {
	var got []string
	m := newStore(t)
	l := audit.New(m, audit.Options{OnChange: func(c core.Change) { got = append(got, c.Kind+" "+c.ID) }})
	err := l.Update(t.Context(), alice, func(tx *audit.Tx) error {
		tx.Changed("task", "tk_1")
		tx.Changed("session", "se_1")
		expect.True(t, len(got) == 0, "told before the commit")
		_, err := tx.Record(entry("task.queued", "tk_1"))
		return err
	})
	expect.No(t, err)
	want := []string{"task tk_1", "session se_1", "event "}
	expect.Must(t, strings.Join(got, ";") == strings.Join(want, ";"), "got %q, want %q", got, want)
}

func TestBadEntriesAreRefused(t *testing.T) {
	l := audit.New(newStore(t), audit.Options{})
	good := entry("task.queued", "tk_1")
	for name, spoil := range map[string]func(*audit.Entry){
		"no type":                func(e *audit.Entry) { e.Type = "" },
		"no subject":             func(e *audit.Entry) { e.Subject = "" },
		"no id":                  func(e *audit.Entry) { e.ID = "" },
		"short trace":            func(e *audit.Entry) { e.Trace = "abc" },
		"zero trace":             func(e *audit.Entry) { e.Trace = strings.Repeat("0", 32) },
		"upper trace":            func(e *audit.Entry) { e.Trace = strings.Repeat("A", 32) },
		"bad utf-8":              func(e *audit.Entry) { e.ID = "a\xff" },
		"half raw":               func(e *audit.Entry) { e.State = core.Raw(`{"a":`) },
		"state is no object":     func(e *audit.Entry) { e.State = 7 },
		"state is a list":        func(e *audit.Entry) { e.State = core.Raw("[]") },
		"state is a nil pointer": func(e *audit.Entry) { e.State = (*core.Filter)(nil) },
		"two raws":               func(e *audit.Entry) { e.State = core.Raw(`{} {}`) },
		"line break":             func(e *audit.Entry) { e.Detail = core.Raw("{\n}") },
		"not json":               func(e *audit.Entry) { e.Detail = make(chan int) },
		"too large":              func(e *audit.Entry) { e.Detail = strings.Repeat("x", audit.MaxEvent) },
	} {
		e := good
		spoil(&e)
		expect.Fails(t, l.Update(t.Context(), alice, func(tx *audit.Tx) error { _, err := tx.Record(e); return err }), name)
	}
	expect.Is(t, expect.Of(l.List(t.Context(), acme, core.Filter{}))(t).Info.Total, 0, "refused entries left events")
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	m, clock := newStore(t), newClock()
	l := audit.New(m, audit.Options{Clock: clock})
	record(t, l, entry("a", "1"))
	first := clock.now
	clock.now = first.Add(-time.Hour)
	record(t, l, entry("b", "1"))
	l = audit.New(m, audit.Options{Clock: clock}) // a restart with the clock still wrong
	record(t, l, entry("c", "1"))
	events, err := l.Since(t.Context(), acme, 0, 10)
	expect.Must(t, err == nil && len(events) == 3, "%v %v", events, err)
	for _, e := range events {
		expect.True(t, e.CreatedAt.Equal(first), "%s at %s, want %s", e.EventType, e.CreatedAt, first)
	}
}

// What is due in a minute is due in one, whatever the clock was set to.
func TestTimeGoesOnAfterTheClockWasSetBack(t *testing.T) {
	clock := newClock()
	l := audit.New(newStore(t), audit.Options{Clock: clock})
	record(t, l, entry("a", "1"))
	first := clock.now
	for _, c := range []struct{ set, want time.Duration }{ // from the first
		{-time.Hour, 0},
		{-59 * time.Minute, time.Minute},
		{-58 * time.Minute, 2 * time.Minute},
		{-24 * time.Hour, 2 * time.Minute}, // and back once more
		{-23 * time.Hour, 62 * time.Minute},
		{2 * time.Hour, 2 * time.Hour}, // right again
	} {
		clock.now = first.Add(c.set)
		seq := record(t, l, entry("b", "1"))
		if e, err := l.Get(t.Context(), acme, core.NewID(core.EventPrefix, acme, seq)); err != nil || e.CreatedAt.Sub(first) != c.want {
			t.Errorf("clock at %s: recorded at %s (%v), want %s", c.set, e.CreatedAt.Sub(first), err, c.want)
		}
		expect.Is(t, l.Clock().Now().Sub(first), c.want, "clock at", c.set, "it is")
	}
}

func TestRefusalIsAuditedAndReturned(t *testing.T) {
	l := audit.New(newStore(t), audit.Options{})
	cause := core.Errorf(core.Denied, "not yours")
	err := l.Refuse(t.Context(), alice, audit.Entry{Type: "tenant.violation", Subject: "task", ID: "tk_9"}, cause)
	expect.Must(t, err == cause, "got %v", err)
	page, err := l.List(t.Context(), acme, core.Filter{Kind: "tenant.*"})
	expect.Must(t, err == nil && len(page.Items) == 1, "%v %v", page, err)
	p, _ := page.Items[0].Data()
	expect.True(t, string(p.Detail) == `{"code":"DENIED","message":"not yours"}`, "detail %s", p.Detail)
	bob := core.Caller{Tenant: "t_none", Name: "bob"}
	err = l.Refuse(t.Context(), bob, audit.Entry{Type: "x", Subject: "task", ID: "1"}, cause)
	expect.True(t, errors.Is(err, cause) && errors.Is(err, store.ErrNoTenant), "a refusal that can't be audited must say so: %v", err)
}

func TestListFiltersAndPages(t *testing.T) {
	clock := newClock()
	l := audit.New(newStore(t), audit.Options{Clock: clock})
	start := clock.now
	for i := range 50 {
		clock.now = start.Add(time.Duration(i) * time.Second)
		typ := "task.queued"
		if i%5 == 0 {
			typ = "task.done"
		}
		record(t, l, audit.Entry{Type: typ, Trace: fmt.Sprintf("%032x", i%3+1), Subject: "task", ID: fmt.Sprintf("tk_%d", i%10), Detail: map[string]string{"say": fmt.Sprintf("Ünï \"%d\"", i)}})
	}
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		name        string
		f           core.Filter
		total       int
		first, last uint64 // seqs on the page
	}{
		{"all", core.Filter{}, 50, 50, 31},
		{"third page", core.Filter{Page: 3}, 50, 10, 1},
		{"past the end", core.Filter{Page: 4}, 50, 0, 0},
		{"type", core.Filter{Kind: "task.done", Size: 3}, 10, 46, 36},
		{"prefix", core.Filter{Kind: "task.*", Page: 2}, 50, 30, 11},
		{"star alone", core.Filter{Kind: "*"}, 50, 50, 31},
		{"no such type", core.Filter{Kind: "task"}, 0, 0, 0},
		{"task", core.Filter{Task: "tk_3"}, 5, 44, 4},
		{"actor", core.Filter{Agent: "alice", Size: 1}, 50, 50, 50},
		{"actors", core.Filter{Agent: "bob,alice", Size: 1}, 50, 50, 50},
		{"trace", core.Filter{Trace: fmt.Sprintf("%032x", 1), Size: 100}, 17, 49, 1},
		{"since", core.Filter{Since: at(45)}, 5, 50, 46},
		{"until", core.Filter{Until: at(5)}, 5, 5, 1},
		{"between", core.Filter{Since: at(10), Until: at(13)}, 3, 13, 11},
		{"before all", core.Filter{Until: at(-1)}, 0, 0, 0},
		{"after all", core.Filter{Since: at(99)}, 0, 0, 0},
		{"between and type", core.Filter{Since: at(10), Until: at(21), Kind: "task.done"}, 3, 21, 11},
		{"match folds case", core.Filter{Match: "üNÏ \"7\""}, 1, 8, 8},
		{"match nothing", core.Filter{Match: "absent"}, 0, 0, 0},
	} {
		page, err := l.List(t.Context(), acme, c.f)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var first, last uint64
		if n := len(page.Items); n > 0 {
			first, last = page.Items[0].Seq, page.Items[n-1].Seq
		}
		expect.True(t, page.Info.Total == c.total && first == c.first && last == c.last,
			"%s: total %d, seqs %d…%d; want %d, %d…%d", c.name, page.Info.Total, first, last, c.total, c.first, c.last)
	}
	expect.Err(t, expect.Fault(l.List(t.Context(), acme, core.Filter{Size: 101})), core.Kind(core.InvalidInput), "page size 101")
}

func TestTrailFollowsTheSubject(t *testing.T) {
	l := audit.New(newStore(t), audit.Options{})
	var prev uint64
	for i := range 6 {
		e := entry(fmt.Sprint("step.", i), "tk_1")
		e.Prev = prev
		prev = record(t, l, e)
		record(t, l, entry("noise", "tk_2"))
	}
	events := expect.Of(l.Trail(t.Context(), acme, prev, 4))(t)
	var got []string
	for _, e := range events {
		got = append(got, e.EventType)
	}
	expect.Is(t, strings.Join(got, " "), "step.5 step.4 step.3 step.2", "trail", got)
}

func TestGetRefusesForeignAndAbsentIDs(t *testing.T) {
	l := audit.New(newStore(t), audit.Options{})
	record(t, l, entry("a", "1"))
	expect.Err(t, expect.Fault(l.Get(t.Context(), acme, core.NewID("ev", acme, 2))), core.Kind(core.NotFound), "absent")
	expect.Err(t, expect.Fault(l.Get(t.Context(), acme, core.NewID("ev", other, 1))), core.ErrForeign, "foreign")
	expect.Err(t, expect.Fault(l.Prove(t.Context(), acme, core.NewID("ev", other, 1))), core.ErrForeign, "prove foreign")
	page, err := l.List(t.Context(), acme, core.Filter{Kind: "tenant.violation", Page: 1, Size: 10})
	expect.True(t, err == nil && len(page.Items) == 2, "audited: %+v, %v", page, err)
	expect.Err(t, expect.Fault(l.Get(t.Context(), acme, "nonsense")), core.Kind(core.InvalidInput), "malformed")
}

func TestViewCanNotWrite(t *testing.T) {
	l := audit.New(newStore(t), audit.Options{})
	err := l.View(t.Context(), acme, func(tx *audit.Tx) error {
		_, err := tx.Record(entry("a", "1"))
		return err
	})
	expect.Err(t, err, store.ErrReadOnly)
}

func TestEventsAreListedByTheStateTheyLedTo(t *testing.T) {
	l := audit.New(newStore(t), audit.Options{})
	record(t, l, entry("task.queued", "tk_1"))
	record(t, l, audit.Entry{Type: "task.done", Subject: "task", ID: "tk_1", State: core.Raw(`{"status":"failed","attempt":1}`), Detail: core.Raw(`{"was":"queued"}`)})
	record(t, l, audit.Entry{Type: "session.paused", Subject: "session", ID: "se_1", State: core.Raw(`{"state":"paused"}`)})
	record(t, l, audit.Entry{Type: "task.moved", Subject: "task", ID: "tk_2", Detail: core.Raw(`{"session":"se_1"}`)})
	for _, c := range []struct {
		f    core.Filter
		want string
	}{
		{core.Filter{Status: "queued"}, "task.queued"},
		{core.Filter{Status: "failed"}, "task.done"},
		{core.Filter{Status: "paused"}, "session.paused"},
		{core.Filter{Status: "nope"}, ""},
		{core.Filter{Status: `"`}, ""},
		{core.Filter{Session: "se_1"}, "task.moved session.paused"},
		{core.Filter{Session: "se_1", Status: "paused"}, "session.paused"},
		{core.Filter{Session: "se_"}, ""},
	} {
		page := expect.Of(l.List(t.Context(), acme, c.f))(t)
		var got []string
		for _, e := range page.Items {
			got = append(got, e.EventType)
		}
		expect.True(t, strings.Join(got, " ") == c.want && page.Info.Total == len(got), "%+v: %v of %d, want %q", c.f, got, page.Info.Total, c.want)
	}
}
