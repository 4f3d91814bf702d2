// Package invoke makes the form that asks for a skill's parameters.
package invoke

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// chain is what a skill runs, read for a form.
type chain struct {
	order []*skill.Skill
	err   error
}

// Ask reads what a skill runs, for a pane whose Update calls Take; nil when
// ref is "".
func Ask(env pane.Env, name, ref string) tea.Cmd {
	if ref == "" {
		return pane.Say("no skill is selected", true)
	}
	world, tenant := env.World, env.Tenant
	return pane.Ask(name, func(ctx context.Context) any {
		order, err := world.SkillOrder(ctx, tenant, ref)
		return chain{order, err}
	})
}

// Take opens the form when a reply is about one.
func Take(body any) (tea.Cmd, bool) {
	c, mine := body.(chain)
	switch {
	case !mine:
		return nil, false
	case c.err != nil:
		return pane.Say(c.err.Error(), true), true
	case len(c.order) == 0:
		return nil, true
	}
	return Form(c.order).Ask(), true
}

// Form asks for the parameters of the last skill of a chain, and for those of
// the skills that run before it.
func Form(order []*skill.Skill) pane.Fill {
	goal := order[len(order)-1]
	f := pane.Fill{
		Title: "invoke " + goal.Ref(), Fields: Fields(order),
		Line: func(params core.Raw) []string {
			return []string{"skill", "invoke", goal.Ref(), "--params", string(params)}
		},
	}
	if len(order) == 1 {
		f.Check = func(params core.Raw) error {
			_, err := goal.CheckParams(params)
			return err
		}
	}
	return f
}

// Fields are the parameters that a chain takes: the last skill's own first,
// then those of the skills before it. What an earlier result can bring is
// neither required nor given its default: entered, it would take the result's
// place.
func Fields(order []*skill.Skill) []overlay.Field {
	brought := map[string]string{} // name of a result's field → skill
	each := make([][]overlay.Field, len(order))
	for i, s := range order {
		each[i] = overlay.SchemaFields(s.ParametersSchema)
		for j := range each[i] {
			f := &each[i][j]
			from, ok := brought[f.Name]
			if !ok {
				continue
			}
			f.Required, f.Default = false, nil
			f.Description = note(f.Description, "else from "+from)
		}
		for _, f := range overlay.SchemaFields(s.ReturnsSchema) {
			brought[f.Name] = s.Name
		}
	}
	var fields []overlay.Field
	for i, own := range slices.Backward(each) {
		for _, f := range own {
			at := slices.IndexFunc(fields, func(g overlay.Field) bool { return g.Name == f.Name })
			if at >= 0 {
				fields[at].Required = fields[at].Required || f.Required
				continue
			}
			if i < len(order)-1 {
				f.Description = note(f.Description, "for "+order[i].Name)
			}
			fields = append(fields, f)
		}
	}
	return fields
}

func note(text, more string) string {
	if text == "" {
		return more
	}
	return fmt.Sprintf("%s (%s)", text, more)
}
