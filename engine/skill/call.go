package skill

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/core"
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
	patience := time.NewTimer(leaveGrace)
	defer patience.Stop()
	select {
	case r := <-returned:
		w.out = w.outcome(r)
	case <-patience.C:
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
	var c *cancelCause
	if errors.As(context.Cause(w.ctx), &c) {
		return c.reason
	}
	return "the engine is closing"
}

type cancelCause struct{ reason string }

func (c *cancelCause) Error() string { return c.reason }

func (w *funcWork) Done() <-chan struct{} { return w.done }
func (w *funcWork) Outcome() task.Outcome { <-w.done; return w.out }
func (w *funcWork) Cancel(reason string)  { w.cancel(&cancelCause{reason}) }

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
	var f *Failure
	var c *core.Error
	switch {
	case errors.As(err, &f):
		e = task.Error(*f)
	case errors.As(err, &c) && c.Code != core.Internal:
		e.Code, e.Retryable = strings.ToLower(string(c.Code)), c.Code == core.Unavailable
	}
	e.Message = shorten(err.Error(), maxMessage)
	return task.Outcome{Status: task.Failed, Error: &e}
}

func cancelled(why string) task.Outcome {
	return task.Outcome{Status: task.Cancelled, Error: &task.Error{Code: "cancelled", Message: shorten(why, maxMessage)}}
}

// checkResultObject reports a result that is not one JSON object of at most
// MaxResult bytes.
func checkResultObject(result core.Raw) error {
	if err := core.CheckObject("result", result, MaxResult); err != nil {
		return &Failure{Code: "bad_result", Message: core.AsError(err).Message}
	}
	return nil
}

// maxMessage is the longest message of a failure, in characters (contract 1.6).
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
	return shorten(text, 200)
}

// shorten cuts a text to at most n characters of valid UTF-8.
func shorten(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
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
