package command

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/op"
	"swarmdeck/engine/retention"
	"swarmdeck/ui/term"
)

// static lists the sources that need no engine; nil for the others.
func (t *tree) static(kind string) (all []Candidate) {
	switch kind {
	case "kind":
		return []Candidate{{"exec.run", "run a command"}, {"agent.prompt", "a prompt for an agent"}, {"skill.invoke", "run a skill"}, {"cad.assignment", "operations of a CAD agent"}}
	case "cadmethod":
		return texts(cad.MethodNames())
	case "retention":
		return texts(retention.Kinds())
	case "view":
		c := &call{ctx: t.ctx, env: t.env, g: t.g}
		for _, v := range c.listed() {
			all = append(all, Candidate{v.Name, v.List})
		}
		return all
	case "theme":
		return texts(themeNames(t.env.getenv))
	case "coding":
		found, _ := foundCoding(t.env.getenv)
		for _, a := range found {
			all = append(all, Candidate{a.Name, a.About})
		}
		return all
	}
	return nil
}

func texts(words []string) (all []Candidate) {
	return core.Map(words, func(word string) Candidate { return Candidate{Text: word} })
}

// live lists ids of the tenant that the line so far works in.
func (t *tree) live(kind, detail string) []Candidate {
	if t.env.Open == nil {
		return nil
	}
	c := &call{ctx: t.ctx, env: t.env, g: t.g, reads: true, need: Need{NoWait: true}}
	c.g.Data = t.env.dataPath(t.g.Data)
	if _, err := os.Stat(c.g.Data); err != nil && t.env.Caller.Door == core.DoorCLI {
		return nil // completing must not create a data file
	}
	c.g.ReadOnly = true
	if err := c.scope(); err != nil && (kind != "tenant" || c.eng == nil) {
		return nil
	}
	return completion{c}.live(kind, detail)
}

// completion finds what a line of a call may name.
type completion struct{ *call }

func (c completion) live(kind, detail string) (all []Candidate) {
	eng, tenant := c.eng, c.by.Tenant
	switch kind {
	case "tenant":
		if c.env.Remote {
			return []Candidate{{Text: c.env.Caller.Tenant}}
		}
		found, _ := eng.Swarm.Tenants(c.ctx)
		return c.candidates(found, "")
	case "engine":
		found, _ := eng.Cluster.Look(c.ctx)
		return c.candidates(found.Engines, "")
	case "tree":
		for _, tr := range eng.Trees.All(tenant) {
			all = append(all, Candidate{tr.Agent, tr.Base})
		}
		return all
	case "agent-mode", "agent-model":
		a, _ := eng.Fleet.Agent(c.ctx, tenant, detail)
		choices, _ := a.Offered().Of(fleet.Setting(strings.TrimPrefix(kind, "agent-")))
		for _, choice := range choices {
			all = append(all, Candidate{choice.ID, choice.Name})
		}
		return all
	case "subject":
		all = append(all, Candidate{"tenant", "the whole tenant"})
		return append(all, c.prefixed("agent", "session")...)
	case "recorded":
		return c.prefixed("agent", "task")
	case "role":
		projects, _ := eng.Fleet.Projects(c.ctx, tenant)
		for _, p := range projects {
			roles, _ := eng.Fleet.Roles(c.ctx, tenant, p.Name)
			all = append(all, c.candidates(roles, "")...)
		}
		return all
	case "party", "mailbox":
		return c.parties(kind == "party")
	case "skill": // names stand for the newest version, then the versions
		for _, s := range eng.Skills.Catalog(tenant) {
			if eng.Skills.Newest(s) {
				all = append(all, Candidate{s.Name, s.Version + " " + s.Description})
			}
		}
		return append(all, c.candidates(eng.Skills.Catalog(tenant), "")...)
	case "tag":
		for _, s := range eng.Skills.Catalog(tenant) {
			for _, tag := range s.Tags {
				if !slices.ContainsFunc(all, func(c Candidate) bool { return c.Text == tag }) {
					all = append(all, Candidate{tag, s.Name})
				}
			}
		}
		return all
	case "run":
		page, _ := eng.DAG.Events(c.ctx, tenant, dag.Query{Filter: core.Filter{Size: core.MaxPageSize}})
		for _, e := range page.Items {
			run := Candidate{e.Event.RunID, e.Event.AgentID}
			if run.Text != "" && !slices.Contains(all, run) {
				all = append(all, run)
			}
		}
		return all
	case "snapshot":
		page, _ := eng.Resources.List(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
		for _, v := range page.Items {
			snaps, _ := eng.Resources.Snapshots(c.ctx, tenant, v.ID, core.Filter{Size: 20})
			all = append(all, c.candidates([]resource.Shown(snaps.Items), "")...)
		}
		return all
	case "cadreceiver":
		return append([]Candidate{{cad.ToAll, "every CAD agent but the sender"}}, c.live("cadagent", "")...)
	}
	all = c.listed(kind, detail)
	if kind == "egress" {
		names, about := egress.Presets()
		for i, name := range names {
			all = append(all, Candidate{name, about[i]})
		}
	}
	return all
}

// listed are what the list of a source has: of those in a state, or one of several
// ("queued|running"), where there is a detail.
func (c completion) listed(kind, detail string) []Candidate {
	o := op.List(kind)
	if o == nil {
		return nil
	}
	if o.Filter != nil {
		o.Filter.Size = core.MaxPageSize
		if slices.Contains(o.Statuses, detail) {
			o.Filter.Status, detail = detail, ""
		}
	}
	call := c.forOp()
	out, err := o.Run(c.ctx, &call)
	if err != nil || out == nil {
		return nil
	}
	return c.candidates(out, detail)
}

// candidates are records by their ids, with their state and what they are about.
func (c completion) candidates(records any, states string) (all []Candidate) {
	rows, of := face.Rows(records)
	f, at := op.FaceOf(of), c.at()
	if f == nil {
		return nil
	}
	for i := range rows.Len() {
		v := face.Row(rows, i)
		state := f.State(v, at)
		if word, _, _ := strings.Cut(state, " "); states != "" && !slices.Contains(strings.Split(states, "|"), word) {
			continue
		}
		all = append(all, Candidate{f.ID(v), strings.TrimSpace(state + " " + cmp.Or(f.Head(v), f.Last(v, at)))})
	}
	return all
}

// prefixed are the candidates of sources, each with the source before it.
func (c completion) prefixed(kinds ...string) (all []Candidate) {
	for _, kind := range kinds {
		for _, found := range c.live(kind, "") {
			all = append(all, Candidate{kind + ":" + found.Text, found.Help})
		}
	}
	return all
}

// parties lists who has a mailbox, and for sending also everybody.
func (c completion) parties(sending bool) (all []Candidate) {
	what := map[string]string{}
	for _, a := range c.eng.Fleet.Live(c.by.Tenant) {
		what[a.Name] = a.State() + " " + a.Role
	}
	for _, name := range c.eng.Parties(c.by.Tenant) {
		all = append(all, Candidate{name, cmp.Or(what[name], "subagent")})
	}
	all = append(all, Candidate{bus.Controller, "what steers the agents"}, Candidate{bus.System, "the engine and its operators"})
	if sending {
		all = append(all, Candidate{bus.Broadcast, "every agent"})
	}
	return all
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
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(filepath.Base(last), ".")
		if e.IsDir() {
			name += "/"
		}
		if (e.IsDir() || !dirs) && strings.HasPrefix(name, last) && !hidden && len(all) < maxCandidates && term.Clean(name) == name {
			all = append(all, Candidate{Text: prefix + name})
		}
	}
	return all
}
