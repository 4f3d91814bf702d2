package skill

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// MaxResult is the largest result of one try, in bytes of JSON: it has to fit
// into the parameters of the next.
const MaxResult = core.MaxInput

// leaveGrace is how long a function that ran in this process may take to
// return after it was cancelled. One that does not is left behind, because
// nothing can end it from outside; what it returns later is dropped.
const leaveGrace = 500 * time.Millisecond

// Func carries out one try of a skill within this process. It returns a JSON
// object of at most MaxResult bytes, or why there is none, and soon after ctx
// ended. Hold is where it can be paused.
type Func func(ctx context.Context, call Call, hold *Hold) (core.Raw, error)

// RunFunc begins fn and returns at once. A panic of fn is the failure of this
// try alone, with code "panic"; one in a goroutine that fn starts is not
// caught. The work is over at the latest 500 ms after Cancel or the end of
// ctx, whatever fn does. Its pause is in effect when fn stands at one of its
// pause points.
//
// An error's code becomes the outcome's in lower case (invalid_input,
// not_found, conflict, denied, unavailable; failed for any other); only what
// is unavailable may be worth another try. A function that was cancelled and
// still gives a result has done its work: that counts.
func RunFunc(ctx context.Context, call Call, fn Func) swarm.Work {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &funcWork{ctx: ctx, cancel: cancel, hold: new(Hold), done: make(chan struct{})}
	returned := make(chan funcReply, 1)
	go w.run(call, fn, returned)
	go w.follow(returned)
	return w
}

// funcWork is one run of a Func.
type funcWork struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	hold   *Hold
	done   chan struct{}
	out    task.Outcome // valid after done
}

var _ swarm.Work = (*funcWork)(nil)

type funcReply struct {
	result core.Raw
	err    error
}

// run calls fn; it replies even when fn panics or ends its goroutine.
func (w *funcWork) run(call Call, fn Func, returned chan<- funcReply) {
	r := funcReply{err: &Failure{Code: "panic", Message: "the skill ended its goroutine"}}
	defer func() {
		if p := recover(); p != nil {
			r = funcReply{err: panicked("the skill", p)}
		}
		w.hold.state.Change(func() { w.hold.over = true })
		returned <- r
	}()
	result, err := fn(w.ctx, call, w.hold)
	r = funcReply{result, err}
}

func (w *funcWork) follow(returned <-chan funcReply) {
	defer close(w.done)
	defer w.cancel(nil)
	select {
	case r := <-returned:
		w.out = w.outcome(r)
		return
	case <-w.ctx.Done():
	}
	select {
	case r := <-returned:
		w.out = w.outcome(r)
	case <-time.After(leaveGrace):
		w.out = cancelled(w.why() + "; the skill does not return and was left behind")
	}
}

func (w *funcWork) outcome(r funcReply) task.Outcome {
	if r.err == nil {
		r.err = checkResultObject(r.result)
	}
	switch {
	case r.err == nil:
		return task.Outcome{Status: task.Succeeded, Output: r.result, Text: string(r.result)}
	case w.ctx.Err() != nil:
		return cancelled(w.why())
	}
	return failedWith(r.err)
}

// why is the reason of the end that was asked for.
func (w *funcWork) why() string {
	if c, ok := errors.AsType[*cutShort](context.Cause(w.ctx)); ok {
		return c.reason
	}
	return "the engine is closing"
}

func (w *funcWork) Done() <-chan struct{} { return w.done }
func (w *funcWork) Outcome() task.Outcome { <-w.done; return w.out }
func (w *funcWork) Cancel(reason string)  { w.cancel(&cutShort{reason}) }

func (w *funcWork) Pause(ctx context.Context) error {
	if err := w.hold.pause(ctx); err != nil {
		return fmt.Errorf("pause the skill: it has not come to a point where it can stand still: %w", err)
	}
	return nil
}

func (w *funcWork) Resume(context.Context) error {
	w.hold.resume()
	return nil
}

// Failure is an error with the code that an outcome shall carry, for a Func
// that knows better than its error's class.
type Failure task.Error

func (f *Failure) Error() string { return f.Message }

// failedWith is the outcome of a try that ended with an error.
func failedWith(err error) task.Outcome {
	e := task.Error{Code: "failed"}
	if f, ok := errors.AsType[*Failure](err); ok {
		e = task.Error(*f)
	} else if c := core.AsError(err); c.Code != core.Internal {
		e.Code, e.Retryable = strings.ToLower(string(c.Code)), c.Code == core.Unavailable
	}
	e.Message = core.ClipTo(err.Error(), maxMessage)
	return task.Outcome{Status: task.Failed, Error: &e}
}

func cancelled(why string) task.Outcome {
	return task.Outcome{Status: task.Cancelled, Error: &task.Error{Code: "cancelled", Message: core.ClipTo(why, maxMessage)}}
}

// checkResultObject reports a result that is not one JSON object of at most
// MaxResult bytes.
func checkResultObject(result core.Raw) error {
	if err := core.CheckObject("result", result, MaxResult); err != nil {
		return &Failure{Code: "bad_result", Message: core.AsError(err).Message}
	}
	return nil
}

// maxMessage is the longest message of a failure, in characters (requirement 1.6).
const maxMessage = 4096

// reason is a panic's value on one short line. The stack stays out: it is
// nothing the operator of a skill can use.
func reason(p any) string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, fmt.Sprint(p))
	return core.ClipTo(text, 200)
}

