package skill

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Bounds of what the sheet lists.
const (
	runsShown     = 8
	versionsShown = 20
	needsRead     = 200 // skills of the graph
)

// Sheet shows one skill.
type Sheet struct {
	*pane.Detail[whole]
	skills Skills
}

// whole is a skill with what else there is to say of it.
type whole struct {
	*skill.Skill
	versions []*skill.Skill // of the same name, the newest first
	needs    map[string]*skill.Skill
	figures  skill.Figures
	runs     []skill.Execution
}

// NewSheet makes the sheet of one version of a skill: its contract, what it
// needs, and how its last runs went.
func NewSheet(of Skills) *Sheet {
	return &Sheet{skills: of, Detail: pane.NewDetail(pane.DetailSpec[whole]{
		Name: "skill", Text: sheetText, Live: true,
		Fetch: func(ctx context.Context, tenant, ref string) (whole, error) { return fetchSheet(ctx, of, tenant, ref) },
		Item:  func(g *whole) pane.Item { return item(g.Skill) },
		Title: func(g *whole) string { return "skill " + g.Ref() },
	})}
}

func (p *Sheet) Fill(env pane.Env, action string) (pane.Fill, bool, error) {
	return fillInvoke(p.skills, env, action, p.Selected(env).ID)
}

func fetchSheet(ctx context.Context, of Skills, tenant, ref string) (g whole, err error) {
	if g.Skill, err = of.Skill(tenant, ref); err != nil {
		return g, err
	}
	same, err := of.List(tenant, core.Filter{Match: g.Name + "@", Page: 1, Size: core.MaxPageSize})
	if err != nil {
		return g, err
	}
	g.versions = core.Where(same.Items, func(s *skill.Skill) bool { return s.Name == g.Name })
	g.versions = g.versions[:min(len(g.versions), versionsShown)]
	g.needs = map[string]*skill.Skill{ref: g.Skill}
	for queue := []*skill.Skill{g.Skill}; len(queue) > 0; queue = queue[1:] {
		for _, n := range needs(queue[0]) {
			if _, known := g.needs[n.ref]; known || len(g.needs) >= needsRead {
				continue
			}
			s, err := of.Skill(tenant, n.ref)
			if g.needs[n.ref] = s; err == nil {
				queue = append(queue, s)
			}
		}
	}
	if g.figures, err = of.Figures(ctx, tenant, g.Name); err != nil {
		return g, err
	}
	runs, err := of.Executions(ctx, tenant, g.Name, core.Filter{Page: 1, Size: runsShown})
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

func sheetText(env pane.Env, g *whole, out *pane.Paras) {
	s := g.Skill
	out.Fields(&env, s, "what:description,title tags,argv")
	out.Add("effects", effects(s), effectRole(s))
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
			r.Role, r.Item = screen.Accent, item(v)
		}
		versions = append(versions, r)
	}
	out.Rows("versions", versions)
	out.Fields(&env, s, "source changed:updated_at,dim digest,dim")
	out.Head(fmt.Sprintf("runs (%d)", g.figures.Total))
	if f := g.figures; f.Counted > 0 {
		role := screen.Good
		if f.FailureRate > 0 {
			role = screen.Warn
		}
		out.Add("", fmt.Sprintf("last %d: p50 %s, p95 %s, %.0f%% failed", f.Counted, pane.Millis(f.P50MS), pane.Millis(f.P95MS), 100*f.FailureRate), role)
	}
	for i := range g.runs {
		linkExecution(&env, out, &g.runs[i])
	}
	if len(g.needs) > 1 {
		out.Head("needs")
		out.Rows("", needsTree(env, g))
	}
	out.Document("parameters", s.ParametersSchema)
	out.Document("returns", s.ReturnsSchema)
	if len(s.Runner.Steps) > 0 {
		out.Document("steps", core.MustEncode(s.Runner.Steps))
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

// needsTree is the graph of what the skill runs.
func needsTree(env pane.Env, g *whole) (rows []pane.Row) {
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
			row.Item = item(s)
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
