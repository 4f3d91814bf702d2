// Package skill is the sheet of one version of a skill: its contract, what it
// needs, and how its last runs went.
package skill

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/executions"
	"swarmdeck/ui/pane/invoke"
	"swarmdeck/ui/pane/skills"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "skill"

// Bounds of what the sheet lists.
const (
	runsShown     = 8
	versionsShown = 20
	needsRead     = 200 // skills of the graph
)

// Pane shows one skill.
type Pane struct{ *pane.Detail[whole] }

// whole is a skill with what else there is to say of it.
type whole struct {
	*skill.Skill
	versions []*skill.Skill // of the same name, the newest first
	needs    map[string]*skill.Skill
	figures  skill.Figures
	runs     []skill.Execution
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[whole]{
		Name: Name, Fetch: fetch, Text: text, Live: true,
		Item:  func(g *whole) pane.Item { return skills.Item(g.Skill) },
		Title: func(_ pane.Env, g *whole) string { return "skill " + g.Ref() },
	})}
}

// Fill implements pane.Filler.
func (p *Pane) Fill(env pane.Env, action string) (pane.Fill, bool) {
	return invoke.Fill(env, action, p.Selected(env).ID)
}

// Do implements pane.Pane.
func (p *Pane) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if action == "invoke" {
		return invoke.Refuse(env, p.Selected(env).ID), true
	}
	return p.Detail.Do(env, action)
}

func fetch(w pane.World, ctx context.Context, tenant, ref string) (g whole, err error) {
	if g.Skill, err = w.Skill(tenant, ref); err != nil {
		return g, err
	}
	same, err := w.Skills(tenant, core.Filter{Match: g.Name + "@", Page: 1, Size: core.MaxPageSize})
	if err != nil {
		return g, err
	}
	for _, s := range same.Items {
		if s.Name == g.Name && len(g.versions) < versionsShown {
			g.versions = append(g.versions, s)
		}
	}
	g.needs = map[string]*skill.Skill{ref: g.Skill}
	for queue := []*skill.Skill{g.Skill}; len(queue) > 0; queue = queue[1:] {
		for _, n := range needs(queue[0]) {
			if _, known := g.needs[n.ref]; known || len(g.needs) >= needsRead {
				continue
			}
			s, err := w.Skill(tenant, n.ref)
			if g.needs[n.ref] = s; err == nil {
				queue = append(queue, s)
			}
		}
	}
	if g.figures, err = w.SkillFigures(ctx, tenant, g.Name); err != nil {
		return g, err
	}
	runs, err := w.Executions(ctx, tenant, g.Name, core.Filter{Page: 1, Size: runsShown})
	g.runs = runs.Items
	return g, err
}

// need is a skill that another one runs.
type need struct {
	ref string
	why string // "step look", "fallback of look"; "" is a dependency
}

// needs are what a skill runs besides itself, in order.
func needs(s *skill.Skill) (all []need) {
	for _, ref := range s.Dependencies {
		all = append(all, need{ref: ref})
	}
	for _, step := range s.Runner.Steps {
		all = append(all, need{step.Skill, "step " + step.ID})
		if step.Fallback != "" {
			all = append(all, need{step.Fallback, "fallback of " + step.ID})
		}
	}
	return all
}

func text(env pane.Env, g *whole, out *pane.Paras) {
	s := g.Skill
	out.Add("what", s.Description, screen.Title)
	out.Add("tags", strings.Join(s.Tags, " "), screen.Text)
	out.Add("effects", skills.Effects(s), skills.EffectRole(s))
	if len(s.Effects) == 0 {
		out.Add("effects", "none", screen.Good)
	}
	out.Add("runner", runner(&s.Runner), screen.Text)
	out.Add("time-out", fmt.Sprintf("%ds a try, %d retries", s.Timeout, s.MaxRetries), screen.Text)
	out.Add("announces", s.Area()+".complete, "+s.Area()+".failed", screen.Text)
	var versions []pane.Row
	for i, v := range g.versions {
		r := pane.Row{Text: v.Version, Role: screen.Text}
		if i == 0 {
			r.Note = "(newest)"
		}
		if v.Version != s.Version {
			r.Role, r.Item = screen.Accent, skills.Item(v)
		}
		versions = append(versions, r)
	}
	out.Rows("versions", versions)
	out.Add("source", s.Source, screen.Text)
	out.Add("changed", pane.When(env.Now, s.UpdatedAt), screen.Dim)
	out.Add("digest", s.Digest, screen.Dim)
	out.Head(fmt.Sprintf("runs (%d)", g.figures.Total))
	if f := g.figures; f.Counted > 0 {
		role := screen.Good
		if f.FailureRate > 0 {
			role = screen.Warn
		}
		out.Add("", fmt.Sprintf("last %d: p50 %s, p95 %s, %.0f%% failed", f.Counted, pane.Millis(f.P50MS), pane.Millis(f.P95MS), 100*f.FailureRate), role)
	}
	for i := range g.runs {
		executions.Link(&env, out, &g.runs[i])
	}
	if len(g.needs) > 1 {
		out.Head("needs")
		out.Rows("", tree(env, g))
	}
	out.Head("parameters")
	out.JSON("", s.ParametersSchema)
	if len(s.ReturnsSchema) > 0 {
		out.Head("returns")
		out.JSON("", s.ReturnsSchema)
	}
	if len(s.Runner.Steps) > 0 {
		out.Head("steps")
		if steps, err := core.Encode(s.Runner.Steps); err == nil {
			out.JSON("", steps)
		} else {
			out.Add("", err.Error(), screen.Bad)
		}
	}
}

// runner is what carries a skill out, in a line.
func runner(s *skill.Spec) string {
	text := s.Kind + " " + s.Name
	switch s.Kind {
	case "exec":
		text = "exec " + strings.Join(s.Argv, " ")
	case "agent":
		text = "agent " + s.Agent + ": " + s.Prompt
	case "composite":
		text = fmt.Sprintf("composite of %d steps", len(s.Steps))
	case "mcp":
		text = "mcp " + s.Server + " " + s.Tool
	case "cad":
		text = "cad " + s.Method
	}
	return strings.TrimSpace(text)
}

// tree is the graph of what the skill runs.
func tree(env pane.Env, g *whole) (rows []pane.Row) {
	t := pane.Tree[need]{
		ID: func(n need) string {
			if s := g.needs[n.ref]; s != nil {
				return s.Ref()
			}
			return n.ref
		},
		Kids: func(n need) []need {
			if s := g.needs[n.ref]; s != nil {
				return needs(s)
			}
			return nil
		},
	}
	for _, b := range t.Branches(env.Glyphs, need{ref: g.Ref()}) {
		s := g.needs[b.Node.ref]
		row := b.Row(t.ID(b.Node), screen.Accent)
		switch {
		case s == nil:
			row.Text, row.Role = b.Node.ref+" is not there", screen.Bad
		case s.Ref() != g.Ref():
			row.Item = skills.Item(s)
		default:
			row.Role = screen.Text
		}
		if b.Node.why != "" {
			row.Note = strings.TrimSpace("(" + b.Node.why + ") " + row.Note)
		}
		rows = append(rows, row)
	}
	return rows
}
