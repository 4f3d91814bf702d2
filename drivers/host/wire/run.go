package wire

import (
	"fmt"
	"slices"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/terminal"
)

// FromEngine is a frame of a run's stream; one member is set.
type FromEngine struct {
	Open *Open `json:"open,omitzero"` // the first
	Item *Item `json:"item,omitzero"`
	Ack  *Seen `json:"ack,omitzero"`
}

// Open begins a run, or goes on with one.
type Open struct {
	Run   string `json:"run"`
	Start *Start `json:"start,omitzero"` // unless it is known to be there
	Seen  Seen   `json:"seen"`
}

// Seen is what the engine has.
type Seen struct {
	Events uint64   `json:"events"` // the newest
	Out    [2]int64 `json:"out"`    // bytes of standard output and error
}

// Start is what is run, in the words of cell.Spec.
type Start struct {
	Agent   string            `json:"agent"`
	Role    string            `json:"role,omitempty" allow:"at most 4096 bytes"`
	Argv    []string          `json:"argv"`
	Dir     string            `json:"dir,omitempty" allow:"at most 4096 bytes"` // "" is a directory of the agent's own
	Env     map[string]string `json:"env,omitempty"`
	Limits  Limits            `json:"limits"`
	Profile string            `json:"profile,omitempty"`
	// Ports of the cell lead to those of the engine, beside the proxies'.
	Ports []int `json:"ports,omitempty" allow:"at most 16"`
	// Guard are names at the top of shared directories that stay as they are.
	Guard []string `json:"guard,omitempty" allow:"at most 50"`
	// Files are those that must be as they were judged; copies of what runs of them run.
	Files []judge.File `json:"files,omitempty" allow:"at most 1000"`
	// Whole has it held up rather than its output be left out while the link is away.
	Whole bool `json:"whole,omitzero"`
	// Terminal gives it a terminal of this size in the place of the three pipes: all that
	// it writes is its standard output.
	Terminal *terminal.Size `json:"terminal,omitempty"`
	// Desk has the keeper answer one request, in the place of a command.
	Desk keeper.Desk `json:"desk,omitempty" allow:"none or files, tree"`
	// Keep has the next engine told how it ended, if this one does not come back.
	Keep *Keep `json:"keep,omitempty"`
}

// Limits are those of a run that are not the host's own to say.
type Limits struct {
	CPU       uint64 `json:"cpu,omitzero"`
	Memory    uint64 `json:"memory,omitzero"`
	Files     uint64 `json:"files,omitzero"`
	Size      uint64 `json:"size,omitzero"`
	Processes uint64 `json:"processes,omitzero"`
}

// What the engine wants of a run.
const (
	Input = "input" // Data on its standard input
	// InputEnd is the end of that: nothing else comes.
	InputEnd = "input_end"
	Resize   = "resize" // its terminal, to Size
	Pause    = "pause"  // answered
	Resume   = "resume" // answered
	Stop     = "stop"   // answered; InterruptMS and TerminateMS as in cell.Grace
	Signal   = "signal" // Signal to its first process's group
	Mark     = "mark"   // remember its processes of now
	Prune    = "prune"  // answered: end those that were not there at the last mark, after TerminateMS
	Serve    = "serve"  // it is at work on Task from now on, or no more
	Forget   = "forget" // nobody asks for it any more
)

// Item is what the engine wants, in order; Seq counts from 1.
type Item struct {
	Seq         uint64 `json:"seq"`
	Kind        string `json:"kind" allow:"input, input_end, resize, pause, resume, stop, signal, mark, prune, serve, forget"`
	Data        []byte `json:"data,omitempty" allow:"at most 32768 bytes"`
	Signal      int    `json:"signal,omitzero" allow:"0-64"`
	InterruptMS int64  `json:"interrupt_ms,omitzero" allow:"-1 to 3600000 milliseconds"`
	TerminateMS int64  `json:"terminate_ms,omitzero" allow:"-1 to 3600000 milliseconds"`

	Size terminal.Size `json:"size,omitzero"`

	Task string `json:"task,omitempty" allow:"at most 64 bytes"`
	On   bool   `json:"on,omitzero"`
}

// FromHost is a frame of a run's stream; one member is set.
type FromHost struct {
	Opened *Taken `json:"opened,omitzero"` // the first
	Event  *Event `json:"event,omitzero"`
	Data   *Data  `json:"data,omitzero"`
	Ack    *Taken `json:"ack,omitzero"`
}

