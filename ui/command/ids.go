package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/retention"
	"swarmdeck/engine/session"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	trees "swarmdeck/engine/tree"
	"swarmdeck/ui/term"
)

// static lists the sources that need no engine; nil for the others.
func (t *tree) static(kind string) []Candidate {
	switch kind {
	case "kind":
		return []Candidate{{"exec.run", "run a command"}, {"agent.prompt", "a prompt for an agent"}, {"skill.invoke", "run a skill"}, {"cad.assignment", "operations of a CAD agent"}}
	case "cadmethod":
		var all []Candidate
		for _, name := range cad.MethodNames() {
			all = append(all, Candidate{Text: name})
		}
		return all
	case "retention":
		var all []Candidate
		for _, kind := range retention.Kinds() {
			all = append(all, Candidate{Text: kind})
		}
		return all
	case "theme":
		var all []Candidate
		for _, name := range themeNames(t.env.getenv) {
			all = append(all, Candidate{Text: name})
		}
		return all
	}
	return nil
}

// live lists ids of the tenant that the line so far works in.
func (t *tree) live(kind, detail string) []Candidate {
	if t.env.Open == nil {
		return nil
	}
	c := &call{ctx: t.ctx, env: t.env, g: t.g, reads: true, hasty: true}
	c.g.Data = t.env.dataPath(t.g.Data)
	if _, err := os.Stat(c.g.Data); err != nil && t.env.Caller.Door == core.DoorCLI {
		return nil // completing must not create a data file
	}
	c.g.ReadOnly = true
	if err := c.scope(); err != nil && (kind != "tenant" || c.eng == nil) {
		return nil
	}
	eng, by := c.eng, c.by
	if kind == "tenant" && t.env.Remote {
		return []Candidate{{Text: t.env.Caller.Tenant}}
	}
	if kind == "tenant" {
		all, err := eng.Swarm.Tenants(c.ctx)
		return candidates(all, err, func(t swarm.Tenant) Candidate { return Candidate{Text: t.TenantID} })
	}
	page := core.Filter{Size: core.MaxPageSize}
	switch kind {
	case "task":
		return t.liveTasks(c, eng, by.Tenant, detail)
	case "session":
		all, err := eng.Swarm.Sessions.List(c.ctx, by.Tenant, page)
		return candidates(all.Items, err, func(s session.Session) Candidate {
			return Candidate{s.SessionID, strings.TrimSpace(string(s.State) + " " + s.Name)}
		})
	case "agent", "subject":
		all, err := eng.Fleet.Agents(c.ctx, by.Tenant, agentFilter(page, detail))
		found := candidates(all.Items, err, func(a fleet.Agent) Candidate { return Candidate{a.Name, a.State() + " " + a.Role} })
		if kind == "subject" {
			for i := range found {
				found[i].Text = "agent:" + found[i].Text
			}
			found = append([]Candidate{{"tenant", "the whole tenant"}}, found...)
			sessions, err := eng.Swarm.Sessions.List(c.ctx, by.Tenant, page)
			found = append(found, candidates(sessions.Items, err, func(s session.Session) Candidate { return Candidate{"session:" + s.SessionID, string(s.State)} })...)
		}
		return found
	case "agent-mode", "agent-model":
		a, err := eng.Fleet.Agent(c.ctx, by.Tenant, detail)
		all, _ := a.Offered().Of(fleet.Setting(strings.TrimPrefix(kind, "agent-")))
		return candidates(all, err, func(c fleet.Choice) Candidate { return Candidate{c.ID, c.Name} })
	case "tree":
		return candidates(eng.Trees.All(by.Tenant), nil, func(t trees.Tree) Candidate { return Candidate{t.Agent, t.Base} })
	case "approval":
		page.Status = detail
		all, err := eng.Judge.Approvals(c.ctx, by.Tenant, page)
		return candidates(all.Items, err, func(a judge.Approval) Candidate {
			return Candidate{a.ApprovalID, string(a.Risk) + " " + a.Subject.Headline}
		})
	case "decision":
		all, err := eng.Judge.Decisions(c.ctx, by.Tenant, page)
		return candidates(all.Items, err, func(d judge.GateDecision) Candidate {
			return Candidate{d.DecisionID, string(d.Decision) + " " + d.ReasonCode}
		})
	case "event":
		all, err := eng.Audit.List(c.ctx, by.Tenant, page)
		return candidates(all.Items, err, func(e audit.Event) Candidate { return Candidate{e.EventID, e.EventType} })
	case "rule":
		all, err := eng.Judge.Rules(c.ctx, by.Tenant)
		return candidates(all, err, func(r judge.Rule) Candidate { return Candidate{r.RuleID, r.Line} })
	case "policy":
		all, err := eng.Judge.Policies(c.ctx, by.Tenant)
		return candidates(all, err, func(p judge.Policy) Candidate { return Candidate{p.PolicyID, string(p.Status) + " " + p.Name} })
	case "project":
		all, err := eng.Fleet.Projects(c.ctx, by.Tenant)
		return candidates(all, err, func(p fleet.Project) Candidate { return Candidate{p.Name, p.Description} })
	case "role":
		return liveRoles(c, eng, by.Tenant)
	case "message":
		return liveMessages(c, eng, by.Tenant, detail)
	case "topic":
		return liveTopics(c, eng, by.Tenant)
	case "notice":
		return liveNotices(c, eng, by.Tenant)
	case "witness":
		return liveWitnesses(c, eng, by.Tenant)
	case "engine":
		return liveEngines(c, eng)
	case "host":
		return liveHosts(c, eng, by.Tenant)
	case "egress":
		return liveEgress(c, eng, by.Tenant)
	case "filerule":
		return liveFileRules(c, eng, by.Tenant)
	case "subscription":
		return liveSubscriptions(c, eng, by.Tenant)
	case "party", "mailbox":
		return liveParties(eng, by.Tenant, kind == "party")
	case "skill":
		return liveSkills(eng, by.Tenant)
	case "subagent":
		return liveSubagents(c, eng, by.Tenant, detail)
	case "execution":
		return liveExecutions(c, eng, by.Tenant)
	case "cadagent":
		return liveCADAgents(c, eng, by.Tenant)
	case "cadreceiver":
		return append([]Candidate{{cad.ToAll, "every CAD agent but the sender"}}, liveCADAgents(c, eng, by.Tenant)...)
	case "cadrole":
		return liveCADRoles(eng, by.Tenant)
	case "cadscenario":
		all, err := eng.CAD.Scenarios(c.ctx, by.Tenant)
		return candidates(all, err, func(s cad.Scenario) Candidate { return Candidate{s.Name, s.Description} })
	case "cadworkflow":
		all, err := eng.CAD.Workflows(c.ctx, by.Tenant, page)
		return candidates(all.Items, err, func(w cad.Workflow) Candidate { return Candidate{w.WorkflowID, w.Shown() + " " + w.ScenarioName} })
	case "intent":
		all, err := eng.Intents.List(c.ctx, by.Tenant, page, false)
		return candidates(all.Items, err, func(i control.Intent) Candidate {
			return Candidate{i.IntentID, strings.TrimSpace(string(i.Status) + " " + intentAction(&i) + " " + i.Subject)}
		})
	case "workspace":
		return liveCADWorkspaces(c, eng, by.Tenant)
	case "tag":
		return liveTags(eng, by.Tenant)
	case "resource", "snapshot":
		return liveResources(c, eng, by.Tenant, kind)
	case "recorded":
		return liveSubjects(t, c, eng, by.Tenant)
	case "record", "run":
		return liveRecord(c, eng, by.Tenant, kind)
	case "source":
		return candidates(eng.Skills.Sources(by.Tenant), nil, func(s skill.Source) Candidate { return Candidate{Text: c.near(s.Path)} })
	}
	return nil
}

