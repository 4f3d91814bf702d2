// Package history records what the clients of an engine asked and were told, and
// checks whether one order of it all explains every answer, as if each had been
// carried out at one instant between question and answer: whether the engine is
// linearizable, whatever failed meanwhile. It imports nothing of the program.
//
// What a client never heard an answer to may have happened at any time later, or
// not at all: it stays open to the end of the history.
package history

import (
	"fmt"
	"sync"
	"time"
)

// Verb is what was done.
type Verb string

// What clients do with a task and its approval, what its process does, and what is
// done with the emergency stop.
const (
	Dispatch     Verb = "dispatch"
	Show         Verb = "task show"
	Cancel       Verb = "task cancel"
	ShowApproval Verb = "approval show"
	Approve      Verb = "approval approve"
	Deny         Verb = "approval deny"
	Begin        Verb = "process begins"
	Work         Verb = "process works"
	End          Verb = "process ends"

	StopOn   Verb = "estop on"
	StopOff  Verb = "estop off"
	StopShow Verb = "estop show"
	// Start is that the work of a task was started: between its dispatch and the
	// first instruction of its process.
	Start Verb = "start"
)

// reads reports whether a verb changes nothing.
func (v Verb) reads() bool { return v == Show || v == ShowApproval || v == StopShow }

// ofStop reports whether a verb is about the emergency stop.
func (v Verb) ofStop() bool { return v == StopOn || v == StopOff || v == StopShow || v == Start }

// Op is what was asked. Key is the idempotency key of the task; Asks says that it
// needs an approval, Fails that its process comes to a failure.
type Op struct {
	Verb        Verb
	Key         string
	Asks, Fails bool
	ID          string // of the approval or the run
}

// Outcome is how a question ended.
type Outcome int

// Outcomes. One that is unknown may have happened.
const (
	Unknown Outcome = iota
	Done
	Refused
)

// Answer is what a client was told. A refusal tells the state that it is due to.
type Answer struct {
	Outcome  Outcome
	Task     string // its id
	Status   string // of the task
	Attempt  int    // of the task, from 0
	Stopping bool   // its cancellation was asked for
	Approval string // its id
	Verdict  string // open|approved|denied|expired|void
	On       bool   // the emergency stop
	Said     string // for people
}

// Call is one question with its answer. Times are of one clock that never goes
// back.
type Call struct {
	Client   int
	Op       Op
	Answer   Answer
	From, To time.Duration // To is meaningless while the outcome is unknown
}

// String is a call for a report of what can't be explained.
func (c Call) String() string {
	to := "…"
	if c.Answer.Outcome != Unknown {
		to = c.To.String()
	}
	a := c.Answer
	line := fmt.Sprintf("%s to %s, client %d: %s %s: %s", c.From, to, c.Client, c.Op.Verb, c.Op.ID, [...]string{"unknown", "done", "refused"}[a.Outcome])
	if a.Task != "" || a.Status != "" {
		line += fmt.Sprintf(" task %s %s stopping=%t", a.Task, a.Status, a.Stopping)
	}
	if a.Approval != "" || a.Verdict != "" {
		line += fmt.Sprintf(" approval %s %s", a.Approval, a.Verdict)
	}
	if c.Op.Verb == StopShow {
		line += fmt.Sprintf(" on=%t", a.On)
	}
	if a.Said != "" {
		line += fmt.Sprintf(" %q", a.Said)
	}
	return line
}

// Recorder takes the history of several clients down. It is safe for concurrent
// use.
type Recorder struct {
	Now func() time.Duration

	mu    sync.Mutex
	calls []Call
}

// Ask notes that a client asks something; done notes the answer.
func (r *Recorder) Ask(client int, op Op) (done func(Answer)) {
	from := r.Now()
	return func(a Answer) { r.Seen(Call{client, op, a, from, r.Now()}) }
}

// Seen notes what was observed otherwise.
func (r *Recorder) Seen(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// Calls are those so far.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Call(nil), r.calls...)
}
