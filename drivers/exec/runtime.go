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
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/secret"
)

// RuntimeOptions of NewRuntime.
type RuntimeOptions struct {
	// Dir is where an agent without a directory runs, and what relative ones
	// start from. "" is the engine's working directory.
	Dir string
	// State is the directory for the agents' homes; "" keeps none.
	State string
	// Own are the engine's own files, which are copied into no home.
	Own *safeopen.Own
	// Limits of every agent's processes; the zero value means cell.DefaultLimits.
	Limits cell.Limits
	// Interrupt is the signal that a cancelled prompt's process group gets
	// beside the cancel line; 0 means SIGINT. An agent that does not handle it
	// ends by it and is started again for the next prompt.
	Interrupt syscall.Signal
	// CancelLine is what is written to its stdin then, without the newline;
	// nil means {"type":"cancel"}.
	CancelLine []byte
	// Models records what agents say to their models; nil refuses agents that
	// ask for it.
	Models *modelproxy.Proxy
	// Pins keeps what files hold that agents want to write; nil keeps none.
	Pins *pin.Keeper
	// Secrets gives agents what their environment refers to; nil knows none.
	Secrets secret.Resolver
	// Hosts run agents that have their place on another machine; nil refuses them.
	Hosts keeper.Hosts
	// Grace is how long an interrupted prompt may take until its processes
	// are killed; 0 means 3 s. An agent must be idle within 5 s of a cancel.
	Grace time.Duration
}

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
type Runtime struct {
	keeper.Local
	opt RuntimeOptions
}

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
)

// NewRuntime returns a runtime whose processes the supervisor owns.
func NewRuntime(sup *cell.Supervisor, opt RuntimeOptions) (*Runtime, error) {
	local, err := keeper.Local{Cells: sup, Dir: opt.Dir, State: opt.State, Own: opt.Own, Limits: opt.Limits, Secrets: opt.Secrets, Hosts: opt.Hosts, Grace: opt.Grace}.Filled()
	if err != nil {
		return nil, err
	}
	if opt.Interrupt == 0 {
		opt.Interrupt = syscall.SIGINT
	}
	if opt.CancelLine == nil {
		opt.CancelLine = cancelLine
	}
	return &Runtime{local, opt}, nil
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
	if c.Host != "" {
		_, _, err := r.checkHosted(c, o)
		return err
	}
	if _, err := modelproxy.Read(o.RecordModels, c.Env); err != nil {
		return err
	}
	return r.Local.Check(c, o.Choices)
}

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
	h := &agent{opt: r.opt}
	h.Place = keeper.Place{Local: r.Local, Host: a.Host, End: cell.Grace{Interrupt: 500 * time.Millisecond, Terminate: time.Second}}
	var models modelproxy.Upstreams
	if h.Spec, h.Home, models, err = r.place(a, own); err != nil {
		return nil, err
	}
	if h.wire = wires[own.Wire]; h.wire != nil {
		h.fresh, h.memory = own.Fresh, keeper.Memory{Born: a.CreatedAt.UTC().Format(time.RFC3339Nano), Command: a.Command, Dir: h.Spec.Dir}
		if r.State != "" {
			h.memory.Path = filepath.Join(home.Of(r.State, a), "session.json")
		}
		h.talk = keeper.Recall[conversation](h.memory)
	}
	if own.Interrupt != "" {
		h.opt.CancelLine, h.opt.Interrupt = []byte(own.Interrupt), 0
	}
	if err := h.record(models); err != nil {
		return nil, err
	}
	h.Open(ctx, a, notify, keeper.Ways{Retry: h.retry, Anew: func() { h.lasting = false }, Shut: h.Close})
	return h, nil
}

// record puts a recorder between the agent and these.
func (a *agent) record(models modelproxy.Upstreams) (err error) {
	if len(models) == 0 {
		return nil
	}
	if a.models, err = a.opt.Models.Open(models, a.Spec.Env, keeper.Masked(a.mask.Load, keeper.Overhear(a.Now, a.late))); err != nil {
		return err
	}
	a.Spec.Env = a.models.Environ(a.Spec.Env)
	a.Spec.Wall.Reach = a.models.Ports()
	return nil
}
