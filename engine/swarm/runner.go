package swarm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/place"
	"swarmdeck/engine/task"
)

// Job is one attempt of a task, handed to a runner.
type Job struct {
	Task task.Task // with Input
	// Files are what was judged. A runner that finds others returns an error
	// that wraps judge.ErrChanged, and the task is asked about anew.
	Files []judge.File
	// Log receives output lines as they come: level DEBUG|INFO|WARN|ERROR.
	// It blocks when the log falls behind, so a flood slows its source.
	Log func(level, line string)
	// Beat renews the lease; a runner calls it at least 3 times a second
	// while its work is alive, or has Keep do so.
	Beat func()
	// Use adds spent tokens and cost to the budgets, UseIn in a transaction of something
	// else. Where the work is Limited by a budget, it must not wait for one.
	Use     func(tokens int64, costUSD float64)
	UseIn   func(tx *audit.Tx, tokens int64, costUSD float64)
	Limited func() bool
	// Spill is the file to keep output past the inline limit in, Place where it lies.
	Spill string
	Place place.Place
}

// beatEvery keeps a lease of 1 s well alive.
const beatEvery = 250 * time.Millisecond

// Keep renews the lease until over is called, which returns once nobody beats any
// more.
func (j *Job) Keep() (over func()) {
	ended := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		for j.Beat(); !core.Within(ended, beatEvery); j.Beat() {
		}
	})
	return func() {
		close(ended)
		beating.Wait()
	}
}

// Runner carries out the tasks of one kind. Drivers and the fleet provide them.
type Runner interface {
	// Check validates an input at dispatch and returns a title for lists and
	// the action for the judge, its Args the input as it will be executed.
	Check(tenant string, input core.Raw) (title string, action judge.Action, err error)
	// Slot reports whether a task for this agent ("" for none) can start now,
	// and why not. It must not call the swarm or the ledger.
	Slot(tenant, agent string) (free bool, why string)
	// Start begins the work and returns at once. ctx ends when the engine closes.
	Start(ctx context.Context, job Job) (Work, error)
}

// Why the swarm itself cancels work.
const (
	WhyTimedOut = "timed out"
	WhyClosing  = "the engine closes"
	WhySilent   = "the engine was too slow to keep it" // of work that another run of it goes on with
)

// Work is a started job. Its methods may be called from any goroutine.
type Work interface {
	// Done is closed when the work has ended; Outcome is valid from then on.
	Done() <-chan struct{}
	Outcome() task.Outcome
	// Cancel interrupts, then kills after the grace; it does not wait.
	Cancel(reason string)
	// Pause stops the work (SIGSTOP over the process tree) and returns when
	// that is in effect; Resume continues it.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// agentDescriber is implemented by runners whose tasks are for agents.
type agentDescriber interface {
	AgentRef(tenant, agent string) judge.AgentRef
}

// stander is implemented by runners whose agents may stand still by themselves, and
// their tasks with them: Stands says why, or "".
type stander interface {
	Stands(tenant, agent string) (why string)
}

// renewer is implemented by runners whose input holds good for one task only:
// Renew returns the input of another one that does the same.
type renewer interface {
	Renew(input core.Raw) core.Raw
}

// resumer is implemented by runners whose work, begun once more, goes on where
// it was, by what is on disk: an engine that dies under it costs no attempt. A
// runner tells by NoteProgress whenever more of it is on disk.
type resumer interface {
	Resumes(input core.Raw) bool
}

// celled is implemented by runners whose tasks run in a cell here: in which directory,
// and why that may let more through than its profile promises, "" for nothing.
type celled interface {
	Cell(tenant string, action judge.Action) (dir, loose string)
}

// targeter is implemented by runners whose input names the agent.
type targeter interface {
	Target(input core.Raw) (agent string)
}

// outlaster is a Runner of which the work of some agents goes on where it is when the
// engine dies: the next engine takes it up, at no cost of an attempt.
type outlaster interface {
	Outlasts(tenant, agent string) bool
}

// Recorder is told what attempts of tasks do and come to.
type Recorder interface {
	// Starting comes before the effect. An error fails the attempt.
	Starting(ctx context.Context, t *task.Task, a judge.Action) error
	// Worked comes after the work, with the places that its runner names (see Placed)
	// and since when it may have changed them.
	Worked(ctx context.Context, t *task.Task, places []string, since time.Time)
	// Judged tells a decision on a result, in the transaction that makes it.
	Judged(tx *audit.Tx, t *task.Task, d judge.GateDecision) error
	// Concluded tells the end of an attempt, in the transaction that commits it and
	// before its task moves: a result, or with status queued why it is tried again.
	Concluded(tx *audit.Tx, t *task.Task, res task.Result) error
}

// Placed is a Runner that knows which files and directories a task's work is there to
// change: absolute paths.
type Placed interface {
	Places(input core.Raw) []string
}

// unheard is a Recorder that nobody listens to.
type unheard struct{}

func (unheard) Starting(context.Context, *task.Task, judge.Action) error { return nil }
func (unheard) Worked(context.Context, *task.Task, []string, time.Time)  {}
func (unheard) Judged(*audit.Tx, *task.Task, judge.GateDecision) error   { return nil }
func (unheard) Concluded(*audit.Tx, *task.Task, task.Result) error       { return nil }

func (s *shared) recordStart(ctx context.Context, r Runner, t *task.Task) error {
	_, action, err := r.Check(t.TenantID, t.Input)
	if err != nil {
		return nil // the runner says so as it starts
	}
	if err := s.opt.Record.Starting(ctx, t, action); err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	return nil
}

// recordWork has it told what work changed on disk, before what it came to is.
func (s *shared) recordWork(ctx context.Context, t *task.Task) {
	r, err := s.runner(t.Kind)
	if placed, ok := r.(Placed); err == nil && ok {
		if places := placed.Places(t.Input); len(places) > 0 {
			s.opt.Record.Worked(ctx, t, places, t.StartedAt)
		}
	}
}
