package ui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/themes"
)

// crowd is a world of n agents.
func crowd(n int) *fakeWorld {
	w := newWorld()
	w.agents = nil
	for i := range n {
		w.agents = append(w.agents, &fleet.Agent{
			Name: fmt.Sprintf("agent-%04d", i), TenantID: tenant, Status: fleet.Idle, Role: "reader", Project: "bench", LastTask: "read part " + fmt.Sprint(i), UpdatedAt: start,
		})
	}
	return w
}

// churn changes half of the agents, as they do in 50 ms when each changes ten
// times a second.
func churn(w *fakeWorld, rng *rand.Rand, now time.Time) {
	states := []fleet.AgentStatus{fleet.Idle, fleet.Busy, fleet.Busy, fleet.Busy, fleet.Offline}
	for i := range w.agents {
		if i%2 == 0 {
			continue
		}
		a := *w.agents[i]
		a.Status, a.UpdatedAt = states[rng.IntN(len(states))], now
		w.agents[i] = &a
	}
}

func benchTheme(b *testing.B) Options {
	theme := expect.Of(themes.Load(themes.Default))(b)
	return Options{Theme: theme}
}

// BenchmarkFrame is one frame of a swarm of 1,000 agents, half of which have
// changed: snapshot, panes, cells, terminal text.
func BenchmarkFrame(b *testing.B) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			w, rng := crowd(1000), rand.New(rand.NewPCG(1, 1))
			r := rigOn(b, w, size[0], size[1], benchTheme(b))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				w.change(func() { churn(w, rng, start) })
				b.StartTimer()
				r.send(frameMsg{})
				if len(r.m.View().Content) == 0 {
					b.Fatal("empty frame")
				}
			}
		})
	}
}

// BenchmarkKey is one key press to the text of the next frame.
func BenchmarkKey(b *testing.B) {
	r := rigOn(b, crowd(1000), 120, 40, benchTheme(b))
	keys := []string{"j", "k"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.press(keys[i%2])
		_ = r.m.View()
	}
}

// BenchmarkFirstFrame opens a cockpit on a large world: nothing of its history
// is read before the first frame.
func BenchmarkFirstFrame(b *testing.B) {
	w := crowd(1000)
	t := w.tasks[0]
	w.tasks = make([]task.Task, 100_000)
	for i := range w.tasks {
		w.tasks[i] = t
	}
	opt := benchTheme(b)
	b.ReportAllocs()
	for b.Loop() {
		r := rigOn(b, w, 120, 40, opt)
		_ = r.m.View()
	}
}

// counter counts what goes to the terminal.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// BenchmarkWire runs the whole program while 1,000 agents change ten times a
// second and keys are pressed, and reports bytes a second and the time from
// key to frame.
func BenchmarkWire(b *testing.B) {
	if testing.Short() {
		b.Skip("takes three seconds")
	}
	for _, frame := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond} {
		b.Run("frame="+frame.String(), func(b *testing.B) {
			for b.Loop() {
				wire(b, frame, 3*time.Second)
			}
		})
	}
}

// timed notes when a key's Update is done and when its frame was drawn.
type timed struct {
	*Model
	mu   sync.Mutex
	keys []time.Duration
	sent atomic.Int64
}

func (t *timed) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := t.Model.Update(msg)
	return t, cmd
}

func (t *timed) View() tea.View {
	v := t.Model.View()
	if at := t.sent.Swap(0); at != 0 {
		t.mu.Lock()
		t.keys = append(t.keys, time.Since(time.Unix(0, at)))
		t.mu.Unlock()
	}
	return v
}

