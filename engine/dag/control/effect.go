package control

import (
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Effect is one kind of effect on the world. Its methods are given a context
// that ends with the time for them, and when the intent is withdrawn; they must
// return then. They are never called side by side for one
// step.
//
// An error of code InvalidInput, NotFound, Conflict or Denied is final; after
// any other, or when what was wanted is not met, the step is tried again.
type Effect interface {
	// Probe looks, without changing anything, whether the world is as the job
	// wants it. It comes before every Act.
	Probe(ctx context.Context, j Job) (Seen, error)
	// Act brings it about. It may be called again after it did all or half of
	// that: it finds its own work by the job's Key.
	Act(ctx context.Context, j Job) (Seen, error)
	// Compensate takes back what Act did: all, half or nothing. It may be called
	// again after it did.
	Compensate(ctx context.Context, j Job) (Seen, error)
}

// Job is what an Effect is asked for.
type Job struct {
	Key      string // INTENT/STEP: the same each time, and of no other step
	Tenant   string
	IntentID string
	Step     int // from 1
	AgentID  string
	By       string // who wants it
	ByKind   core.ActorKind
	Action   string
	Args     core.Raw
	Call     dag.EventRef // the step's tool_call
	Earlier  []core.Raw   // results of the steps before it
}

// Seen is an observation.
type Seen struct {
	Met    bool     // the world is as the job wants it
	Why    string   // what is missing, while it is not
	Result core.Raw // an object; nil is {}
	// Events are recorded in the same transaction that ends the step, well or for
	// good: they may also stand beside a final error. Events of a step that is
	// tried again are dropped. A step whose events the record refuses fails.
	Events []dag.Event
}

// Kind is what is known of an action word.
type Kind struct {
	Effect
	Destructive bool          // what an agent wants of it passes the judge first
	Timeout     time.Duration // for one Probe, Act or Compensate; 0 means 5 min
	Attempts    int           // how often a step is tried; 0 means 5
}

// Defaults of a Kind.
const (
	defaultTimeout  = 5 * time.Minute
	defaultAttempts = 5
)

var actionPattern = core.Pattern(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)

// maxAction bounds an action word, in bytes.
const maxAction = 64

func checkAction(action string) error {
	if len(action) > maxAction || !actionPattern().MatchString(action) {
		return core.Invalid("action", action, "words of a-z 0-9 joined by . _ -, such as resource.snapshot")
	}
	return nil
}

// final reports errors that trying again can't help.
func final(err error) bool {
	switch core.AsError(err).Code {
	case core.InvalidInput, core.NotFound, core.Conflict, core.Denied:
		return true
	}
	return false
}
