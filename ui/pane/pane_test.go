package pane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/engine/view"
	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

// bodies runs a Cmd and everything in it, and returns the replies.
func bodies(cmd tea.Cmd) []any {
	if cmd == nil {
		return nil
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		var out []any
		for _, c := range msg {
			out = append(out, bodies(c)...)
		}
		return out
	case Reply:
		return []any{msg.Body}
	}
	return nil
}

// numbers is a list of the integers below n.
func numbers(n *int, reads *[]int) Fetch[int] {
	return func(_ context.Context, f core.Filter) (core.Page[int], error) {
		*reads = append(*reads, f.Page)
		var items []int
		for i := f.Offset(); i < min(f.Offset()+f.Size, *n); i++ {
			items = append(items, i)
		}
		return core.NewPage(items, f, *n), nil
	}
}

func TestThePagerReadsOnlyTheWindow(t *testing.T) {
	n, reads := 1_000_000, []int(nil)
	fetch := numbers(&n, &reads)
	p := NewPager[int]("x")
	for _, b := range bodies(p.Refresh(fetch, 0, 40)) {
		p.Take(b, 0, 40)
	}
	expect.Must(t, p.Len() == n && len(reads) == 1, "%d rows after pages %v", p.Len(), reads)
	_, ok := p.At(500_000)
	expect.Must(t, !ok, "a row is there that was never read")
	for _, b := range bodies(p.Need(fetch, 499_990, 40)) {
		p.Take(b, 499_990, 40)
	}
	v, ok := p.At(500_000)
	expect.Must(t, ok && *v == 500_000, "row 500000 is %v, %v", v, ok)
	if p.Held() > keptPages*pageRows {
		t.Fatalf("%d rows are held", p.Held())
	}
	expect.Must(t, p.Need(fetch, 499_990, 40) == nil, "rows in memory are read again")
}

func TestThePagerReadsOnceMoreWhenTheWorldWentOn(t *testing.T) {
	n, reads := 10, []int(nil)
	fetch := numbers(&n, &reads)
	p := NewPager[int]("x")
	cmd := p.Refresh(fetch, 0, 10)
	for range 2 {
		expect.Must(t, p.Refresh(fetch, 0, 10) == nil, "reads pile up")
	}
	_, again := p.Take(bodies(cmd)[0], 0, 10)
	expect.Must(t, again, "the change in between was forgotten")
}

func TestRepliesToAnOlderFilterAreDropped(t *testing.T) {
	n, reads := 10, []int(nil)
	fetch := numbers(&n, &reads)
	p := NewPager[int]("x")
	old := bodies(p.Refresh(fetch, 0, 10))
	p.Reset(core.Filter{Match: "new"})
	mine, _ := p.Take(old[0], 0, 10)
	expect.Must(t, mine && !p.ready, "rows of another filter are shown")
}

func TestAFailedReadIsKeptAsTheReason(t *testing.T) {
	p := NewPager[int]("x")
	broken := func(context.Context, core.Filter) (core.Page[int], error) {
		return core.Page[int]{}, errors.New("disk gone")
	}
	p.Take(bodies(p.Refresh(broken, 0, 10))[0], 0, 10)
	expect.Must(t, p.Err() != nil && p.Err().Error() == "disk gone", "error %v", p.Err())
}

// oneLog are logs of one stream.
type oneLog struct {
	lines int
	reads int
}

func (w *oneLog) Log(_ context.Context, _, _ string, from uint64, n int) ([]task.LogLine, uint64, error) {
	w.reads++
	var out []task.LogLine
	for i := int(from) + 1; i <= w.lines && len(out) < n; i++ {
		out = append(out, task.LogLine{Seq: uint64(i), Message: fmt.Sprint("line ", i)})
	}
	return out, uint64(w.lines), nil
}

// drain gives the tail its replies until it is content.
func drain(t *Tail, env Env, cmd tea.Cmd) {
	for cmd != nil {
		var next tea.Cmd
		for _, b := range bodies(cmd) {
			next, _ = t.Take(env, b)
		}
		cmd = next
	}
}

