package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/session"
	"swarmdeck/engine/skill"
	trees "swarmdeck/engine/tree"
	"swarmdeck/store"
	"swarmdeck/ui/command/swarmfile"
)

// applier carries one application of a file.
type applier struct {
	ctx      context.Context
	eng      *engine.Engine
	by       core.Caller
	open     func(path string) (*os.File, error)
	sessions map[string]string // name → id
	budgets  map[string]budget.Budget
	done     []Applied
	told     func(given, kept map[string]string) // of credentials in clear
	first    []string                            // tasks given
}

func (a *applier) did(action, object, name, id string) {
	a.done = append(a.done, Applied{Action: action, Object: object, Name: name, ID: id})
}

// apply makes the tenant as the file says. A file that the engine would refuse
// any of changes nothing. What was done before another error is returned with
// it; applying again goes on from there.
func (c *call) apply(file *swarmfile.File) ([]Applied, []string, error) {
	a := c.applier()
	if err := a.check(file); err != nil {
		return nil, nil, err
	}
	err := a.all(file)
	return a.done, a.first, err
}

func (c *call) applier() *applier {
	return &applier{ctx: c.ctx, eng: c.eng, by: c.by, open: c.openFile, told: c.concealed, sessions: map[string]string{}, budgets: map[string]budget.Budget{}}
}

func (a *applier) all(file *swarmfile.File) error {
	if file.Tenant != "" {
		if err := a.tenant(file.Tenant); err != nil {
			return err
		}
	}
	all, err := a.eng.Swarm.Budgets.List(a.ctx, a.by.Tenant)
	if err != nil {
		return err
	}
	for _, b := range all {
		a.budgets[b.Subject] = b
	}
	where := func(line int, err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%s:%d: %w", file.Path, line, err)
	}
	if file.Slots > 0 {
		_, action, err := a.eng.Swarm.SetSlots(a.ctx, a.by, file.Slots)
		if err != nil {
			return err
		}
		a.did(action, "slots", strconv.Itoa(file.Slots), a.by.Tenant)
	}
	for _, s := range file.Servers { // before the skills that use them
		made, action, err := a.eng.Tools.Put(a.ctx, a.by, s.Server)
		if err != nil {
			return where(s.Line, err)
		}
		a.told(s.Env, made.Env)
		a.did(action, "mcp_server", s.Name, s.Name)
	}
	if err := a.skills(file); err != nil {
		return err
	}
	for _, t := range file.Topics {
		if err := a.topic(t); err != nil {
			return where(t.Line, err)
		}
	}
	for _, p := range file.Projects { // before the agents that are made from their roles
		if err := a.project(p, where); err != nil {
			return err
		}
	}
	for _, r := range file.Roles { // before the scenarios whose agents have them
		_, action, err := a.eng.CAD.PutRole(a.ctx, a.by, r.RoleTemplate)
		if err != nil {
			return where(r.Line, err)
		}
		a.did(action, "role", r.Name, r.Name)
	}
	for _, s := range file.Scenarios {
		_, action, err := a.eng.CAD.PutScenario(a.ctx, a.by, s.Scenario)
		if err != nil {
			return where(s.Line(), err)
		}
		a.did(action, "scenario", s.Name, s.Name)
	}
	for _, o := range file.Operators {
		_, action, err := a.eng.Operators.Put(a.ctx, a.by, o.Operator)
		if err != nil {
			return where(o.Line, err)
		}
		a.did(action, "operator", o.Name, o.Name)
	}
	if p := file.Policy; p != nil { // before anything that it is to judge
		if err := a.policy(p); err != nil {
			return where(p.Line, err)
		}
	}
	for _, n := range file.Notices { // before anything that it may tell of
		_, action, err := a.eng.Notices.Put(a.ctx, a.by, n.Notice)
		if err != nil {
			return where(n.Line, err)
		}
		a.did(action, "notice", n.Name, n.Name)
	}
	for _, s := range file.Sessions {
		if err := a.session(s); err != nil {
			return where(s.Line, err)
		}
	}
	for _, g := range file.Agents {
		if err := a.agent(file, g); err != nil {
			return where(g.Line, err)
		}
	}
	for _, b := range file.Budgets {
		if err := a.budget(b.Subject, b.Limits); err != nil {
			return where(b.Line, err)
		}
	}
	return nil
}

func (a *applier) tenant(id string) error {
	all, err := a.eng.Swarm.Tenants(a.ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.TenantID == id {
			a.did("unchanged", "tenant", id, id)
			return nil
		}
	}
	if _, err := a.eng.Swarm.CreateTenant(a.ctx, a.by, id); err != nil {
		return err
	}
	a.did("created", "tenant", id, id)
	return nil
}

// given is what the file has the engine load.
func given(file *swarmfile.File) (g skill.Given) {
	for _, s := range file.Skills {
		if s.Path != "" {
			g.Paths = append(g.Paths, s.Path)
		} else {
			g.Definitions = append(g.Definitions, s.Definition)
		}
	}
	return g
}

