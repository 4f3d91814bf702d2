package op

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// stream makes an operation whose values come one after another while it runs.
// They go through Call.Emit, in order, each slice as soon as it is there; then a
// door shows it at once, and an error of the door ends the operation. There is no
// result at the end. An operation that goes on for ever ends with its context.
// It only reads unless it says otherwise.
//
// A list that can also be followed is a list with Streams, and emits when it does.
func stream[T any](o Op, run func(ctx context.Context, c *Call, emit func(...T) error) error) *Op {
	o.Streams, o.Effect = true, cmp.Or(o.Effect, Reads)
	made := define(o, func(context.Context, *Call) (none []T, _ error) { return none, nil })
	made.run = func(ctx context.Context, c *Call) (any, error) { return nil, run(ctx, c, emitting[T](c)) }
	return made
}

// emitting shows values as they come.
func emitting[T any](c *Call) func(...T) error {
	return func(values ...T) error {
		if len(values) == 0 {
			return nil
		}
		return c.Emit(values)
	}
}

// follow calls next, and again after each change of the engine, until it says that
// nothing more is to come.
func (c *Call) follow(ctx context.Context, next func() (over bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bell := c.Watch(ctx)
	for {
		if over, err := next(); over || err != nil {
			return err
		}
		if _, open := <-bell; !open { // ctx has ended, or the engine
			return cmp.Or[error](ctx.Err(), core.Errorf(core.Unavailable, "the engine has closed"))
		}
	}
}

// ErrTimeout is a wait that ran out of time.
var ErrTimeout = errors.New("timed out")

// waiting are the parameters of an operation that gives work and may wait for its
// end. Its Check calls check.
type waiting struct {
	on    bool
	limit time.Duration
}

func (w *waiting) params(about string) []*Param {
	return []*Param{
		flag(&w.on, "wait", about),
		flag(&w.limit, "wait-timeout", "give up waiting after this `DURATION` (exit 4); the task goes on"),
	}
}

func (w *waiting) check(c *Call) error {
	if !w.on {
		return nil
	}
	return c.Activate()
}

// task gives back a task that was made; with --wait, once it is over.
func (w *waiting) task(ctx context.Context, c *Call, made task.Task, err error) (task.Task, error) {
	if err != nil || !w.on {
		return made, err
	}
	done, err := c.AwaitTasks(ctx, "", w.limit, made.TaskID)
	return append(done, task.Task{})[0], err
}

// look has the engine do work while the operation runs, where something may run:
// what is over can be looked at without.
func (c *Call) look() error {
	if c.Idle {
		return nil
	}
	return c.Activate()
}

// limited is a context that ends a wait after limit; 0 is for ever.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("after %s: %w", limit, ErrTimeout))
}

// await calls state after each change until nothing is to be waited for, or ctx,
// which may be limited, ends. State says what is still so ("task tk_1 is still
// queued"), "" at the end, and what that waits for, which is told once.
func (c *Call) await(ctx context.Context, state func() (still, why string, err error)) error {
	var still, told string
	err := c.follow(ctx, func() (over bool, err error) {
		var why string
		still, why, err = state()
		switch {
		case err != nil || still == "":
			return true, err
		case c.Idle:
			return true, core.Errorf(core.Denied, "%s, and nothing runs with --read-only", still).With("field", "read-only")
		case why != "" && why != told:
			told = why
			c.Waits(why)
		}
		return false, nil
	})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrTimeout) {
		return fmt.Errorf("%s %w", still, cause)
	}
	return err
}

// AwaitTasks waits until each task is over, or has the wanted status, for limit
// in all. It has failed when one came to something else.
func (c *Call) AwaitTasks(ctx context.Context, want task.Status, limit time.Duration, ids ...string) (done []task.Task, err error) {
	within, cancel := limited(ctx, limit)
	defer cancel()
	for _, id := range ids {
		var t task.Task
		if err := c.await(within, func() (still, why string, err error) {
			if t, err = c.Tasks.Get(ctx, c.By.Tenant, id); err != nil || t.Status == want || t.Status.Terminal() {
				return "", "", err
			}
			why, err = c.waits(ctx, id)
			return fmt.Sprintf("task %s is still %s", id, t.Status), why, err
		}); err != nil {
			return nil, err
		}
		done = append(done, t)
	}
	for _, t := range done {
		if want == "" && t.Status != task.Succeeded || want != "" && t.Status != want {
			return done, &Failed{}
		}
	}
	return done, nil
}
