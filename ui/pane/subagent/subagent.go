// Package subagent is the sheet of one subagent: what it runs, what came of
// each skill, and its executions.
package subagent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/executions"
	"swarmdeck/ui/pane/subagents"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "subagent"

// runsShown is how many of its latest executions the sheet lists.
const runsShown = 20

// Pane shows one subagent.
type Pane struct{ *pane.Detail[whole] }

// whole is a subagent with its newest executions.
type whole struct {
	skill.Subagent
	runs core.Page[skill.Execution]
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[whole]{
		Name: Name, Fetch: fetch, Text: text, Live: true,
		Item: func(g *whole) pane.Item { return subagents.Item(&g.Subagent) },
		Title: func(env pane.Env, g *whole) string {
			return "subagent " + g.Label() + " " + pane.SubagentState(&env, &g.Subagent).Label(env.Glyphs)
		},
		Settled: func(g *whole) bool { return g.State.Final() },
	})}
}

func fetch(w pane.World, ctx context.Context, tenant, id string) (g whole, err error) {
	if g.Subagent, err = w.Subagent(ctx, tenant, id); err != nil {
		return g, err
	}
	g.runs, err = w.Executions(ctx, tenant, "", core.Filter{Agent: id, Page: 1, Size: runsShown})
	return g, err
}

func text(env pane.Env, g *whole, out *pane.Paras) {
	a := &g.Subagent
	st := pane.SubagentState(&env, a)
	state := st.Label(env.Glyphs)
	if string(a.State) != st.Word { // its own word beside the one that all agents share
		state += " (" + string(a.State) + ")"
	}
	out.Add("state", state, st.Role())
	if a.Error != "" {
		out.Exact("error", a.Error, screen.Bad)
	}
	if a.Waiting != "" {
		why, role := subagents.Why(&env, a)
		out.Link("waits for", why, role, pane.Item{Kind: "approval", ID: a.Waiting, Approval: a.Waiting})
	}
	out.Link("skill", a.Skill, screen.Accent, pane.Item{Kind: "skill", ID: a.Skill})
	if name, _, _ := strings.Cut(a.Skill, "@"); a.Step != name {
		label := "now"
		if a.State.Final() {
			label = "ended in"
		}
		out.Add(label, a.Step, screen.Text)
	}
	out.Add("subagent", a.AgentID, screen.Accent)
	out.Link("task", a.TaskID, screen.Accent, pane.Item{Kind: "task", ID: a.TaskID})
	out.Add("session", a.SessionID, screen.Accent)
	by := ""
	if a.CreatedBy != "" {
		by = " by " + a.CreatedBy
	}
	out.Add("created", pane.When(env.Now, a.CreatedAt)+by, screen.Text)
	out.Add("started", pane.When(env.Now, a.StartedAt), screen.Text)
	if !a.CompletedAt.IsZero() {
		ended := pane.When(env.Now, a.CompletedAt)
		if !a.StartedAt.IsZero() {
			ended += ", took " + pane.Took(a.CompletedAt.Sub(a.StartedAt))
		}
		out.Add("ended", ended, screen.Text)
	}
	out.Add("trace", a.TraceID, screen.Dim)
	out.Head(fmt.Sprintf("executions (%d)", g.runs.Info.Total))
	for i := range g.runs.Items {
		executions.Link(&env, out, &g.runs.Items[i])
	}
	for _, name := range slices.Sorted(maps.Keys(a.Results)) {
		out.Head("result of " + name)
		out.JSON("", a.Results[name])
	}
	if len(a.SkillParams) > 0 {
		out.Head("parameters")
		out.JSON("", a.SkillParams)
	}
	if len(a.Metadata) > 0 {
		out.Head("metadata")
		out.JSON("", a.Metadata)
	}
}
