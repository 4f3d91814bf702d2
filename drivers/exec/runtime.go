// Package exec runs local commands: as exec.run tasks (Runner) and as agents
// that speak JSON lines (Runtime). Both stand on one cell.Supervisor, which owns
// every process they start.
//
// What the supervisor promises, on Linux:
//   - each run has its own process group and a mark that all its descendants
//     inherit, so that a run's processes can be found whatever they did to
//     leave it (setsid, a double fork, an emptied environment);
//   - Stop ends with none of them left, and each one reaped;
//   - Pause returns when every thread of every one of them has stopped;
//   - if the engine dies, the kernel kills the run's first process, and Sweep
//     kills the rest when the engine starts again.
//
// It is no sandbox: a command runs with the engine's own user and can do what
// that user can. The limits keep accidents small; the judge keeps intents in
// check.
package exec

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// RuntimeOptions of NewRuntime.
type RuntimeOptions = keeper.Local

// Runtime keeps local commands as agents that speak JSON lines.
//
// A prompt starts the command unless it still runs from an earlier one, and
// writes one task line to its stdin. The prompt ends with a result line, or
// with the command's exit: status 0 is success with the output
// {"rc":0,"stdout":"the last plain lines"}, another is the failure
// "agent_exit", a signal "agent_killed" (retried). A command that stays alive
// after its result gets the next prompt too; its stdin stays open all the time,
// so a command must not wait for its end.
//
// What it prints between prompts is kept, bounded, and logged with the next.
type Runtime struct{ keeper.Local }

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
)

// NewRuntime returns a runtime whose processes the supervisor owns.
func NewRuntime(sup *cell.Supervisor, opt RuntimeOptions) (*Runtime, error) {
	opt.Cells = sup
	local, err := opt.Filled()
	if err != nil {
		return nil, err
	}
	return &Runtime{local}, nil
}

func (*Runtime) Reach(options core.Raw) (places, secrets []string) {
	o, err := readOptions(options)
	if err != nil {
		return nil, nil
	}
	return o.Outside(), nil
}

func (r *Runtime) Check(c fleet.Create) error {
	o, err := readOptions(c.Options)
	if err != nil {
		return err
	}
	return r.Local.Check(c, o.Choices, o.RecordModels, elsewhere)
}

// elsewhere are the options of an agent on a host.
const elsewhere = "interrupt, record_models, wire and fresh"

// agentOptions are the options of one agent.
type agentOptions struct {
	// Interrupt is what is written to its stdin as a line when its task is
	// cancelled, such as \u0003 or \u001b, in the place of the cancel line and
	// the signal. An agent that does not let go of the task is ended all the
	// same when the grace is over.
	Interrupt string `json:"interrupt,omitempty"`
	// RecordModels puts a recorder between the agent and its model: what is
	// asked and answered is in its record, and the tokens count for its budgets
	// as they are spent; the larger of them and of what it tells itself counts.
	// It names the variables of its environment that hold the address of the
	// model's API, as modelproxy.Read has it; without it they are the usual ones
	// of the credentials there. An agent that takes the address from elsewhere is
	// not recorded.
	RecordModels []string `json:"record_models,omitempty"`
	// Wire names how its command prints what it does, which is that of a coding agent
	// when it is run for one prompt: see wires. "" is our own lines.
	Wire string `json:"wire,omitempty" allow:"none or claude, codex, gemini"`
	// Fresh begins a new conversation for each task, of one on a wire; without it the
	// next task goes on with the last one's.
	Fresh bool `json:"fresh,omitzero"`
	keeper.Choices
}

const maxInterrupt = 64 // bytes

func readOptions(options core.Raw) (o agentOptions, err error) {
	if len(options) == 0 {
		return o, nil
	}
	if err := core.Decode(options, &o); err != nil {
		return o, fmt.Errorf("options: %w", err)
	}
	if len(o.Interrupt) > maxInterrupt || strings.ContainsAny(o.Interrupt, "\n\x00") {
		return o, core.Invalid("options.interrupt", fmt.Sprintf("%d bytes", len(o.Interrupt)), fmt.Sprintf("1-%d bytes of one line", maxInterrupt))
	}
	if err := bound.CheckIn("options.", &o); err != nil {
		return o, err
	}
	switch {
	case o.Wire != "" && o.Interrupt != "":
		return o, core.Invalid("options.interrupt", o.Interrupt, "none with a wire: its standard input ends with the prompt")
	case o.Wire == "" && o.Fresh:
		return o, core.Invalid("options.fresh", "true", "only with a wire")
	}
	return o, o.Options.Check()
}

// Open implements fleet.Runtime. The agent is idle at once, or offline until
// its program is there; nothing runs before the first prompt. Notify is called
// in order, must not block and must not call the handle. When ctx ends the
// agent is closed.
func (r *Runtime) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	own, err := readOptions(a.Options)
	if err != nil {
		return nil, err
	}
	h := &agent{cancelLine: cancelLine, interrupts: syscall.SIGINT}
	if h.Place, err = r.Place(a, own.Choices, own.RecordModels, elsewhere); err != nil {
		return nil, err
	}
	h.End = cell.Grace{Interrupt: 500 * time.Millisecond, Terminate: time.Second}
	if h.wire = wires[own.Wire]; h.wire != nil {
		h.fresh, h.memory = own.Fresh, keeper.Memory{Born: a.CreatedAt.UTC().Format(time.RFC3339Nano), Command: a.Command, Dir: h.Spec.Dir}
		if r.State != "" {
			h.memory.Path = filepath.Join(home.Of(r.State, a), "session.json")
		}
		h.talk = keeper.Recall[conversation](h.memory)
	}
	if own.Interrupt != "" {
		h.cancelLine, h.interrupts = []byte(own.Interrupt), 0
	}
	if err := h.Record(h.mask.Load, keeper.Overhear(h.Now, h.late)); err != nil {
		return nil, err
	}
	h.Open(ctx, a, notify, keeper.Ways{Retry: h.retry, Anew: func() { h.lasting = false }})
	return h, nil
}
