package fleet_test

import (
	"context"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// script is what an agent does with a prompt.
type script func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error)

// runtime is a scripted runtime: no process, everything else as the
// interface demands it.
type runtime struct {
	mu     sync.Mutex
	script script
	broken error // Open fails with it
	open   map[string]*handle
	opened int
}

func newRuntime() *runtime { return &runtime{script: done, open: map[string]*handle{}} }

func (r *runtime) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = map[string]*handle{}
}

func (r *runtime) does(s script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = s
}

func (r *runtime) breaks(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

func (r *runtime) handle(name string) *handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[name]
}

// Configures implements fleet.Configurable: the model is left to the agents.
func (r *runtime) Configures(what fleet.Setting) bool { return what == fleet.SetMode }

func (r *runtime) Check(c fleet.Create) error {
	if len(c.Command) == 0 {
		return core.Invalid("command", "", "at least one word")
	}
	return nil
}

func (r *runtime) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return nil, r.broken
	}
	h := &handle{rt: r, name: a.Name, notify: notify, kill: make(chan struct{})}
	r.open[a.Name] = h
	r.opened++
	notify(fleet.Health{Status: fleet.Idle, PID: 100})
	return h, nil
}

// handle is one open agent.
type handle struct {
	rt     *runtime
	name   string
	notify func(fleet.Health)

	mu       sync.Mutex
	kill     chan struct{} // closed to end the prompt
	paused   bool
	deaf     bool // Pause takes effect, but is not acknowledged
	stubborn bool // Interrupt is ignored
	pauses   int
	prompts  int
	closed   bool
	hears    error    // when it hears while it works
	heard    []string // said while it worked
	chosen   []string // that its program was set to
	choose   error    // that it could not be set for
}

// killed is what comes of a prompt whose process was killed.
var killed = task.Outcome{Status: task.Failed, Error: &task.Error{Code: "agent_killed", Message: "the process was killed", Retryable: true}}

func (h *handle) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	h.mu.Lock()
	h.prompts++
	h.mu.Unlock()
	h.rt.mu.Lock()
	s := h.rt.script
	h.rt.mu.Unlock()
	return s(ctx, h, p)
}

func (h *handle) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.kill)
	h.kill = make(chan struct{})
}

func (h *handle) dead() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kill
}

func (h *handle) is(f func() bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f()
}

func (h *handle) Interrupt() {
	if !h.is(func() bool { return h.stubborn }) {
		h.end()
	}
}

func (h *handle) Pause(ctx context.Context) error {
	h.mu.Lock()
	h.pauses++
	deaf := h.deaf
	h.paused = true
	h.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (h *handle) Resume(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = false
	return nil
}

func (h *handle) Stop(context.Context) error {
	h.end()
	h.notify(fleet.Health{Status: fleet.Offline, Reason: "stopped"})
	return nil
}

func (h *handle) Restart(context.Context) error {
	h.end()
	h.mu.Lock()
	h.paused = false
	h.mu.Unlock()
	h.notify(fleet.Health{Status: fleet.Starting})
	h.notify(fleet.Health{Status: fleet.Idle, PID: 101})
	return nil
}

func (h *handle) Close() error {
	h.end()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	return nil
}

// done succeeds at once.
func done(context.Context, *handle, fleet.Prompt) (task.Outcome, error) {
	return task.Outcome{Status: task.Succeeded, Output: core.Raw(`{"ok":true}`)}, nil
}

// hang works until it is interrupted.
func hang(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
	return beatUntil(ctx, h, p, nil)
}

// beatUntil keeps the lease until release, an interrupt or the end.
func beatUntil(ctx context.Context, h *handle, p fleet.Prompt, release <-chan struct{}) (task.Outcome, error) {
	kill := h.dead()
	for {
		select {
		case <-release:
			return done(ctx, h, p)
		case <-kill:
			return killed, nil
		case <-ctx.Done():
			return task.Outcome{}, ctx.Err()
		case <-time.After(100 * time.Millisecond):
			p.Beat()
		}
	}
}

// say emits events and succeeds.
func say(events ...fleet.Event) script {
	return func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		defer beat(p)()
		for _, e := range events {
			if _, err := p.Emit(ctx, e); err != nil {
				return task.Outcome{}, err
			}
		}
		return done(ctx, h, p)
	}
}

// beat keeps a prompt's task, as runtimes do however slow the disk is, until it is ended.
func beat(p fleet.Prompt) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(keeper)
		defer tick.Stop()
		for {
			p.Beat()
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(over); <-ended }
}

// keeper is how often runtimes renew a lease.
const keeper = 250 * time.Millisecond

// call makes one tool call, keeps the answer, and succeeds.
func call(e fleet.Event, answers chan<- fleet.ToolAnswer) script {
	return func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		e.Type = "tool_request"
		a, err := p.Emit(ctx, e)
		if err != nil {
			return task.Outcome{}, err
		}
		answers <- a
		if a.Decision == "abort" {
			return killed, nil
		}
		return done(ctx, h, p)
	}
}

// Hears implements fleet.Steerer as the script says.
func (h *handle) Hears() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hears
}

func (h *handle) Steer(text, _ string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, text)
	return nil
}

func (h *handle) Choose(_ context.Context, what fleet.Setting, value string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chosen = append(h.chosen, string(what)+" "+value)
	return h.choose
}
