package keeper

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
)

// Place is how an agent's process is run, and where.
type Place struct {
	Local
	Host  string // "" for this machine
	There Hosted // of its process on a host
	Spec  cell.Spec
	Home  *home.Home           // nil for none that is kept
	APIs  modelproxy.Upstreams // of its models, that are recorded
	Lines *modelproxy.Lines    // to them; nil before they are open, and for none
	End   cell.Grace           // when it is stopped
}

// Place finds where an agent has its place, and reports what keeps it from having one.
// record is its option record_models, as modelproxy.Read has it, and elsewhere lists the
// options that it may have on a host.
func (l Local) Place(a fleet.Agent, o Choices, record []string, elsewhere string) (p *Place, err error) {
	p = &Place{Local: l, Host: a.Host}
	if a.Host != "" {
		p.Spec, p.APIs, err = l.there(a, o, record, elsewhere)
	} else if p.Spec, p.Home, err = l.here(a, o); err == nil {
		p.APIs, err = modelproxy.Read(record, a.Env)
	}
	p.Spec.Limits = l.Limits
	p.Spec.Run = strings.Join([]string{"agent", a.TenantID, a.Name}, ":")
	p.Spec.Whose = cell.Whose{Tenant: a.TenantID, Agent: a.Name, Role: a.Role}
	return p, err
}

// there is how an agent's command is run on a host, and the APIs that are recorded. What
// needs this machine is refused.
func (l Local) there(a fleet.Agent, o Choices, record []string, elsewhere string) (spec cell.Spec, apis modelproxy.Upstreams, err error) {
	if l.Hosts == nil {
		return spec, nil, core.Errorf(core.Unavailable, "host: no agents can be started on hosts here").With("field", "host")
	}
	if err := cell.CheckCommand("command", a.Command); err != nil {
		return spec, nil, err
	}
	if err := cell.CheckEnv(a.Env); err != nil {
		return spec, nil, err
	}
	if a.Dir != "" && (!filepath.IsAbs(a.Dir) || filepath.Clean(a.Dir) != a.Dir) {
		return spec, nil, core.Invalid("dir", a.Dir, "an absolute directory of the host, or none for one of the agent's own")
	}
	profile, err := cell.ParseProfile("profile", a.Profile)
	if err != nil {
		return spec, nil, err
	}
	switch {
	case o.Any():
		return spec, nil, NotThere("read, write and hide", elsewhere)
	case o.Inspect:
		return spec, nil, NotThere("inspect", elsewhere)
	case o.Given():
		return spec, nil, NotThere("home, skeleton and login", elsewhere)
	case profile != cell.Open:
		apis, err = modelproxy.Read(record, a.Env)
	case len(record) > 0: // the way to their recorder is one out of its cell
		err = core.Invalid("options.record_models", strings.Join(record, ", "), "none, for an open agent on a host: it has no way to the engine")
	}
	return cell.Spec{Argv: a.Command, Env: a.Env, Dir: a.Dir, Wall: cell.Wall{Profile: profile}}, apis, err
}

// NotThere refuses an option of an agent on a host, which may have others.
func NotThere(option, others string) error {
	return core.Invalid("options", option, "only "+others+", for an agent on a host")
}

// Check reports what keeps an agent from being one, as Place does; here, its command must
// be runnable and its directory be there as well.
func (l Local) Check(c fleet.Create, o Choices, record []string, elsewhere string) error {
	p, err := l.Place(Planned(c), o, record, elsewhere)
	if err == nil && p.Host == "" {
		err = p.Spec.Available()
	}
	return err
}

// Planned is what is known of an agent that is to be made.
func Planned(c fleet.Create) fleet.Agent {
	return fleet.Agent{
		Name: c.Name, Role: c.Role, Host: c.Host, Command: c.Command, Env: c.Env, Dir: c.Dir, Options: c.Options, Profile: c.Profile,
	}
}

