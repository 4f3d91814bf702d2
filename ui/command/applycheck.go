package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/session"
	trees "swarmdeck/engine/tree"
	"swarmdeck/store"
	"swarmdeck/ui/command/swarmfile"
)

// check finds everything in the file that the engine would refuse, before the
// first change is made.
func (a *applier) check(file *swarmfile.File) error {
	p := problems{file: file.Path}
	for i, s := range file.Sessions {
		at := place{fmt.Sprintf("sessions[%d]", i), s.Line, s.Lines}
		p.add(at, session.CheckName(s.Name))
		budget := at
		budget.path += ".budget"
		p.add(budget, a.limits("session:"+s.Name, s.Budget).Check())
	}
	for i, g := range file.Agents {
		at := place{fmt.Sprintf("agents[%d]", i), g.Line, g.Lines}
		from, err := a.roleOf(file, g)
		if err != nil && !p.add(at, err) {
			return err
		}
		if err == nil {
			for _, err := range a.eng.Fleet.Check(a.wanted(g, from)) {
				p.add(at, err)
			}
		}
		for _, where := range g.Egress {
			_, err := opening("", g.Name, where)
			p.add(at.member("egress"), err)
		}
		if err := a.known(file, g.Session); err != nil && !p.add(at, err) {
			return err
		}
	}
	for i, q := range file.Projects {
		at := place{fmt.Sprintf("projects[%d]", i), q.Line, q.Lines}
		p.add(at, trees.CheckLines(q.Checks))
		p.add(at.member("tree"), trees.CheckEnv(q.Env))
		p.add(at.member("tree"), trees.CheckSetup(q.Setup))
		for _, where := range q.Egress {
			_, err := opening(q.Name, "", where)
			p.add(at.member("egress"), err)
		}
		for j, r := range q.Roles {
			at := place{fmt.Sprintf("%s.roles[%d]", at.path, j), r.Line, r.Lines}
			for _, err := range a.eng.Fleet.CheckRole(q.Name, r.Name, r.Template) {
				p.add(at, err)
			}
		}
	}
	for i, b := range file.Budgets {
		at := place{fmt.Sprintf("budgets[%d]", i), b.Line, b.Lines}
		p.add(at, a.limits(b.Subject, b.Limits).Check())
		if id, ok := strings.CutPrefix(b.Subject, "session:"); ok {
			if err := a.known(file, id); err != nil && !p.add(at, err) {
				return err
			}
		}
		if name, ok := strings.CutPrefix(b.Subject, "agent:"); ok && core.IsAgent(name) && !a.knownAgent(file, name) {
			p.add(at, core.Missing("agent", name).With("field", "subject"))
		}
	}
	if err := a.checkPolicy(file, &p); err != nil {
		return err
	}
	a.checkCAD(file, &p)
	if err := a.checkSkills(file, &p); err != nil {
		return err
	}
	if err := document.Err(p.found); err != nil {
		return inFile(err)
	}
	return nil
}

// checkCAD finds what keeping the file's roles and scenarios would refuse.
func (a *applier) checkCAD(file *swarmfile.File, p *problems) {
	roles := make([]cad.RoleTemplate, len(file.Roles))
	for i, r := range file.Roles {
		at := place{fmt.Sprintf("roles[%d]", i), r.Line, r.Lines}
		role, err := r.Check()
		if err == nil {
			err = a.eng.CAD.CheckRole(role)
		}
		p.add(at, err)
		roles[i] = role
	}
	if len(p.found) > 0 && len(roles) > 0 {
		return // what scenarios say of a bad role would only confuse
	}
	r := document.NewReader(file.Path)
	for i := range file.Scenarios {
		a.eng.CAD.CheckScenario(a.by.Tenant, r, &file.Scenarios[i], roles)
	}
	p.found = append(p.found, r.Problems()...)
}

