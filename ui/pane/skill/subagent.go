package skill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// SubagentName is the pane's name and keymap scope.
const SubagentName = "subagent"

// subagentRuns is how many of its latest executions the sheet lists.
const subagentRuns = 20

// wholeSubagent is a subagent with its newest executions.
type wholeSubagent struct {
	skill.Subagent
	runs core.Page[skill.Execution]
}

// NewSubagent makes the sheet of one subagent: what it runs, what came of each
// skill, and its executions.
func NewSubagent(of Skills) *pane.Detail[wholeSubagent] {
	return pane.NewDetail(pane.DetailSpec[wholeSubagent]{
		Name: SubagentName, Text: subagentText, Live: true,
		Fetch: func(ctx context.Context, tenant, id string) (g wholeSubagent, err error) {
			if g.Subagent, err = of.Subagent(ctx, tenant, id); err != nil {
				return g, err
			}
			g.runs, err = of.Executions(ctx, tenant, "", core.Filter{Agent: id, Page: 1, Size: subagentRuns})
			return g, err
		},
		Item:    func(g *wholeSubagent) pane.Item { return pane.SubagentItem(&g.Subagent) },
		Title:   func(g *wholeSubagent) string { return "subagent " + g.Label() },
		State:   func(env *pane.Env, g *wholeSubagent) pane.State { return pane.SubagentState(env, &g.Subagent) },
		Settled: func(g *wholeSubagent) bool { return g.State.Final() },
	})
}

func subagentText(env pane.Env, g *wholeSubagent, out *pane.Paras) {
	a := &g.Subagent
	if string(a.State) != pane.SubagentState(&env, a).Word { // its own word beside the one that all agents share
		out.Add("", string(a.State), screen.Dim)
	}
	out.Fields(&env, a, "error,exact,bad")
	if a.Waiting != "" {
		why, role := pane.SubagentWhy(&env, a)
		out.Link("waits for", why, role, pane.Item{Kind: "approval", ID: a.Waiting, Approval: a.Waiting})
	}
	out.Fields(&env, a, "skill,opens")
	if name, _, _ := strings.Cut(a.Skill, "@"); a.Step != name {
		label := "now"
		if a.State.Final() {
			label = "ended in"
		}
		out.Add(label, a.Step, screen.Text)
	}
	out.Fields(&env, a, "subagent:agent_id,accent task:task_id,opens session:session_id,opens")
	out.Add("created", pane.Made(env.Now, a.CreatedAt, a.CreatedBy), screen.Text)
	out.Fields(&env, a, "started:started_at")
	if !a.CompletedAt.IsZero() {
		ended := pane.When(env.Now, a.CompletedAt)
		if !a.StartedAt.IsZero() {
			ended += ", took " + face.Took(a.CompletedAt.Sub(a.StartedAt))
		}
		out.Add("ended", ended, screen.Text)
	}
	out.Fields(&env, a, "trace:trace_id,dim")
	out.Head(fmt.Sprintf("executions (%d)", g.runs.Info.Total))
	for i := range g.runs.Items {
		linkExecution(&env, out, &g.runs.Items[i])
	}
	for _, name := range slices.Sorted(maps.Keys(a.Results)) {
		out.Document("result of "+name, a.Results[name])
	}
	out.Document("parameters", a.SkillParams)
	out.Document("metadata", a.Metadata)
}

// NewSubagents makes the pane of all that ran or runs skills, newest first.
func NewSubagents(of Skills) *pane.Table[skill.Subagent] {
	return pane.NewTable(pane.Spec[skill.Subagent]{
		Name: "subagents", Title: "subagents", Empty: "no subagents: invoke a skill in the skills pane",
		Face: face.For[skill.Subagent](),
		Cells: map[string]pane.Cell[skill.Subagent]{
			"STATE": func(env *pane.Env, a *skill.Subagent) (string, screen.Role) {
				return pane.SubagentState(env, a).Cell(env)
			},
			"NAME": func(env *pane.Env, a *skill.Subagent) (string, screen.Role) {
				return a.Label(), screen.Accent
			},
			"ERROR": pane.SubagentWhy,
		},
		Item:  pane.SubagentItem,
		Fetch: of.Subagents,
	})
}
