package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

// glass is a runtime whose agents have a terminal in which what is typed is shown.
type glass struct {
	fleet.Runtime
	w *world
}

func (g glass) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	h, err := g.Runtime.Open(ctx, a, notify)
	p := &pane{Handle: h, moved: make(chan struct{})}
	g.w.panes[a.Name] = p
	return p, err
}

type pane struct {
	fleet.Handle
	mu     sync.Mutex
	text   string
	rev    uint64
	runs   bool
	unseen bool
	size   terminal.Size
	moved  chan struct{}
}

func (p *pane) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	p.rev++
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *pane) Screen(known uint64, _ int) *terminal.Screen {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known == p.rev && known != 0 {
		return nil
	}
	return &terminal.Screen{Rev: p.rev, Size: p.size, Lines: []terminal.Line{{{Text: p.text, Cells: len(p.text)}}}, Runs: p.runs, Unseen: p.unseen}
}

func (p *pane) Rev() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rev
}

func (p *pane) Unseen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unseen
}

func (p *pane) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved
}

func (p *pane) Begin(context.Context) error { p.change(func() { p.runs = true }); return nil }

func (p *pane) Type(in []terminal.Input) error {
	p.change(func() { p.text += terminal.Said(in) })
	return nil
}

func (p *pane) Resize(to terminal.Size) error { p.change(func() { p.size = to }); return nil }

func (p *pane) Masked(text string) string { return strings.ReplaceAll(text, "hunter2", "[secret PW]") }

func glassWorld(t *testing.T) *world {
	w := newWorld(t)
	w.panes = map[string]*pane{}
	w.wrap = func(r fleet.Runtime) fleet.Runtime { return glass{r, w} }
	w.Reopen()
	w.run()
	w.create("it")
	return w
}

func (w *world) seat(by core.Caller) *fleet.Seat {
	w.T.Helper()
	return expect.Of(w.fleet.Attach(w.T.Context(), by, "it"))(w.T)
}

func (w *world) take(s *fleet.Seat, want bool) {
	w.T.Helper()
	mine := expect.Of(s.Take(w.T.Context()))(w.T)
	if mine != want {
		w.T.Errorf("took the keyboard: %t, want %t; %+v", mine, want, s.Desk())
	}
}

func typeIn(w *world, s *fleet.Seat, text string) error {
	return s.Type(w.T.Context(), []terminal.Input{{Text: text}, {Key: "enter"}})
}

func text(s *fleet.Seat) string {
	pic, _ := s.Screen(0, 0)
	return pic.Text()
}

var bob = core.Caller{Tenant: home, Name: "bob", Kind: core.Operator, Door: core.DoorSSH}

func TestOneTypesWhileSeveralWatch(t *testing.T) {
	w := glassWorld(t)
	a, b := w.seat(alice), w.seat(bob)
	expect.Fails(t, typeIn(w, a, "x"), "typed without the keyboard")
	w.take(a, true)
	w.take(b, false)
	d := a.Desk()
	expect.True(t, d.Writer == "alice" && d.Mine && d.Asks == "bob" && strings.Join(d.Watchers, " ") == "alice bob", "desk %+v", d)
	w.No(typeIn(w, a, "ls hunter2"))
	err := typeIn(w, b, "rm")
	expect.True(t, core.AsError(err).Code == core.Conflict && strings.Contains(err.Error(), "alice types"), "bob typed: %v", err)
	expect.Is(t, text(b), "ls hunter2<enter>", "bob sees")
	w.No(a.Leave(t.Context()))
	d = b.Desk()
	expect.True(t, d.Mine && d.Asks == "", "after alice let go: %+v", d)
	w.No(typeIn(w, b, "pwd"))
	again := w.seat(bob)
	w.take(again, true) // the same person
	expect.True(t, b.Desk().Own && !again.Desk().Own && !a.Desk().Own, "bob's other seat has it: %+v", b.Desk())
	w.No(again.Close(t.Context()))
	w.No(b.Close(t.Context()))
	lines := expect.Of(w.fleet.Log(t.Context(), home, "it", core.Filter{Size: 50}))(w.T)
	var said []string
	for _, l := range lines.Items {
		if l.Source == "typed" {
			said = append(said, l.Message)
		}
	}
	expect.Is(t, strings.Join(said, "|"), "typed by bob: pwd<enter>|typed by alice: ls [secret PW]<enter>", "log")
	var events []string
	page := expect.Of(w.Ledger.List(t.Context(), home, core.Filter{Size: 100}))(w.T)
	slices.Reverse(page.Items)
	for _, e := range page.Items {
		if strings.HasPrefix(e.EventType, "agent.terminal") || e.EventType == "agent.typed" {
			events = append(events, e.EventType+" "+e.Actor)
		}
	}
	want := "agent.terminal_taken alice|agent.terminal_asked bob|agent.typed alice|agent.terminal_taken bob|agent.typed bob|agent.terminal_taken bob|agent.terminal_left bob"
	got := strings.Join(events, "|")
	expect.True(t, got == want, "events\n%s\nwant\n%s", got, want)
}