func wire(b *testing.B, frame, length time.Duration) {
	w, rng := crowd(1000), rand.New(rand.NewPCG(1, 1))
	opt := benchTheme(b)
	r := rigOn(b, w, 120, 40, opt) // for its keymap
	opt = r.m.opt
	opt.Clock, opt.After, opt.Frame = nil, nil, frame
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	opt.Context = ctx
	m := &timed{Model: New(opt)}
	out := &counter{}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(out), tea.WithoutSignals(), tea.WithoutSignalHandler(),
		tea.WithWindowSize(120, 40), tea.WithColorProfile(colorprofile.ANSI))
	done := expect.Later(func() error { _, err := p.Run(); return err })
	time.Sleep(200 * time.Millisecond)
	first := out.n.Load()
	end := time.Now().Add(length)
	for i := 0; time.Now().Before(end); i++ {
		w.change(func() { churn(w, rng, time.Now()) })
		if i%4 == 0 {
			k, _ := Key([]string{"j", "k"}[i/4%2])
			m.sent.Store(time.Now().UnixNano())
			p.Send(k)
		}
		time.Sleep(50 * time.Millisecond)
	}
	total := out.n.Load() - first
	cancel()
	<-done
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.keys)
	b.ReportMetric(float64(total)/length.Seconds(), "B/s")
	b.ReportMetric(float64(first), "B/first")
	if n := len(m.keys); n > 0 {
		b.ReportMetric(float64(m.keys[n/2].Microseconds()), "µs/key-p50")
		b.ReportMetric(float64(m.keys[n*99/100].Microseconds()), "µs/key-p99")
	}
}

// fleetOf is a world of exec agents and ACP sessions that are all at work: each
// session has as much to show as is kept of one.
func fleetOf(exec, sessions int) *fakeWorld {
	w := crowd(exec + sessions)
	w.acts = map[string]fleet.Activity{}
	for i := range w.agents {
		a := *w.agents[i]
		a.Status, a.TaskID, a.Runtime = fleet.Busy, id("tk", 1), "exec"
		a.Usage = budget.Usage{Tokens: int64(1000 * i), CostUSD: float64(i) / 10}
		if i >= exec {
			a.Runtime = "acp"
			w.acts[a.Name] = fullActivity()
		}
		w.agents[i] = &a
	}
	return w
}

func fullActivity() fleet.Activity {
	act := fleet.Activity{TaskID: id("tk", 1), Made: 500, Drew: 200}
	for i := range 200 {
		act.Plan = append(act.Plan, fleet.Step{Text: fmt.Sprintf("step %d of a long plan", i), Status: "pending"})
	}
	for i := range 100 {
		act.Calls = append(act.Calls, fleet.Call{CallID: fmt.Sprint(i), Tool: "execute", Title: "go test ./...", Asked: i%2 == 0, State: fleet.CallDone, Began: start, Ended: start, Number: i + 1})
	}
	for i := range 50 {
		act.Diffs = append(act.Diffs, fleet.Diff{Path: fmt.Sprintf("dir/file%d.go", i), Text: "@@ -1,300 +1,300 @@\n" + strings.Repeat("+a line that was added\n-and one that went\n", 300), At: start, Number: i + 1})
	}
	return act
}

// BenchmarkFleet is one frame of 100 exec agents and 8 ACP sessions, half of
// which have changed, with the sheet of a session beside the list, and with it
// opened. It must stay below 16 ms.
func BenchmarkFleet(b *testing.B) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		for _, open := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%d/open=%v", size[0], size[1], open), func(b *testing.B) {
				r, change := busyFleet(b, size[0], size[1], open)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					change()
					b.StartTimer()
					r.send(frameMsg{})
					if len(r.m.View().Content) == 0 {
						b.Fatal("empty frame")
					}
				}
			})
		}
	}
}

func busyFleet(tb testing.TB, w, h int, open bool) (r *rig, change func()) {
	theme := expect.Of(themes.Load(themes.Default))(tb)
	world, rng := fleetOf(100, 8), rand.New(rand.NewPCG(1, 1))
	r = rigOn(tb, world, w, h, Options{Theme: theme})
	r.keys("1", "G", "k")
	if open {
		r.keys("enter")
	}
	return r, func() { world.change(func() { churn(world, rng, start) }) }
}
