package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/op"
	"swarmdeck/store"
	"swarmdeck/ui/command/swarmfile"
	"swarmdeck/ui/term"
)

// roleOf is the role that an agent is made from: of the file, else of the tenant.
func (a *applier) roleOf(file *swarmfile.File, want swarmfile.Agent) (t *fleet.Template, err error) {
	if want.From == "" {
		return nil, nil
	}
	for _, p := range file.Projects {
		for _, r := range p.Roles {
			if p.Name == want.Project && r.Name == want.From {
				return &r.Template, nil
			}
		}
	}
	r, err := a.eng.Fleet.RoleOf(a.ctx, a.by.Tenant, want.Project, want.From)
	if errors.Is(err, store.ErrNoTenant) {
		err = core.Invalid("from", want.From, "none yet: projects in a swarm file makes some")
	}
	return r.Template, err
}

// wanted is what the engine is asked to make of an agent.
func (a *applier) wanted(want swarmfile.Agent, from *fleet.Template) fleet.Create {
	c := fleet.Create{
		Name: want.Name, Project: want.Project, Role: want.Role, Task: want.Task, Runtime: want.Runtime,
		Command: want.Command, Env: want.Env, Dir: want.Dir, Host: want.Host, On: want.On, Options: want.Options, Profile: want.Profile, Session: a.sessionID(want.Session),
	}
	if from != nil {
		from.Fill(&c)
	}
	c.Runtime, c.Role = cmp.Or(c.Runtime, "exec"), cmp.Or(c.Role, "coder")
	have, _ := a.eng.Fleet.Agent(a.ctx, a.by.Tenant, want.Name) // none brings nothing
	a.op.Brings(&c, have.Env["PATH"])
	return c
}

func (a *applier) agent(file *swarmfile.File, want swarmfile.Agent) error {
	from, err := a.roleOf(file, want)
	if err != nil {
		return err
	}
	make := a.wanted(want, from)
	if err := a.reaches("", want.Name, want.Egress); err != nil { // before it starts
		return err
	}
	have, err := a.eng.Fleet.Agent(a.ctx, a.by.Tenant, want.Name)
	switch {
	case errors.Is(err, core.Kind(core.NotFound)):
		made, err := a.op.MakeAgent(a.ctx, make, want.Tree, want.Base)
		if made.Name != "" { // also when its first task was refused
			a.did("created", "agent", made.Name, made.WorkspaceID)
		}
		if err != nil {
			return err
		}
		return a.firstTask(want)
	case err != nil:
		return err
	}
	if t, has := a.eng.Trees.Has(a.by.Tenant, want.Name); has && (want.Tree == nil || *want.Tree) {
		make.Dir = t.Dir()
		if env := a.eng.Trees.EnvOf(a.by.Tenant, make.Project, t); len(env) > 0 {
			maps.Copy(env, make.Env) // what is said of the agent itself counts
			make.Env = env
		}
	}
	if make.On != "" && make.On == have.On {
		make.Host = have.Host // it stays where it was placed
	}
	if have.As(&make) {
		a.did("unchanged", "agent", have.Name, have.WorkspaceID)
		return nil
	}
	make.Task = "" // the first task belongs to the making
	changed, err := a.eng.Fleet.Update(a.ctx, a.by, want.Name, make)
	if err != nil {
		return err
	}
	a.told(make.Env, changed.Env)
	action := "changed"
	if changed.AuditSeq == have.AuditSeq { // but for credentials that were kept before
		action = "unchanged"
	}
	a.did(action, "agent", changed.Name, changed.WorkspaceID)
	return nil
}

func (a *applier) firstTask(want swarmfile.Agent) error {
	if want.Task == "" {
		return nil
	}
	page, err := a.eng.Fleet.History(a.ctx, a.by.Tenant, want.Name, core.Filter{Size: 1})
	if err != nil {
		return err
	}
	for _, h := range page.Items {
		a.first = append(a.first, h.TaskID)
	}
	return nil
}

// limits is what the engine is asked to make of a budget.
func (a *applier) limits(subject string, want swarmfile.Limits) *budget.Budget {
	return &budget.Budget{
		TenantID: a.by.Tenant, Subject: subject,
		Tokens: want.Tokens, CostUSD: want.Cost, Tasks: want.Tasks, WallS: core.Seconds(want.Wall),
	}
}

func (a *applier) budget(subject string, want swarmfile.Limits) error {
	name := subject
	if session, ok := strings.CutPrefix(subject, "session:"); ok {
		subject = "session:" + a.sessionID(session)
	}
	next := a.limits(subject, want)
	have, found := a.budgets[subject]
	if found && have.Tokens == next.Tokens && have.CostUSD == next.CostUSD && have.Tasks == next.Tasks && have.WallS == next.WallS {
		a.did("unchanged", "budget", name, subject)
		return nil
	}
	saved, err := a.eng.Swarm.Budgets.Set(a.ctx, a.by, *next)
	if err != nil {
		return err
	}
	a.budgets[subject] = saved
	action := "created"
	if found {
		action = "changed"
	}
	a.did(action, "budget", name, subject)
	return nil
}

// concealed tells of variables that were given in clear and are kept as secrets.
func (c *call) concealed(given, kept map[string]string) {
	for _, text := range op.Concealed(given, kept) {
		fmt.Fprintln(c.env.Stderr, term.Clean(text))
	}
}
