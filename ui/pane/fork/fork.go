// Package fork makes the form that asks how an agent is to be forked at an
// event: its name, its branch, its first words, and what happens to each
// resource that it had then.
package fork

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// Asker reads for a pane what a fork would be, and opens the form. A pane has
// one, and passes replies to Take first.
type Asker struct {
	reader pane.Reader[resource.Proposal]
}

// New makes the asker of a pane.
func New(name string) Asker { return Asker{pane.NewReader[resource.Proposal](name)} }

// Do begins to fork at the event under the cursor.
func (a *Asker) Do(env pane.Env, e pane.Item) tea.Cmd {
	switch {
	case env.ReadOnly:
		return pane.Say("read-only: a fork would make an agent", true)
	case e.Agent == "" || !dag.IsEventID(e.ID):
		return pane.Say("there is no event of an agent to fork at", true)
	}
	world, tenant := env.World, env.Tenant
	return a.reader.Read(e.ID, func(ctx context.Context) (resource.Proposal, error) {
		return world.ProposeFork(ctx, tenant, e.Agent, e.ID)
	})
}

// Take opens the form once it is known what there is to choose from, or says
// why there is none; it reports whether the reply was its own.
func (a *Asker) Take(event string, body any) (tea.Cmd, bool) {
	if _, mine := body.(pane.Answer[resource.Proposal]); !mine {
		return nil, false
	}
	r, ok := a.reader.Take(event, body)
	switch {
	case !ok: // another event is under the cursor by now
		return nil, true
	case r.Err != nil:
		return pane.Say(r.Err.Error(), true), true
	}
	return Form(&r.Got).Ask(), true
}

// byFork is how a resource goes to the fork and leaves the agent.
const byFork = "keep by the fork"

// Form asks for a fork.
func Form(p *resource.Proposal) pane.Fill {
	task := overlay.Field{Name: "task", Type: overlay.StringField, Description: "what it is told first; nothing leaves it idle"}
	if p.Task != "" {
		task.Default = preset(p.Task)
	}
	fields := []overlay.Field{
		{Name: "name", Type: overlay.StringField, Required: true, Default: preset(p.Name), Description: "of the new agent"},
		{Name: "to", Type: overlay.StringField, Required: true, Default: preset(p.ToBranch), Description: "its branch; " + p.AgentID + " is on " + p.FromBranch},
		task,
	}
	for i := range p.Parts {
		fields = append(fields, field(&p.Parts[i], p.ToBranch))
	}
	at, agent, parts := p.AtEvent, p.AgentID, p.Parts
	return pane.Fill{
		Title: "fork " + agent + " at " + strings.ReplaceAll(string(p.Kind), "_", " ") + " " + at[:min(8, len(at))], Fields: fields,
		Line: func(object core.Raw) []string { return line(agent, at, parts, object) },
	}
}

// preset is a text as a field's default. Names come from outside.
func preset(s string) core.Raw { return core.MustEncode(strings.ToValidUTF8(s, "\ufffd")) }

// field asks what is done with one resource. What is not allowed is said with
// its reason, and not offered.
func field(p *resource.Part, to string) overlay.Field {
	f := overlay.Field{Name: p.Resource.ID, Type: overlay.EnumField, Required: true, Description: string(p.Resource.Kind) + " " + p.Resource.Name}
	for _, mode := range p.Allowed {
		f.Enum = append(f.Enum, preset(string(mode)))
		if mode == dag.PlanKeep {
			f.Enum = append(f.Enum, preset(byFork))
		}
	}
	if slices.Contains(p.Allowed, p.Mode) {
		f.Default = preset(string(p.Mode))
		if p.Mode == dag.PlanKeep && p.KeptBy == to {
			f.Default = preset(byFork)
		}
	}
	if p.Note != "" {
		f.Description += ": " + p.Note
	}
	for _, mode := range []dag.Plan{dag.PlanKeep, dag.PlanSnapshot, dag.PlanDiscard} {
		if why := p.Why[mode]; why != "" {
			f.Description += "; no " + string(mode) + ": " + why
		}
	}
	return f
}

// line is the command of a filled form.
func line(agent, at string, parts []resource.Part, object core.Raw) []string {
	in := map[string]string{}
	if err := json.Unmarshal(object, &in); err != nil {
		return []string{"dag", "fork", agent} // which says what is missing
	}
	words := []string{"dag", "fork", agent, "--at=" + at, "--name=" + in["name"], "--to=" + in["to"], "--task=" + in["task"]}
	plan := []dag.VolumePlan{}
	for i := range parts {
		id := parts[i].Resource.ID
		switch mode := in[id]; mode {
		case "":
		case byFork:
			plan = append(plan, dag.VolumePlan{Resource: id, Mode: dag.PlanKeep, KeptBy: in["to"]})
		default:
			plan = append(plan, dag.VolumePlan{Resource: id, Mode: dag.Plan(mode)})
		}
	}
	if text, err := core.Encode(plan); err == nil && len(plan) > 0 {
		words = append(words, "--plan="+string(text))
	}
	return words
}
