package exec

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
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
	sup *cell.Supervisor
	opt RuntimeOptions
}

var (
	_ fleet.Runtime = (*Runtime)(nil)
	_ fleet.Keeper  = (*Runtime)(nil)
)

// NewRuntime returns a runtime whose processes the supervisor owns.
func NewRuntime(sup *cell.Supervisor, opt RuntimeOptions) (*Runtime, error) {
	if err := fillIn(&opt.Dir, &opt.Limits, &opt.Secrets); err != nil {
		return nil, err
	}
	if opt.Interrupt == 0 {
		opt.Interrupt = syscall.SIGINT
	}
	if opt.CancelLine == nil {
		opt.CancelLine = cancelLine
	}
	if opt.Grace <= 0 {
		opt.Grace = 3 * time.Second
	}
	return &Runtime{sup: sup, opt: opt}, nil
}

// Profile implements fleet.Walled.
func (*Runtime) Profile() string { return string(cell.Worker) }

// Reach implements fleet.Homely.
func (*Runtime) Reach(options core.Raw) (places, secrets []string) { return reach(options) }

func reach(options core.Raw) (places, secrets []string) {
	o, err := readOptions(options)
	if err != nil {
		return nil, nil
	}
	if places = o.Reach(); o.Any() {
		places = append(places, "read, write and hide")
	}
	return places, nil
}

// Check implements fleet.Runtime: the command must be there and runnable, and
// its directory exist.
func (r *Runtime) Check(c fleet.Create) error {
	spec, err := cell.NewSpec(c.Command, c.Env, c.Dir, r.opt.Dir)
	if err != nil {
		return err
	}
	o, err := readOptions(c.Options)
	if err != nil {
		return err
	}
	if _, err := modelproxy.Read(o.RecordModels, c.Env); err != nil {
		return err
	}
	profile, err := cell.ParseProfile("profile", c.Profile)
	if err != nil {
		return err
	}
	if err := cell.CheckInspect("options.inspect", profile, o.Inspect); err != nil {
		return err
	}
	if err := r.sup.CheckPlaces("options.", o.Places); err != nil {
		return err
	}
	if _, err := r.homeOf(fleet.Agent{Name: c.Name, Env: c.Env, Profile: c.Profile}, o); err != nil {
		return err
	}
	return spec.Available()
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
	home.Options
	// Places are those that its processes reach besides.
	files.Places
	// Inspect has its requests decided by method and path. Only a worker has any.
	Inspect bool `json:"inspect,omitzero"`
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
	return o, o.Check()
}

// Open implements fleet.Runtime. The agent is idle at once, or offline until
// its program is there; nothing runs before the first prompt. Notify is called
// in order, must not block and must not call the handle. When ctx ends the
// agent is closed.
func (r *Runtime) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	spec, err := cell.NewSpec(a.Command, a.Env, a.Dir, r.opt.Dir)
	if err != nil {
		return nil, err
	}
	spec.Limits = r.opt.Limits
	spec.Run = strings.Join([]string{"agent", a.TenantID, a.Name}, ":")
	spec.Whose = cell.Whose{Tenant: a.TenantID, Agent: a.Name, Role: a.Role}
	h := &agent{
		sup: r.sup, opt: r.opt, tenant: a.TenantID, spec: spec,
	}
	own, err := readOptions(a.Options)
	if err != nil {
		return nil, err
	}
	h.spec.Wall = cell.Wall{Profile: cell.Profile(a.Profile), Told: true, Inspect: own.Inspect, More: own.Places}
	if h.home, err = r.homeOf(a, own); err != nil {
		return nil, err
	}
	if h.home != nil {
		h.spec.Wall.Home = h.home.Path
	}
	if own.Interrupt != "" {
		h.opt.CancelLine, h.opt.Interrupt = []byte(own.Interrupt), 0
	}
	models, err := modelproxy.Read(own.RecordModels, a.Env)
	if err != nil {
		return nil, err
	}
	if len(models) > 0 {
		if h.models, err = r.opt.Models.Open(models, spec.Env, keeper.Masked(h.mask.Load, keeper.Overhear(h.now, h.late))); err != nil {
			return nil, err
		}
		h.spec.Env = h.models.Environ(spec.Env)
		h.spec.Wall.Reach = h.models.Ports()
	}
	h.keep = keeper.New(ctx, a.Restarts, notify, h.pid, h.retry)
	h.mu.Lock()
	h.keep.Check(spec.Available())
	h.mu.Unlock()
	h.unhook = context.AfterFunc(ctx, func() { _ = h.Close() })
	return h, nil
}