// Available reports why its process can't be started now.
func (p *Place) Available() error {
	if p.Host != "" {
		return p.Hosts.Available(p.Spec.Whose.Tenant, p.Host)
	}
	return p.Spec.Available()
}

// Record puts a recorder between the agent and the models that are recorded, if there are
// any.
func (p *Place) Record(mask func() *secret.Mask, hear modelproxy.Listener) (err error) {
	if len(p.APIs) == 0 {
		return nil
	}
	if p.Lines, err = p.Models.Open(p.APIs, p.Spec.Env, Masked(mask, hear)); err != nil {
		return err
	}
	p.Spec.Env = p.Lines.Environ(p.Spec.Env)
	p.Spec.Wall.Reach = p.Lines.Ports()
	return nil
}

// Start starts a process of the agent, for a turn of a trace unless parent is "", with
// what its environment refers to, which mask hides. besides changes what is started as
// the runtime needs it; said is for the agent's log.
func (p *Place) Start(parent string, besides func(spec *cell.Spec, mask *secret.Mask) error) (proc Screened, said []fleet.Event, err error) {
	say := func(level, text string, names []string, rest string) {
		if len(names) > 0 {
			said = append(said, fleet.Event{Type: "log", Level: level, Text: text + strings.Join(names, ", ") + rest})
		}
	}
	if p.Home != nil {
		if err := p.Home.Furnish(); err != nil {
			return nil, nil, err
		}
		if e, has := p.Home.LoggedIn(); has {
			said = append(said, e)
		}
	}
	spec := p.Spec
	env, mask, err := p.Secrets(context.Background(), spec.Whose.Tenant, cell.Traced(spec.Env, parent))
	if err != nil {
		return nil, nil, err
	}
	var held []string
	spec.Env, held = p.Lines.Conceal(env)
	spec.Keep = &cell.Keep{Stdout: true, Mask: mask}
	if err := besides(&spec, mask); err != nil {
		return nil, nil, err
	}
	if proc, err = Begin(p.Cells, p.Hosts, p.Host, spec, p.There); err != nil {
		return nil, nil, err
	}
	say("WARN", "the wall around it lacks: ", proc.Missing(), "; swarmdeck doctor says why")
	say("INFO", "it has placeholders for which the model proxy puts the credentials in: ", held, "")
	return proc, said, nil
}

// Begin starts a run where its agent has its place: on a host, or with "" at this
// machine.
func Begin(cells *cell.Supervisor, hosts Hosts, host string, spec cell.Spec, o Hosted) (Screened, error) {
	if host != "" {
		return hosts.Start(spec.Whose.Tenant, host, spec, o)
	}
	p, err := cells.Start(spec)
	if err != nil {
		return nil, err
	}
	return NewHere(p), nil
}

// Memory is where it is kept what an agent talks of, so that another process can take it
// up. It is a convenience: without it the agent begins anew.
type Memory struct {
	Path    string // of a file; "" keeps nothing
	Born    string // when the agent was made: one of the same name begins anew
	Command []string
	Dir     string
}

// remembered is what such a file holds.
type remembered[T any] struct {
	Born    string   `json:"born"`
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	What    T        `json:",embed"`
}

// Recall is what was last remembered with this command and directory; the zero one is
// nothing.
func Recall[T any](m Memory) (none T) {
	var r remembered[T]
	data, err := os.ReadFile(m.Path)
	if err != nil || core.DecodeStored(data, &r) != nil || r.Born != m.Born || r.Dir != m.Dir || !slices.Equal(r.Command, m.Command) {
		return none
	}
	return r.What
}

// Remember keeps it; a failure costs only the conversation.
func Remember[T any](m Memory, what T) {
	data, err := core.Encode(remembered[T]{m.Born, m.Command, m.Dir, what})
	if m.Path == "" || err != nil || os.MkdirAll(filepath.Dir(m.Path), 0o711) != nil {
		return
	}
	next := m.Path + ".new"
	if os.WriteFile(next, data, 0o600) == nil {
		_ = os.Rename(next, m.Path)
	}
}
