package record

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

// Forks says what a fork of an agent at an event would be; *resource.Resources
// does.
type Forks interface {
	Plan(ctx context.Context, tenant string, q resource.ForkRequest) (resource.Proposal, error)
}

// forks reads for a pane what a fork would be, and opens the form. A pane has
// one, and passes replies to Take first.
type forks struct {
	from   Forks
	reader pane.Reader[resource.Proposal]
}

// newForks makes the asker of a pane.
func newForks(name string, from Forks) forks {
	return forks{from, pane.NewReader[resource.Proposal](name)}
}

// Do begins to fork at the event under the cursor.
func (a *forks) Do(env pane.Env, e pane.Item) tea.Cmd {
	switch {
	case env.ReadOnly:
		return pane.Say("read-only: a fork would make an agent", true)
	case e.Agent == "" || !dag.IsEventID(e.ID):
		return pane.Say("there is no event of an agent to fork at", true)
	}
	tenant := env.Tenant
	return a.reader.Read(e.ID, func(ctx context.Context) (resource.Proposal, error) {
		return a.from.Plan(ctx, tenant, resource.ForkRequest{AgentID: e.Agent, At: e.ID})
	})
}

// Take opens the form once it is known what there is to choose from, or says
// why there is none; it reports whether the reply was its own.
func (a *forks) Take(event string, body any) (tea.Cmd, bool) {
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
	return forkForm(&r.Got).Ask(), true
}

// byFork is how a resource goes to the fork and leaves the agent.
const byFork = "keep by the fork"

// forkForm asks for a fork.
func forkForm(p *resource.Proposal) pane.Fill {
	task := overlay.Field{Name: "task", Type: overlay.StringField, Empty: "nothing: it is idle", Description: "what it is told first"}
	if p.Task != "" {
		task.Default = presetText(p.Task)
	}
	fields := []overlay.Field{
		{Name: "name", Type: overlay.StringField, Required: true, Default: presetText(p.Name), Description: "of the new agent"},
		{Name: "to", Type: overlay.StringField, Required: true, Default: presetText(p.ToBranch), Description: "its branch; " + p.AgentID + " is on " + p.FromBranch},
		task,
	}
	if how := editHow(p.Kind); how != "" {
		fields = append(fields, overlay.Field{Name: "edit", Type: overlay.StringField, Empty: "as it is", Description: "the event as it is for the fork: " + how})
	}
	for i := range p.Parts {
		f := forkField(&p.Parts[i], p.ToBranch)
		if i == 0 {
			f.Section = "What becomes of what it works on"
		}
		fields = append(fields, f)
	}
	at, agent, parts := p.AtEvent, p.AgentID, p.Parts
	return pane.Fill{
		Title: "fork " + agent + " at " + strings.ReplaceAll(string(p.Kind), "_", " ") + " " + at[:min(8, len(at))], Fields: fields,
		Line: func(object core.Raw) []string { return forkLine(agent, at, parts, object) },
	}
}

// editHow is what can be edited of an event, "" for nothing.
func editHow(k dag.Kind) string {
	switch k {
	case dag.KindHistoryAppend:
		return `{"text":"…"}`
	case dag.KindToolCall:
		return `{"args":{…}}`
	case dag.KindToolResult:
		return `{"result":{…}}, status and error`
	}
	return ""
}

// presetText is a text as a field's default. Names come from outside.
func presetText(s string) core.Raw { return core.MustEncode(strings.ToValidUTF8(s, "\ufffd")) }

// forkField asks what is done with one resource. What is not allowed is said with
// its reason, and not offered.
func forkField(p *resource.Part, to string) overlay.Field {
	f := overlay.Field{Name: p.Resource.ID, Type: overlay.EnumField, Required: true, Description: string(p.Resource.Kind) + " " + p.Resource.Name}
	for _, mode := range p.Allowed {
		f.Enum = append(f.Enum, presetText(string(mode)))
		if mode == dag.PlanKeep {
			f.Enum = append(f.Enum, presetText(byFork))
		}
	}
	if slices.Contains(p.Allowed, p.Mode) {
		f.Default = presetText(string(p.Mode))
		if p.Mode == dag.PlanKeep && p.KeptBy == to {
			f.Default = presetText(byFork)
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

// forkLine is the command of a filled form.
func forkLine(agent, at string, parts []resource.Part, object core.Raw) []string {
	in := map[string]string{}
	if err := json.Unmarshal(object, &in); err != nil {
		return []string{"dag", "fork", agent} // which says what is missing
	}
	words := []string{"dag", "fork", agent, "--at=" + at, "--name=" + in["name"], "--to=" + in["to"], "--task=" + in["task"]}
	if edit := in["edit"]; edit != "" {
		words = append(words, "--edit="+edit)
	}
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