// maxStack bounds the stack in a failure, in bytes.
const maxStack = 4096

// panicked is the failure of what panicked, with the stack; it is called by the
// function that recovers.
func panicked(what string, p any) *Failure {
	stack := debug.Stack()
	return &Failure{
		Code: "panic", Message: what + " panicked: " + reason(p),
		Details: core.MustEncode(map[string]string{"stack": strings.ToValidUTF8(string(stack[:min(len(stack), maxStack)]), "")}),
	}
}

// Hold lets a function be paused: it stands still where it says that it can.
// RunFunc makes one for each run.
type Hold struct {
	state  core.Condition // of what follows
	paused bool
	still  bool // the function stands at a pause point, or idles
	over   bool // it has returned
}

// Wait is a pause point: it returns at once, or when a pause is over. Its
// error is that of ctx.
func (h *Hold) Wait(ctx context.Context) error {
	free := false
	if h.state.Look(func() { free = !h.paused }); free {
		return ctx.Err()
	}
	h.state.Change(func() { h.still = true })
	defer h.state.Change(func() { h.still = false })
	_ = h.state.Until(ctx, func() bool { return !h.paused }) // or until ctx ends
	return ctx.Err()
}

// Sleep waits for d, not counting the time in which it is paused.
func (h *Hold) Sleep(ctx context.Context, d time.Duration) error {
	for {
		if err := h.Wait(ctx); err != nil || d <= 0 {
			return err
		}
		free, began := false, time.Now()
		moved := h.state.Look(func() { free = !h.paused })
		if !free {
			continue
		}
		select {
		case <-time.After(d):
			d = 0
		case <-moved:
			d -= time.Since(began)
		case <-ctx.Done():
		}
	}
}

// Idle calls wait, which does nothing but wait for something outside, so that
// a pause is in effect during it already. It returns after a pause is over.
func (h *Hold) Idle(ctx context.Context, wait func()) error {
	h.state.Change(func() { h.still = true })
	func() {
		defer h.state.Change(func() { h.still = false })
		wait()
	}()
	return h.Wait(ctx)
}

// pause returns once the function stands still or has returned, or with the
// error of ctx: it is paused at its next pause point then.
func (h *Hold) pause(ctx context.Context) error {
	h.state.Change(func() { h.paused = true })
	_ = h.state.Until(ctx, func() bool { return h.still || h.over }) // or until ctx ends
	return ctx.Err()
}

// Standing says whether it is paused; moved is closed when that may have changed.
func (h *Hold) Standing() (held bool, moved <-chan struct{}) {
	moved = h.state.Look(func() { held = h.paused })
	return held, moved
}

func (h *Hold) resume() { h.state.Change(func() { h.paused = false }) }

// Runner carries out the skills of one runner kind. Drivers provide them.
type Runner interface {
	// Check refuses, when a skill is loaded, a runner section that could never
	// run; the error names the field ("runner.argv").
	Check(spec Spec) error
	// Start begins one try and returns at once. ctx ends when the engine
	// closes. The work must end soon after Cancel; its Outcome carries the
	// result as a JSON object in Output. Time-outs, retries and the check
	// against returns_schema are the caller's.
	Start(ctx context.Context, call Call) (swarm.Work, error)
}

// Call is one try of a skill.
type Call struct {
	Skill   *Skill
	Tenant  string
	TaskID  string
	TraceID string
	AgentID string              // the subagent that runs it
	Session string              // the task's, "" for none
	Params  core.Raw            // valid, with defaults
	Results map[string]core.Raw // of earlier skills of the chain, by name
	Run     string              // names the run for process marks, unique for each try
	Step    string              // place of this skill in the task's run, the same for each try
	Attempt int                 // of the task
	// Files are what was judged; a runner that finds others starts nothing.
	Files []judge.File
	// Log receives output lines: level DEBUG|INFO|WARN|ERROR. It blocks when
	// the log falls behind.
	Log func(level, line string)

	// waits stops the time limits while others are waited for; may be nil.
	waits func(on bool)
}

// Forgetter is implemented by runners that keep something of a task until it is
// over: they let go of it in the commit that ends the task.
type Forgetter interface {
	Forget(tx *audit.Tx, task string) error
}

// Binder is implemented by runners whose specs name files of a work directory.
type Binder interface {
	// Bind finds the files that a spec names, as they are now.
	Bind(tenant string, spec Spec) []judge.File
}

// Effecter is implemented by runners that know what a spec does outside
// itself, whatever its file declares: a skill has these effects besides.
type Effecter interface {
	Effects(spec Spec) []Effect
}

// StepSpan is the W3C span-id of a skill's place in one attempt of its task.
func StepSpan(tenant, task, step string, attempt int) string {
	return core.SpanID(tenant, "step", task+" "+step, attempt)
}

// Waits stops the time limits of the try while others are waited for.
func (c *Call) Waits(on bool) {
	if c.waits != nil {
		c.waits(on)
	}
}

// Traceparent is what a skill passes on to what it causes elsewhere; "" for one
// that belongs to no trace.
func (c *Call) Traceparent() string {
	if c.TraceID == "" {
		return ""
	}
	return core.Traceparent(c.TraceID, StepSpan(c.Tenant, c.TaskID, c.Step, c.Attempt))
}
