package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/engine/session"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
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
	op       op.Call
	first    []string // tasks given
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
	return &applier{ctx: c.ctx, eng: c.eng, by: c.by, open: c.openFile, told: c.concealed, op: c.forOp(), sessions: map[string]string{}, budgets: map[string]budget.Budget{}}
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
	if slices.ContainsFunc(all, func(t swarm.Tenant) bool { return t.TenantID == id }) {
		a.did("unchanged", "tenant", id, id)
		return nil
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

func (a *applier) session(want swarmfile.Session) error {
	s, found := a.liveSession(want.Name)
	action := "unchanged"
	var err error
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
func (a *applier) liveSession(name string) (session.Session, bool) {
	for _, s := range a.eng.Swarm.Sessions.Live(a.by.Tenant) {
		if s.Name == name {
			return *s, true
		}
	}
	return session.Session{}, false
}

func (a *applier) sessionID(name string) string {
	if id, ok := a.sessions[name]; ok {
		return id
	}
	return name
}

// opening is the rule that lets a project's agents, or one agent, reach a host or a preset.
func opening(project, agent, where string) (egress.Rule, error) {
	r, err := egress.NewRule(egress.Allow, where)
	r.Project, r.Agent = project, agent
	if err == nil {
		err = r.Check()
	}
	return r, err
}

// project keeps what tests a project, what its agents reach and what they are made with.
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
	if err := a.reaches(p.Name, "", p.Egress); err != nil {
		return where(p.Lines["egress"], err)
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

// reaches lets a project's agents, or one agent, reach hosts.
func (a *applier) reaches(project, agent string, hosts []string) error {
	for _, host := range hosts {
		r, err := opening(project, agent, host)
		if err != nil {
			return err
		}
		_, action, err := a.eng.Egress.Put(a.ctx, a.by, r, 0)
		if err != nil {
			return err
		}
		a.did(action, "egress", host, r.ID())
	}
	return nil
}

// policy lets the file's policy rule.
func (a *applier) policy(p *swarmfile.Policy) error {
	in, err := a.written(p)
	if err != nil {
		return err
	}
	made, action, err := a.eng.Judge.Apply(a.ctx, a.by, in)
	if err != nil {
		return err
	}
	a.did(action, "policy", made.Name, made.PolicyID)
	return nil
}

// written is the policy that a swarm file names.
func (a *applier) written(p *swarmfile.Policy) (in judge.Proposal, err error) {
	in.Serve = p.Serve
	if in.Source, err = a.readFile("file", p.File); err != nil {
		return in, err
	}
	if in.Cases, err = a.readFile("tests", p.Tests); err != nil {
		return in, err
	}
	return op.ProposalOf(in, p.File, p.Interpreter, p.Gates), nil
}

// checkPolicy finds what letting the file's policy rule would refuse. A
// mistake in the policy's own files is told with its place there.
func (a *applier) checkPolicy(file *swarmfile.File, p *problems) error {
	want := file.Policy
	if want == nil {
		return nil
	}
	at := place{"policy", want.Line, want.Lines}
	in, err := a.written(want)
	if err != nil {
		if !p.add(at, err) {
			return err
		}
		return nil
	}
	err = a.eng.Judge.CheckApply(a.ctx, a.by, in)
	if err == nil {
		return nil
	}
	e := core.AsError(err)
	part, _ := e.Details["in"].(string)
	line, _ := e.Details["line"].(int)
	path := map[string]string{"source": want.File, "tests": want.Tests}[part]
	if path != "" && line > 0 {
		field, _ := e.Details["field"].(string)
		message := strings.Replace(e.Message, fmt.Sprintf(" (line %d)", line), "", 1)
		for _, said := range []string{"policy: ", "tests: ", fmt.Sprintf("line %d: ", line), field + ": "} {
			message = strings.TrimPrefix(message, said)
		}
		p.found = append(p.found, document.Problem{File: path, Line: line, Field: cmp.Or(field, "policy"), Message: message})
		return nil
	}
	if e.Details["field"] == nil || e.Details["field"] == "source" {
		e = e.With("field", "file")
	}
	if !p.add(at, e) {
		return err
	}
	return nil
}

func (a *applier) readFile(field, path string) ([]byte, error) {
	f, err := a.open(path)
	if err != nil {
		return nil, fileError(field, path, err)
	}
	defer f.Close()
	return readBounded(field, path, f)
}
