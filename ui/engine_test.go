package ui

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/screen"
)

// echo runs test.echo tasks: it is done at once and gives its input back.
type echo struct{}

func (echo) Check(_ string, input core.Raw) (string, judge.Action, error) {
	return "echo " + string(input), judge.Action{Kind: "test.echo", Args: input}, nil
}

func (echo) Slot(string, string) (bool, string) { return true, "" }

func (echo) Start(_ context.Context, job swarm.Job) (swarm.Work, error) {
	job.Log("INFO", "echoing")
	done := make(chan struct{})
	close(done)
	return echoed{done, job.Task.Input}, nil
}

type echoed struct {
	done chan struct{}
	out  core.Raw
}

func (e echoed) Done() <-chan struct{}        { return e.done }
func (e echoed) Outcome() task.Outcome        { return task.Outcome{Status: task.Succeeded, Output: e.out} }
func (e echoed) Cancel(string)                {}
func (e echoed) Pause(context.Context) error  { return nil }
func (e echoed) Resume(context.Context) error { return nil }

// deck is a headless cockpit over a real engine on a fresh data file.
type deck struct {
	*Headless
	t   *testing.T
	eng *engine.Engine
}

func newDeck(t *testing.T, w, h int) *deck {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "deck.db"), store.Options{}))(t)
	eng := expect.Of(engine.Open(ctx, engine.Options{Store: db, Runners: map[string]swarm.Runner{"test.echo": echo{}}}))(t)
	by := core.Caller{Tenant: tenant, Name: "ada", Kind: core.Operator, Door: core.DoorCockpit}
	expect.Of(eng.Swarm.CreateTenant(ctx, by, tenant))(t)
	ran := expect.Later(func() error { return eng.Run(ctx) })
	keys := expect.Of(keymap.Load(nil, "", keymap.Words()))(t)
	env := func(tenant string) command.Env {
		caller := by
		caller.Tenant = tenant
		return command.Env{Caller: caller, Open: func(context.Context, command.Need) (*engine.Engine, error) { return eng, nil }}
	}
	d := &deck{t: t, eng: eng, Headless: NewHeadless(Options{
		Services: Of(eng), Caller: by, Keys: keys, Theme: screen.NewTheme("test", nil),
		Run: func(ctx context.Context, tenant string, args []string) (string, string, int) {
			return command.Capture(ctx, env(tenant), args)
		},
		Complete: func(ctx context.Context, tenant, line string) []command.Candidate {
			e := env(tenant)
			return command.Complete(ctx, &e, line)
		},
	}, w, h)}
	t.Cleanup(func() {
		d.Close()
		cancel()
		<-ran
		eng.Close()
		db.Close()
	})
	return d
}

// keys presses keys, each once the cockpit is quiet.
func (d *deck) keys(names ...string) {
	d.t.Helper()
	for _, n := range names {
		d.quiet()
		k := expect.Of(Key(n))(d.t)
		d.Send(k)
	}
	d.quiet()
}

func (d *deck) quiet() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	err := d.Await(ctx, (*Model).Quiet)
	expect.Must(d.t, err == nil, "not quiet: %v\n%s", err, d.text())
}

func (d *deck) line(s string) {
	d.keys(":")
	d.Send(tea.PasteMsg{Content: s})
	d.keys("enter")
}

func (d *deck) text() string { return strings.Join(d.Model().Frame().Plain(), "\n") }

func (d *deck) await(want string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	expect.Must(d.t, d.Await(ctx, func(*Model) bool { return strings.Contains(d.text(), want) }) == nil, "the screen never shows %q:\n%s", want, d.text())
}

func TestATaskIsDispatchedReadApprovedAndDone(t *testing.T) {
	d := newDeck(t, 80, 24)
	d.line(`task dispatch --kind test.echo --input '{"say":"hello"}'`)
	d.await("1 need you")
	d.keys("i")
	d.await(`"say": "hello"`)
	d.keys("a")
	d.await("approved by ada")
	d.keys("2")
	d.await("✓ succeeded")
	d.keys("enter")
	d.await("echoing")

	past, err := d.eng.Judge.Approvals(t.Context(), tenant, core.Filter{})
	expect.Must(t, err == nil && len(past.Items) == 1, "approvals %v, %v", past, err)
	a := past.Items[0]
	expect.Must(t, a.Status == judge.Approved && a.AnsweredBy == "ada" && !a.ShownAt.IsZero() && a.ShownAt.Before(a.AnsweredAt), "recorded %+v", a)
}

func TestADeniedTaskIsBlockedAndTheWorldIsFrozenAndThawed(t *testing.T) {
	d := newDeck(t, 120, 40)
	d.line(`task dispatch --kind test.echo --input '{"say":"no"}'`)
	d.await("1 need you")
	d.keys("i", "x")
	d.Send(tea.PasteMsg{Content: "not today"})
	d.keys("enter")
	d.keys("2")
	d.await("⊘ blocked")
	d.keys("E", "E")
	d.await("EMERGENCY STOP")
	d.keys("E", "E")
	d.Send(tea.PasteMsg{Content: "all is well"})
	d.keys("enter")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	expect.Must(t, d.Await(ctx, func(m *Model) bool { return !m.snap.EStop.On }) == nil, "never thawed:\n%s", d.text())
	d.line("audit reconcile")
	deltas, err := d.eng.Reconcile(t.Context(), tenant)
	expect.Must(t, err == nil && len(deltas) == 0, "unexplained: %v, %v", deltas, err)
}