func (a *applier) skills(file *swarmfile.File) error {
	if len(file.Skills) == 0 {
		return nil
	}
	got, err := a.eng.Skills.Load(a.ctx, a.by, given(file))
	for _, s := range got.Changes {
		a.did(s.Action, "skill", s.Name, s.Name+"@"+s.Version)
	}
	if err == nil {
		err = document.Err(got.Refused)
	}
	return err
}

// reaction is what the engine is asked to make of a topic.
func reaction(want swarmfile.Topic) skill.Reaction {
	return skill.Reaction{Pattern: want.Pattern, Skill: want.Skill, Params: want.Params}
}

func (a *applier) topic(want swarmfile.Topic) error {
	r, made, err := a.eng.Skills.React(a.ctx, a.by, reaction(want))
	if err != nil {
		return err
	}
	action := "unchanged"
	if made {
		action = "created"
	}
	a.did(action, "topic", want.Pattern, r.ReactionID)
	return nil
}

func (a *applier) session(want swarmfile.Session) error {
	s, found, err := a.liveSession(want.Name)
	if err != nil {
		return err
	}
	action := "unchanged"
	if !found {
		action = "created"
		if s, err = a.eng.Swarm.Sessions.Create(a.ctx, a.by, want.Name); err != nil {
			return err
		}
	}
	a.sessions[want.Name] = s.SessionID
	if want.Start && s.State == session.Created {
		if _, err = a.eng.Swarm.Sessions.Start(a.ctx, a.by, s.SessionID); err != nil {
			return err
		}
		if found {
			action = "changed"
		}
	}
	a.did(action, "session", want.Name, s.SessionID)
	if want.Budget == (swarmfile.Limits{}) {
		return nil
	}
	return a.budget("session:"+want.Name, want.Budget)
}

// liveSession finds the session of this name that is not stopped.
func (a *applier) liveSession(name string) (session.Session, bool, error) {
	for _, state := range []session.State{session.Running, session.Paused, session.Created} {
		for f := (core.Filter{Status: string(state), Size: core.MaxPageSize, Page: 1}); ; f.Page++ {
			page, err := a.eng.Swarm.Sessions.List(a.ctx, a.by.Tenant, f)
			if err != nil {
				return session.Session{}, false, err
			}
			for _, s := range page.Items {
				if s.Name == name {
					return s, true, nil
				}
			}
			if !page.Info.Next {
				break
			}
		}
	}
	return session.Session{}, false, nil
}

func (a *applier) sessionID(name string) string {
	if id, ok := a.sessions[name]; ok {
		return id
	}
	return name
}

// project keeps what tests a project and what its agents are made with.
func (a *applier) project(p swarmfile.Project, where func(int, error) error) error {
	if p.Checks != nil {
		_, action, err := a.eng.Trees.PutChecks(a.ctx, a.by, p.Name, p.Checks)
		if err != nil {
			return where(p.Lines["checks"], err)
		}
		a.did(action, "checks", p.Name, p.Name)
	}
	if p.Env != nil || p.Setup != nil {
		_, action, err := a.eng.Trees.PutTree(a.ctx, a.by, p.Name, p.Env, p.Setup)
		if err != nil {
			return where(p.Lines["tree"], err)
		}
		a.did(action, "tree", p.Name, p.Name)
	}
	for _, r := range p.Roles {
		_, action, err := a.eng.Fleet.PutRole(a.ctx, a.by, p.Name, r.Name, r.Template)
		if err != nil {
			return where(r.Line, err)
		}
		a.did(action, "role", r.Name, r.Name)
	}
	return nil
}

// treeEnv gives an agent what trees of its project have, where it says nothing itself.
func (a *applier) treeEnv(make *fleet.Create, t trees.Tree) {
	env := a.eng.Trees.EnvOf(a.by.Tenant, make.Project, t)
	maps.Copy(env, make.Env)
	if len(env) > 0 {
		make.Env = env
	}
}

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
	c.Runtime = cmp.Or(c.Runtime, "exec")
	return c
}

func (a *applier) agent(file *swarmfile.File, want swarmfile.Agent) error {
	from, err := a.roleOf(file, want)
	if err != nil {
		return err
	}
	make := a.wanted(want, from)
	have, err := a.eng.Fleet.Agent(a.ctx, a.by.Tenant, want.Name)
	switch {
	case errors.Is(err, core.Kind(core.NotFound)):
		if want.Tree {
			t, err := a.eng.Trees.Prepare(a.ctx, a.by, make.Project, want.Name, want.Dir, want.Base)
			if err != nil {
				return err
			}
			make.Dir = t.Dir()
			a.treeEnv(&make, t)
		}
		made, err := a.eng.Fleet.Create(a.ctx, a.by, make)
		a.told(make.Env, made.Env)
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
	if t, has := a.eng.Trees.Has(a.by.Tenant, want.Name); has && want.Tree {
		make.Dir = t.Dir()
		a.treeEnv(&make, t)
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
