// Package skill has the panes of what agents can do: skills, what runs them,
// and how each run went.
package skill

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// entry is one version of a skill.
type entry struct {
	*skill.Skill
	newest  bool
	figures skill.Figures // of all versions; of the newest only
}

// Skills are what the panes read of skills; *skill.Skills has it. Skill, List
// and Order look into memory only and never block.
type Skills interface {
	Skill(tenant, ref string) (*skill.Skill, error)
	List(tenant string, f core.Filter, tags ...string) (core.Page[*skill.Skill], error)
	// Order lists what a skill runs: its dependencies in order, itself last.
	Order(tenant, ref string) ([]*skill.Skill, error)
	Figures(ctx context.Context, tenant, name string) (skill.Figures, error)
	Execution(ctx context.Context, tenant, id string) (skill.Execution, error)
	// Executions are those of one skill when its name is not "".
	Executions(ctx context.Context, tenant, name string, f core.Filter) (core.Page[skill.Execution], error)
	Subagent(ctx context.Context, tenant, id string) (skill.Subagent, error)
	Subagents(ctx context.Context, tenant string, f core.Filter) (core.Page[skill.Subagent], error)
}

// List lists skills by name, the newest version of each first.
type List struct {
	*pane.Table[entry]
	skills Skills
}

// NewList makes the pane of the registry: what agents can do, version by
// version, and how it went lately.
func NewList(of Skills) *List {
	return &List{skills: of, Table: pane.NewTable(pane.Spec[entry]{
		Name: "skills", Title: "skills", Empty: "no skills: press : and type skill load PATH",
		Cols: []grid.Column{
			{Title: "SKILL", Min: 18, Weight: 2, Key: true, Middle: true},
			{Title: "RUNNER", Min: 9, Priority: 4},
			{Title: "TAGS", Min: 12, Weight: 2, Priority: 1},
			{Title: "EFFECTS", Min: 12, Weight: 1, Priority: 5},
			{Title: "RUNS", Min: 5, Priority: 2, Right: true},
			{Title: "P50", Min: 6, Priority: 3, Right: true},
			{Title: "P95", Min: 6, Priority: 2, Right: true},
			{Title: "FAILED", Min: 6, Priority: 2, Right: true},
			{Title: "WHAT", Min: 16, Weight: 4, Priority: 6},
		},
		Row: listRow, Item: func(e *entry) pane.Item { return item(e.Skill) },
		Fetch: func(ctx context.Context, tenant string, f core.Filter) (core.Page[entry], error) {
			return fetchList(ctx, of, tenant, f)
		},
	})}
}

// item is a skill as a thing under the cursor.
func item(s *skill.Skill) pane.Item { return pane.Item{Kind: "skill", ID: s.Ref()} }

func (p *List) Fill(env pane.Env, action string) (pane.Fill, bool, error) {
	return fillInvoke(p.skills, env, action, p.Selected(env).ID)
}

// fetchList reads a page of skills with the figures of each newest version.
// tag:NAME narrows by tag, runner:KIND by runner.
func fetchList(ctx context.Context, of Skills, tenant string, f core.Filter) (core.Page[entry], error) {
	tags := append(pane.FilterWord(&f, "tag"), pane.FilterWord(&f, "tags")...)
	for _, kind := range pane.FilterWord(&f, "runner") {
		f.Kind = kind
	}
	got, err := of.List(tenant, f, tags...)
	page := core.Page[entry]{Info: got.Info}
	if err != nil {
		return page, err
	}
	for _, s := range got.Items {
		e := entry{Skill: s}
		if newest, err := of.Skill(tenant, s.Name); err == nil && newest.Version == s.Version {
			e.newest = true
			if e.figures, err = of.Figures(ctx, tenant, s.Name); err != nil {
				return page, err
			}
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}

func listRow(env *pane.Env, e *entry, set func(int, string, screen.Role)) {
	role := screen.Accent
	if !e.newest {
		role = screen.Dim
	}
	set(0, e.Ref(), role)
	set(1, e.Runner.Kind, screen.Text)
	set(2, strings.Join(e.Tags, " "), screen.Text)
	set(3, effects(e.Skill), effectRole(e.Skill))
	if e.figures.Total > 0 {
		set(4, fmt.Sprint(e.figures.Total), screen.Text)
	}
	if f := &e.figures; f.Counted > 0 {
		set(5, pane.Millis(f.P50MS), screen.Text)
		set(6, pane.Millis(f.P95MS), screen.Text)
		role := screen.Good
		if f.FailureRate > 0 {
			role = screen.Bad
		}
		set(7, fmt.Sprintf("%.0f%%", 100*f.FailureRate), role)
	}
	set(8, e.Description, screen.Text)
}

// effects are a skill's effects in words.
func effects(s *skill.Skill) string {
	return strings.Join(core.Strings(s.Effects...), " ")
}

// effectRole stands out for what changes something.
func effectRole(s *skill.Skill) screen.Role {
	for _, e := range s.Effects {
		if e != skill.Read {
			return screen.Warn
		}
	}
	return screen.Text
}