func TestAPasswordIsInNoLog(t *testing.T) {
	w := glassWorld(t)
	a := w.seat(alice)
	w.take(a, true)
	w.No(typeIn(w, a, "sudo"))
	h := w.panes["it"]
	h.change(func() { h.unseen = true })
	w.No(typeIn(w, a, "geheim"))
	lines := expect.Of(w.fleet.Log(t.Context(), home, "it", core.Filter{Size: 50}))(w.T)
	all := fmt.Sprint(lines.Items)
	expect.True(t, !strings.Contains(all, "geheim") && strings.Contains(all, "6 characters"), "log %s", all)
	expect.Is(t, text(a), "sudo<enter>geheim<enter>", "typed")
	got := terminal.Shown([]terminal.Input{{Text: "geheim"}, {Key: "enter"}}, true)
	expect.True(t, !strings.Contains(got, "geheim") && strings.Contains(got, "6 characters") && strings.Contains(got, "<enter>"), "shown %q", got)
}

func TestNothingIsTypedIntoAPausedOrStoppedAgent(t *testing.T) {
	w := glassWorld(t)
	a := w.seat(alice)
	w.take(a, true)
	_, err := w.fleet.Pause(t.Context(), alice, "it")
	w.No(err)
	expect.Is(t, core.AsError(typeIn(w, a, "x")).Code, core.Conflict, "paused")
	expect.Of(w.fleet.Resume(t.Context(), alice, "it"))(w.T)
	w.No(typeIn(w, a, "y"))
	expect.Of(w.swarm.EStops.Press(t.Context(), alice, "test"))(w.T)
	err = typeIn(w, a, "z")
	expect.True(t, core.AsError(err).Code == core.Conflict && strings.Contains(err.Error(), "emergency stop"), "estop: %v", err)
	expect.Is(t, text(a), "y<enter>", "typed")
	agent := alice
	agent.Kind = core.Agent
	s := expect.Of(w.fleet.Attach(t.Context(), agent, "it"))(w.T)
	expect.Is(t, core.AsError(expect.Fault(s.Take(t.Context()))).Code, core.Denied, "an agent took the keyboard")
}

func TestAWatcherSeesTheNewestAndHoldsNobodyUp(t *testing.T) {
	w := glassWorld(t)
	a, b := w.seat(alice), w.seat(bob)
	w.take(a, true)
	for range 50 { // nobody waits for b
		w.No(a.Type(t.Context(), []terminal.Input{{Text: "k"}}))
	}
	pic, err := b.Screen(0, 0)
	w.No(err)
	expect.Is(t, pic.Text(), strings.Repeat("k", 50), "sees")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	expect.Fails(t, b.Wait(ctx, pic.Rev, b.Desk()), "a wait ended though nothing has changed")
	woke := expect.Later(func() error { return b.Wait(t.Context(), pic.Rev, b.Desk()) })
	w.No(a.Resize(terminal.Size{Cols: 100, Rows: 30}))
	w.No(<-woke)
	_, err = w.fleet.Attach(t.Context(), alice, "nobody")
	expect.True(t, core.AsError(err).Code != "", "attached to nobody: %v", err)
}
