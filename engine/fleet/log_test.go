package fleet_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func (w *world) log(name string, f core.Filter) core.Page[task.LogLine] {
	w.T.Helper()
	return expect.Of(w.fleet.Log(w.T.Context(), home, name, f))(w.T)
}

func TestLogIsNewestFirstOneLineAPage(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(say(
		fleet.Event{Type: "message", Text: "first"},
		fleet.Event{Type: "log", Level: "WARN", Text: "second"},
		fleet.Event{Type: "message", Text: "third"},
	))
	w.create("bob")
	if p := w.log("bob", core.Filter{}); len(p.Items) != 0 || p.Info.Total != 0 || p.Info.PageSize != 1 {
		t.Fatalf("empty: %+v", p)
	}
	task := w.assign("bob", "speak")
	w.result(task.TaskID)
	p := w.log("bob", core.Filter{})
	expect.Must(t, len(p.Items) == 1 && p.Items[0].Message == "third" && p.Info.Total == 4 && p.Info.PageSize == 1 && p.Info.Next, "default page: %+v", p)
	p = w.log("bob", core.Filter{Size: 3, Page: 1})
	expect.True(t, p.Items[1].Message == "second" && p.Items[1].Level == "WARN" && p.Items[1].TaskID == task.TaskID && p.Items[0].Source == "message",
		"lines: %+v", p.Items)
	p = w.log("bob", core.Filter{Size: 3, Page: 2})
	expect.True(t, len(p.Items) == 1 && p.Items[0].Message == "speak" && p.Items[0].Source == "task" && !p.Info.Next && p.Info.Previous, "last page: %+v", p)
	p = w.log("bob", core.Filter{Page: 5})
	expect.True(t, len(p.Items) == 0 && p.Info.Total == 4, "past the end: %+v", p)
	p = w.log("bob", core.Filter{Match: "SEC"})
	expect.True(t, len(p.Items) == 1 && p.Info.Total == 1, "match: %+v", p)
	_, err := w.fleet.Log(t.Context(), home, "bob", core.Filter{Size: 101})
	refused(t, err, core.InvalidInput, "field", "page_size")
}

func TestNoUpdateIsLost(t *testing.T) {
	w := newWorld(t).run()
	const n = 5000
	events := make([]fleet.Event, n)
	for i := range events {
		events[i] = fleet.Event{Type: "message", Text: fmt.Sprint("update ", i)}
	}
	w.rt.does(say(events...))
	w.create("bob")
	w.result(w.assign("bob", "flood").TaskID)
	p := w.log("bob", core.Filter{Size: 100})
	expect.Must(t, p.Info.Total == n+1 && p.Items[0].Message == fmt.Sprint("update ", n-1), "%+v", p.Info)
	for page := 1; page <= n/100; page++ {
		for i, l := range w.log("bob", core.Filter{Size: 100, Page: page}).Items {
			want := fmt.Sprint("update ", n-1-(page-1)*100-i)
			expect.Must(t, l.Message == want, "page %d line %d: %q, want %q", page, i, l.Message, want)
		}
	}
}

func TestLogOfANewAgentBeginsWithIt(t *testing.T) {
	w := newWorld(t).run()
	w.rt.does(say(fleet.Event{Type: "message", Text: "old"}))
	w.create("bob")
	old := w.assign("bob", "x")
	w.result(old.TaskID)
	expect.No(t, w.fleet.Delete(t.Context(), alice, "bob"))
	lines, last, err := w.tasks.Log(t.Context(), home, "agent:bob", 1, 10)
	expect.True(t, err == nil && len(lines) == 0 && last != 0, "its lines stay: %+v, %d, %v", lines, last, err)
	w.create("bob")
	p := w.log("bob", core.Filter{})
	expect.True(t, p.Info.Total == 0 && len(p.Items) == 0, "the old agent's lines: %+v", p)
	h, err := w.fleet.History(t.Context(), home, "bob", core.Filter{})
	expect.True(t, err == nil && h.Info.Total == 0, "the old agent's tasks: %+v, %v", h, err)
	w.rt.does(say(fleet.Event{Type: "message", Text: "new"}))
	w.result(w.assign("bob", "y").TaskID)
	p = w.log("bob", core.Filter{Size: 10})
	expect.True(t, p.Info.Total == 2 && p.Items[0].Message == "new", "its own lines: %+v", p)
	tk, err := w.tasks.Get(t.Context(), home, old.TaskID)
	expect.True(t, err == nil && tk.Status == task.Succeeded, "the old task is gone: %+v, %v", tk, err)
}

func TestHostileTextsAreBoundedAndValid(t *testing.T) {
	w := newWorld(t).run()
	huge := strings.Repeat("A", 1<<20)
	nan := math.NaN()
	w.rt.does(say(
		fleet.Event{Type: "message", Text: "\x1b]52;c;aGk=\a\x1b[2J\u202Eevil\x00"},
		fleet.Event{Type: "message", Text: "bad \xff\xfe utf8"},
		fleet.Event{Type: "message", Text: huge},
		fleet.Event{Type: "log", Level: "PANIC", Text: "odd level"},
		fleet.Event{Type: "hologram", Text: "odd type"},
		fleet.Event{Type: "attention", Text: huge},
		fleet.Event{Type: "usage", Tokens: -5, CostUSD: 1},
		fleet.Event{Type: "usage", Tokens: 1, CostUSD: nan},
		fleet.Event{Type: "usage", Tokens: 7, CostUSD: 0.5},
		fleet.Event{Type: "tool_result", CallID: "never asked", Status: "ok", Output: core.Raw(`{"x":1}`)},
	))
	w.create("bob")
	r := w.result(w.assign("bob", "attack").TaskID)
	expect.Must(t, r.Status == task.Succeeded, "%+v", r.Error)
	p := w.log("bob", core.Filter{Size: 100})
	expect.Is(t, p.Info.Total, 10)
	for _, l := range p.Items {
		expect.True(t, utf8.ValidString(l.Message) && len(l.Message) <= 65<<10, "line of %d bytes: %.40q", len(l.Message), l.Message)
		expect.Has(t, "DEBUG INFO WARN ERROR", l.Level, "level")
	}
	u := w.agent("bob").Usage
	expect.True(t, u.Tokens == 7 && u.CostUSD == 0.5, "usage: %+v", u)
	w.consistent()
}