// liveTasks lists the tasks that a verb can be used on.
func (t *tree) liveTasks(c *call, eng *engine.Engine, tenant, verb string) []Candidate {
	fits := func(task.Task) bool { return true }
	switch verb {
	case "cancel":
		fits = func(x task.Task) bool { return !x.Status.Terminal() }
	case "undo":
		fits = func(x task.Task) bool { return x.Status == task.Queued }
	case "pause":
		fits = func(x task.Task) bool { return x.Status == task.Running && !x.Paused }
	case "resume":
		fits = func(x task.Task) bool { return x.Status == task.Running && x.Paused }
	case "retry":
		fits = func(x task.Task) bool { return x.Status.Terminal() && x.Status != task.Succeeded }
	}
	page, err := eng.Tasks.List(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	var kept []task.Task
	for _, x := range page.Items {
		if fits(x) {
			kept = append(kept, x)
		}
	}
	return candidates(kept, err, func(x task.Task) Candidate {
		return Candidate{x.TaskID, strings.TrimSpace(string(x.Status) + " " + x.Title)}
	})
}

func liveRoles(c *call, eng *engine.Engine, tenant string) []Candidate {
	projects, err := eng.Fleet.Projects(c.ctx, tenant)
	if err != nil {
		return nil
	}
	var all []Candidate
	for _, p := range projects {
		roles, err := eng.Fleet.Roles(c.ctx, tenant, p.Name)
		all = append(all, candidates(roles, err, func(r fleet.Role) Candidate { return Candidate{r.Name, r.ProjectName} })...)
	}
	return all
}

// liveSkills are the names that stand for the newest version, then the
// versions.
func liveSkills(eng *engine.Engine, tenant string) []Candidate {
	var names, versions []Candidate
	for _, s := range eng.Skills.Catalog(tenant) {
		if eng.Skills.Newest(s) {
			names = append(names, Candidate{s.Name, s.Version + " " + s.Description})
		}
		versions = append(versions, Candidate{s.Ref(), s.Description})
	}
	return append(names, versions...)
}

func liveTags(eng *engine.Engine, tenant string) []Candidate {
	var all []Candidate
	for _, s := range eng.Skills.Catalog(tenant) {
		for _, tag := range s.Tags {
			if !slices.ContainsFunc(all, func(c Candidate) bool { return c.Text == tag }) {
				all = append(all, Candidate{tag, s.Name})
			}
		}
	}
	return all
}

func agentFilter(f core.Filter, status string) core.Filter {
	f.Status = status
	return f
}

func candidates[T any](all []T, err error, of func(T) Candidate) []Candidate {
	if err != nil {
		return nil
	}
	found := make([]Candidate, len(all))
	for i, v := range all {
		found[i] = of(v)
	}
	return found
}

// files lists paths below the environment's directory; none for who is on
// another machine.
func (t *tree) files(dirs bool, last string) []Candidate {
	if t.env.Remote {
		return nil
	}
	prefix := ""
	if strings.HasPrefix(last, "@") {
		prefix, last = "@", last[1:]
	}
	dir, _ := filepath.Split(last)
	entries, err := os.ReadDir(t.env.path(filepath.Clean(dir)))
	if err != nil {
		return nil
	}
	var all []Candidate
	for _, e := range entries {
		name := dir + e.Name()
		switch {
		case e.IsDir():
			all = append(all, Candidate{Text: prefix + name + "/"})
		case !dirs:
			all = append(all, Candidate{Text: prefix + name})
		}
	}
	var kept []Candidate
	for _, c := range all {
		hidden := strings.HasPrefix(filepath.Base(strings.TrimPrefix(c.Text, prefix)), ".") && !strings.HasPrefix(filepath.Base(last), ".")
		if strings.HasPrefix(c.Text, prefix+last) && !hidden && len(kept) < maxCandidates && term.Clean(c.Text) == c.Text {
			kept = append(kept, c)
		}
	}
	return kept
}