func TestATailOfAnyLengthShowsItsEnd(t *testing.T) {
	w := &oneLog{lines: 100_000}
	env := Env{Snap: &view.Snapshot{}}
	tail := NewTail("x", w)
	tail.Bind("s")
	drain(tail, env, tail.Refresh(env))
	got := tail.Window(99_991, 10)
	expect.Must(t, len(got) == 10 && got[9].Message == "line 100000", "window %v", got)
	w.lines += 50
	drain(tail, env, tail.Refresh(env))
	got = tail.Window(100_041, 10)
	expect.Must(t, len(got) == 10 && got[9].Seq == 100_050, "window %v", got)
	w.lines += 1_000_000 // more than any screen can follow
	drain(tail, env, tail.Refresh(env))
	got = tail.Window(1_100_041, 10)
	expect.Must(t, len(got) == 10, "window %v", got)
	drain(tail, env, tail.Need(env, 5, 10))
	got = tail.Window(5, 10)
	expect.Must(t, len(got) == 10 && got[0].Seq == 5, "window %v", got)
	expect.Must(t, w.reads <= 12 && len(tail.lines) <= tailKeep, "%d reads, %d lines held", w.reads, len(tail.lines))
}

func TestAPageKnowsWhenItsEndWasInView(t *testing.T) {
	var p Page
	p.Resize(40, 5)
	p.Set([]Para{{Text: "intent"}, {Text: strings.Repeat("line\n", 20)}, {Text: "after"}})
	expect.Must(t, !p.Reached(1), "the end of a long paragraph was in view at once")
	for range 30 {
		p.Do("down")
	}
	expect.Must(t, p.Reached(1), "scrolled to the end, and it is not known")
	p.Resize(0, 0)
	expect.Must(t, !p.Reached(1), "nothing can be in view of no rows")
}

func TestExactTextHidesNothing(t *testing.T) {
	var p Page
	p.Resize(60, 5)
	p.Set([]Para{{Label: "args", Text: "a\u202eb\x1b[31m⟨x⟩", Exact: true}})
	c := screen.New(60, 5)
	p.Draw(c, true)
	row := c.Plain()[0]
	for _, want := range []string{"⟨U+202E⟩", "⟨ESC⟩"} {
		expect.Has(t, row, want)
	}
}

func TestEngineFilter(t *testing.T) {
	f, err := EngineFilter("Status:Running agent:Bob two words trace:AB", Env{})
	expect.Must(t, err == nil && f.Status == "running" && f.Agent == "Bob" && f.Match == "two words" && f.Trace == "ab", "%+v, %v", f, err)
	for _, bad := range []string{"!x", "~x", "a !b"} {
		_, err = EngineFilter(bad, Env{})
		expect.Fails(t, err, bad)
	}
}

func TestTimesInFewCells(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Hour, "0s"}, {0, "0s"}, {59 * time.Second, "59s"}, {time.Minute, "1m"}, {47 * time.Hour, "47h"}, {49 * time.Hour, "2d"}, {999 * 24 * time.Hour, "999d"}, {2000 * 24 * time.Hour, "5y"},
	} {
		got := Age(now, now.Add(-c.d))
		expect.True(t, got == c.want && len(got) <= 4, "age of %s is %q, want %q", c.d, got, c.want)
	}
	expect.Is(t, Left(now, now.Add(9*time.Minute+5*time.Second)), "9m05s", "left")
	expect.Is(t, Left(now, now.Add(-time.Second)), "now", "left")
	expect.True(t, Age(now, time.Time{}) == "" && Left(now, time.Time{}) == "" && Clock(now, time.Time{}) == "", "a time that is not set has text")
}

func TestATableIsScrolledSidewaysAndNotWrapped(t *testing.T) {
	var p Page
	p.Resize(20, 5)
	p.Set([]Para{{Text: "NAME      STATE     WHAT\nann       idle      all", Exact: true, Wide: true, Table: true}})
	draw := func() string {
		c := screen.New(20, 2)
		p.Draw(c, true)
		return strings.Join(c.Plain(), "|")
	}
	got, want := draw(), " NAME      STATE  …| ann       idle   …"
	expect.True(t, got == want && p.Lines() == 2, "%q, want %q", got, want)
	p.Do("right")
	got, want = draw(), "   STATE     WHAT|   idle      all"
	expect.True(t, got == want, "%q, want %q", got, want)
	expect.True(t, !p.Do("right") && p.Do("left") && !p.Do("left"), "it scrolls further than there is something to see")
}

func TestWideTextKeepsTheShapeOfTables(t *testing.T) {
	row := strings.Repeat("x", 75)
	for _, wide := range []bool{false, true} {
		var p Page
		p.Resize(78, 10)
		p.Set([]Para{{Text: row, Wide: wide}})
		one := p.Lines() == 1
		expect.True(t, one == wide, "wide %v: %d lines", wide, p.Lines())
	}
}