// checkSkills finds what loading the file's skills would refuse.
func (a *applier) checkSkills(file *swarmfile.File, p *problems) error {
	if len(file.Skills) == 0 {
		return nil
	}
	found, err := a.eng.Skills.Check(a.by.Tenant, given(file))
	p.found = append(p.found, found...)
	if err == nil {
		return nil
	}
	path, _ := core.AsError(err).Details["value"].(string)
	for i, s := range file.Skills {
		if s.Path == path && s.Path != "" {
			p.found = append(p.found, document.Problem{
				File: file.Path, Line: s.Line, Field: fmt.Sprintf("skills[%d]", i),
				Message: strings.TrimPrefix(err.Error(), "path: "), Value: path,
			})
			return nil
		}
	}
	return err
}

// known looks for a session that the file names: in the file or the tenant.
func (a *applier) known(file *swarmfile.File, session string) error {
	if session == "" {
		return nil
	}
	if slices.ContainsFunc(file.Sessions, func(s swarmfile.Session) bool { return s.Name == session }) {
		return nil
	}
	_, err := a.eng.Swarm.Sessions.Get(a.ctx, a.by.Tenant, session)
	if errors.Is(err, store.ErrNoTenant) || errors.Is(err, core.ErrForeign) {
		return core.Missing("session", session)
	}
	return err
}

// knownAgent looks for an agent that the file names: in the file or the tenant.
func (a *applier) knownAgent(file *swarmfile.File, name string) bool {
	return slices.ContainsFunc(file.Agents, func(g swarmfile.Agent) bool { return g.Name == name }) ||
		slices.Contains(a.eng.Parties(a.by.Tenant), name)
}

// allWrong adds what the engine would refuse of a file to what is wrong with it as
// a file, so that all is said at once. What it says of a place where something is
// wrong already would only confuse.
func (c *call) allWrong(file *swarmfile.File, wrong error) error {
	found, _ := core.AsError(wrong).Details["problems"].([]document.Problem)
	if len(found) == 0 || c.scopeUnmade(file) != nil {
		return wrong
	}
	refused := c.applier().check(file)
	if refused == nil {
		return wrong
	}
	more, _ := core.AsError(refused).Details["problems"].([]document.Problem)
	for _, m := range more {
		if !slices.ContainsFunc(found, func(p document.Problem) bool { return p.Field == m.Field || p.Line == m.Line && p.File == m.File }) {
			found = append(found, m)
		}
	}
	return inFile(document.Err(found))
}

// scopeUnmade is scopeOf for a file that is refused: it makes no tenant.
func (c *call) scopeUnmade(file *swarmfile.File) error {
	eng, err := c.engine()
	if err != nil {
		return err
	}
	all, err := eng.Swarm.Tenants(c.ctx)
	if err != nil || file.Tenant != "" || len(all) > 0 {
		return errors.Join(err, c.scopeOf(file))
	}
	c.by, err = c.operator()
	c.by.Tenant = DefaultTenant
	return err
}

// place is where an object of the file stands.
type place struct {
	path  string
	line  int
	lines swarmfile.Lines
}

// member is where a member of the object stands.
func (p place) member(name string) place { return place{p.path + "." + name, p.lines[name], nil} }

// problems collects what is wrong with a file.
type problems struct {
	file  string
	found []document.Problem
}

// inTheFile is the file's name for a field of the engine's.
func inTheFile(field string, at place) string {
	if field == "session" && at.lines["subject"] > 0 {
		return "subject"
	}
	return cmp.Or(map[string]string{"message": "task", "check": "checks", "cost_usd": "cost", "wall_s": "wall"}[field], field)
}

// add notes an error about the object at a place; nil is none. It tells
// whether err is about the file at all.
func (p *problems) add(at place, err error) bool {
	if err == nil {
		return true
	}
	e := core.AsError(err)
	if e.Code == core.Internal || e.Code == core.Unavailable {
		return false
	}
	field, _ := e.Details["field"].(string)
	message := strings.TrimPrefix(strings.TrimPrefix(e.Message, "task: "), field+": ")
	field = inTheFile(field, at)
	top := field // env.NAME stands in env
	if end := strings.IndexAny(field, ".["); end >= 0 {
		top = field[:end]
	}
	line := at.line
	if n := at.lines[top]; n > 0 {
		line = n
	} else if n := at.lines["budget"]; n > 0 {
		line = n
	}
	p.found = append(p.found, document.Problem{File: p.file, Line: line, Field: at.path + "." + field, Message: message})
	return true
}