// Taken is what the keeper has.
type Taken struct {
	Items uint64 `json:"items"` // the newest
	Wrote int64  `json:"wrote"` // bytes of input that the process was given, or will never read
	Error string `json:"error,omitempty"`
}

// Data is a part of a stream that begins At. A gap before it is what there was no
// room for while the link was away.
type Data struct {
	Stream int    `json:"stream" allow:"0-1"` // standard output, standard error
	At     int64  `json:"at" allow:"0-4611686018427387904"`
	Bytes  []byte `json:"bytes" allow:"1-32768 bytes"`
}

// What happened to a run.
const (
	Started = "started"
	Failed  = "failed" // to start; nothing else comes
	Answer  = "answer" // to Item, with its Failure
	EOF     = "eof"    // of Stream; all of it has come, but for gaps
	Exited  = "exited" // its first process; all that was written by then has come
	// Looked tells how its terminal is, when that has changed: Foreground and Unseen.
	Looked = "looked"
	Walled = "walled" // what its wall held: Held
)

// Event is what happened, in order; Seq counts from 1.
type Event struct {
	Seq  uint64 `json:"seq"`
	Kind string `json:"kind"`
	Item uint64 `json:"item,omitzero"`
	desk.Failure
	PID     int      `json:"pid,omitzero" allow:"0 or more"`
	Lacks   []string `json:"lacks,omitempty" allow:"at most 64"`
	Stream  int      `json:"stream,omitzero" allow:"0-1"`
	Out     [2]int64 `json:"out,omitzero"` // how far its output went, of EOF and Exited
	Code    int      `json:"code,omitzero" allow:"0-255"`
	Signal  int      `json:"signal,omitzero" allow:"0-64"`
	Overran uint64   `json:"overran,omitzero"`
	// As cell.Process has them.
	Foreground bool  `json:"foreground,omitzero"`
	Unseen     bool  `json:"unseen,omitzero"`
	Lease      bool  `json:"lease,omitzero"`                  // it was ended because the lease was over
	Read       int64 `json:"read,omitzero" allow:"0 or more"` // bytes of input that it had read

	Held *cell.Held `json:"held,omitzero"`
}

// Check reports an open that can't be one.
func (o *Open) Check() error {
	if !id(o.Run) {
		return core.Invalid("run", o.Run, "an id")
	}
	s := o.Start
	if s == nil {
		return nil
	}
	if !id(s.Agent) {
		return core.Invalid("start.agent", s.Agent, "a name")
	}
	if slices.ContainsFunc(s.Ports, func(p int) bool { return p < 1 || p > 65535 }) {
		return core.Invalid("start.ports", fmt.Sprint(s.Ports), "1-65535")
	}
	return bound.CheckIn("start.", s)
}

// Check reports an item that can't be one.
func (i *Item) Check() error { return bound.CheckIn("item.", i) }

// Check reports an event that can't be one, and cleans its words.
func (e *Event) Check() error {
	if err := bound.CheckIn("event.", e); err != nil {
		return err
	}
	if min(e.Out[0], e.Out[1]) < 0 {
		return core.Invalid("event.out", fmt.Sprint(e.Out), "0 or more")
	}
	if e.Kind == Failed && e.Err() == nil {
		return core.Invalid("event.error", "", "why it could not be started")
	}
	e.Error = desk.Clean(e.Error)
	for i, l := range e.Lacks {
		e.Lacks[i] = desk.Text(l, 128)
	}
	if h := e.Held; h != nil {
		for _, s := range []*string{&h.Deed, &h.Tried, &h.Call, &h.Program, &h.Laid, &h.When} {
			*s = desk.Text(*s, 1024)
		}
	}
	return nil
}

// Check reports a part of a stream that can't be one.
func (d *Data) Check() error { return bound.CheckIn("data.", d) }

// LimitsOf takes over those of a run that another host can be told.
func LimitsOf(l cell.Limits) Limits {
	return Limits{CPU: l.CPU, Memory: l.Memory, Files: l.Files, Size: l.Size, Processes: l.Processes}
}

// Cell is what they are there: what depends on the machine is the machine's own.
func (l Limits) Cell() cell.Limits {
	all := cell.DefaultLimits()
	all.CPU, all.Memory, all.Files, all.Size, all.Processes = l.CPU, l.Memory, l.Files, l.Size, l.Processes
	return all
}
