package ui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/screen"
)

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// rig drives the model in the test's goroutine: every Cmd runs at once, timers
// wait for the clock to be moved, the bell is rung by hand.
type rig struct {
	t      testing.TB
	w      *fakeWorld
	m      *Model
	clock  *clock
	ran    []string
	runs   func(line []string) (string, string, int)
	timers []timer
	quit   bool
}

type timer struct {
	at  time.Time
	msg tea.Msg
}

// later is what a timer's Cmd returns: the rig keeps it until its time.
type later timer

func newRig(t testing.TB, w, h int) *rig { return rigOn(t, newWorld(), w, h, Options{}) }

func rigOn(t testing.TB, world *fakeWorld, w, h int, opt Options) *rig {
	t.Helper()
	r := &rig{t: t, w: world, clock: &clock{now: start}}
	keys := expect.Of(keymap.Load(nil, "", keymap.Words()))(t)
	opt.Services, opt.Keys, opt.Clock = world.services(), keys, r.clock
	opt.Caller = core.Caller{Tenant: tenant, Name: "ada", Kind: core.Operator, Door: core.DoorCockpit}
	if opt.Theme == nil {
		opt.Theme = screen.NewTheme("test", nil)
	}
	opt.Run = func(_ context.Context, _ string, args []string) (string, string, int) {
		r.ran = append(r.ran, strings.TrimSuffix(strings.Join(args, " "), " -o sentence"))
		if r.runs != nil {
			return r.runs(args)
		}
		return "ok\n", "", 0
	}
	opt.Complete = func(_ context.Context, _, line string) []command.Candidate {
		return []command.Candidate{{Text: "task", Help: "tasks"}, {Text: "tenant", Help: "tenants"}}
	}
	opt.After = func(d time.Duration, msg tea.Msg) tea.Cmd {
		at := r.clock.Now().Add(d)
		return func() tea.Msg { return later{at, msg} }
	}
	r.m = New(opt)
	mute := make(chan struct{})
	close(mute)
	r.m.bell = mute // tests ring by hand
	r.do(func() tea.Msg { return tea.WindowSizeMsg{Width: w, Height: h} })
	r.do(r.m.tick())
	r.at("changes")
	return r
}

// do runs a Cmd and everything that follows from it.
func (r *rig) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			r.do(c)
		}
	case awayMsg:
		r.send(msg.then(msg.Run()))
	case later:
		r.timers = append(r.timers, timer(msg))
	case tea.QuitMsg:
		r.quit = true
	default:
		r.send(msg)
	}
}

func (r *rig) send(msg tea.Msg) {
	_, cmd := r.m.Update(msg)
	r.do(cmd)
}

// wait moves the clock and fires the timers that are due.
func (r *rig) wait(d time.Duration) {
	end := r.clock.Now().Add(d)
	for {
		next := -1
		for i, t := range r.timers {
			if !t.at.After(end) && (next < 0 || t.at.Before(r.timers[next].at)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		t := r.timers[next]
		r.timers = append(r.timers[:next], r.timers[next+1:]...)
		if now := r.clock.Now(); t.at.After(now) {
			r.clock.add(t.at.Sub(now))
		}
		r.send(t.msg)
	}
	r.clock.add(end.Sub(r.clock.Now()))
}

// keys presses keys one after another, a second apart.
func (r *rig) keys(names ...string) {
	r.t.Helper()
	for _, n := range names {
		r.wait(1100 * time.Millisecond)
		r.press(n)
	}
}

// press presses a key now, and no other together with it.
func (r *rig) press(name string) {
	r.t.Helper()
	r.hit(name)
	if r.m.guard.held > 0 {
		r.wait(together)
	}
}

// hit presses a key that others may come together with.
func (r *rig) hit(name string) {
	r.t.Helper()
	k := expect.Of(Key(name))(r.t)
	r.send(k)
}

func (r *rig) typeText(s string) {
	for _, c := range s {
		name := string(c)
		if c == ' ' {
			name = "space"
		}
		r.press(name)
	}
}

// change changes the world and lets the cockpit see it.
func (r *rig) change(fn func()) {
	r.w.change(fn)
	r.send(bellMsg{})
	r.wait(100 * time.Millisecond)
}

// at puts the cursor of the fleet on an agent, if it is there.
func (r *rig) at(name string) {
	r.m.fleet.Select(name)
	r.m.dirty = true
	r.do(r.m.sync())
}

func (r *rig) text() string { return strings.Join(r.m.Frame().Plain(), "\n") }

func (r *rig) has(want string) {
	r.t.Helper()
	expect.Must(r.t, strings.Contains(r.text(), want), "the screen lacks %q:\n%s", want, r.text())
}

func (r *rig) lacks(not string) {
	r.t.Helper()
	expect.Must(r.t, !strings.Contains(r.text(), not), "the screen shows %q:\n%s", not, r.text())
}

func (r *rig) ranNothing() {
	r.t.Helper()
	expect.Must(r.t, len(r.ran) == 0, "commands ran: %q", r.ran)
}

// views are golden screens of each size, each reached by its keys.
func views(t *testing.T, sizes [][2]int, open func(t testing.TB, w, h int) *rig, all [][2]string) {
	t.Helper()
	for _, size := range sizes {
		for _, v := range all {
			name := fmt.Sprintf("%s-%dx%d", v[0], size[0], size[1])
			t.Run(name, func(t *testing.T) {
				r := open(t, size[0], size[1])
				r.keys(strings.Fields(v[1])...)
				r.wait(deadTime)
				r.golden(name)
			})
		}
	}
}
