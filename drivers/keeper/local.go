package keeper

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/secret"
)

// Local is what runtimes have in common each of whose agents is a command here.
type Local struct {
	Cells *cell.Supervisor
	// Dir is where an agent without a directory runs, and what relative ones
	// start from.
	Dir string
	// State is the directory for the agents' homes; "" keeps none.
	State string
	// Own are the engine's own files, which are copied into no home.
	Own *safeopen.Own
	// Limits of every agent's processes; the zero value means cell.DefaultLimits.
	Limits cell.Limits
	// Secrets gives agents what their environment refers to; nil knows none.
	Secrets secret.Resolver
	// Hosts run agents that have their place on another machine; nil refuses them.
	Hosts Hosts
	// Models records what agents say to their models; nil refuses agents that ask
	// for it.
	Models *modelproxy.Proxy
	// Pins keeps what files hold that agents want to write or to run; nil keeps none.
	Pins *pin.Keeper
	// Grace is how long an interrupted prompt may take until its processes are
	// ended; 0 means 3 s. An agent must be idle within 5 s of a cancel.
	Grace time.Duration
}

// Filled has the defaults of what is not given.
func (l Local) Filled() (Local, error) {
	if l.Grace <= 0 {
		l.Grace = 3 * time.Second
	}
	err := FillIn(&l.Dir, &l.Limits, &l.Secrets)
	return l, err
}

// FillIn gives what all that runs commands takes its defaults.
func FillIn(dir *string, limits *cell.Limits, secrets *secret.Resolver) error {
	if *secrets == nil {
		*secrets = secret.Plain
	}
	if *limits == (cell.Limits{}) {
		*limits = cell.DefaultLimits()
	}
	abs, err := filepath.Abs(*dir)
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	*dir = abs
	return nil
}

func (l Local) Hosted() bool { return l.Hosts != nil }

// Choices are the options that such agents take.
type Choices struct {
	home.Options
	// Places are those that its processes reach besides.
	files.Places
	// Inspect has its requests decided by method and path. Only a worker has any.
	Inspect bool `json:"inspect,omitzero"`
}

// Outside names those that reach for the engine's own machine, as fleet.Homely
// has it.
func (c Choices) Outside() (places []string) {
	if places = c.Reach(); c.Any() {
		places = append(places, "read, write and hide")
	}
	return places
}

func (Local) Profile() string { return string(cell.Worker) }

// here is how an agent's command is run on this machine, and the home that is kept for it,
// nil for none.
func (l Local) here(a fleet.Agent, o Choices) (spec cell.Spec, kept *home.Home, err error) {
	if spec, err = cell.NewSpec(a.Command, a.Env, a.Dir, l.Dir); err != nil {
		return spec, nil, err
	}
	profile, err := cell.ParseProfile("profile", a.Profile)
	if err != nil {
		return spec, nil, err
	}
	if err := cell.CheckInspect("options.inspect", profile, o.Inspect); err != nil {
		return spec, nil, err
	}
	if err := l.Cells.CheckPlaces("options.", o.Places); err != nil {
		return spec, nil, err
	}
	spec.Wall = cell.Wall{Profile: profile, Told: true, Inspect: o.Inspect, More: o.Places}
	if kept, err = l.homeOf(a, o); kept != nil {
		spec.Wall.Home = kept.Path
	}
	return spec, kept, err
}

// homeOf is the HOME that is kept for an agent, nil for none: its environment
// names another, or it is open and has that of the engine's user.
func (l Local) homeOf(a fleet.Agent, o Choices) (*home.Home, error) {
	if named, given := a.Env["HOME"]; given {
		return nil, o.WithoutHome(named)
	}
	h := &home.Home{Options: o.Options, Path: o.Home, Own: l.Own}
	switch {
	case o.Home != "":
	case cell.Profile(a.Profile) == cell.Open && !o.Given(), l.State == "" && !o.Given():
		return nil, nil
	case l.State == "":
		return nil, core.Errorf(core.Unavailable, "no homes are kept here")
	default:
		h.Path = filepath.Join(home.Of(l.State, a), "home")
	}
	return h, nil
}

// Cell is what holds an agent whose process this is, by its spec and the home that was
// named for it.
func Cell(p Process, spec cell.Spec, home string) *fleet.Cell {
	c := &fleet.Cell{Dir: spec.Dir, Home: spec.Wall.Home, Loose: p.Loose()}
	if c.Loose == "" && home != "" {
		c.Loose = "its home is one that was named for it"
	}
	return c
}

// Keep implements fleet.Keeper: homes of agents that are no more go.
func (l Local) Keep(_ context.Context, agents []fleet.Agent) error {
	if l.State == "" {
		return nil
	}
	return home.Keep(l.State, agents)
}

// Forget implements fleet.Keeper. A home that was named by an option stays.
func (l Local) Forget(_ context.Context, a fleet.Agent) error {
	if l.State == "" {
		return nil
	}
	return home.Forget(l.State, a)
}
