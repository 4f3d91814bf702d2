package skill

import (
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// fillInvoke is the form of action "invoke" for a skill, or why it can't be run.
func fillInvoke(of Skills, env pane.Env, action, ref string) (f pane.Fill, has bool, err error) {
	if action != "invoke" {
		return f, false, nil
	}
	if ref == "" {
		return f, true, errors.New("no skill is selected")
	}
	order, err := of.Order(env.Tenant, ref)
	if err != nil {
		return f, true, err
	}
	return invokeForm(order), true, nil
}

// invokeForm asks for the parameters of the last skill of a chain, and for those of
// the skills that run before it.
func invokeForm(order []*skill.Skill) pane.Fill {
	goal := order[len(order)-1]
	return pane.Fill{
		Title: "invoke " + goal.Ref(), Fields: paramFields(order),
		Check: func(object core.Raw) error {
			params, err := merged(object)
			if err == nil && len(order) == 1 {
				_, err = goal.CheckParams(params)
			}
			return err
		},
		Line: func(object core.Raw) []string {
			params, err := merged(object)
			if err != nil { // Check has refused it
				params = object
			}
			return []string{"skill", "invoke", goal.Ref(), "--params", string(params)}
		},
	}
}

// andMore is the field for parameters that no schema names, of a chain with a
// step that takes whatever there is.
const andMore = "and more"

// merged are the parameters of a form, those that no schema names among them.
func merged(object core.Raw) (core.Raw, error) {
	var params, extra map[string]core.Raw
	if err := core.Decode(object, &params); err != nil {
		return nil, err
	}
	rest, ok := params[andMore]
	if !ok {
		return object, nil
	}
	delete(params, andMore)
	if rest.Kind() != '{' {
		return nil, core.Invalid(andMore, string(rest), "a JSON object")
	}
	if err := core.Decode(rest, &extra); err != nil {
		return nil, err
	}
	for name, v := range extra {
		if _, twice := params[name]; twice {
			return nil, core.Invalid(andMore, name, "parameters that have no field of their own")
		}
		params[name] = v
	}
	return core.Encode(params)
}

// paramFields are the parameters that a chain takes: the last skill's own first,
// then those of the skills before it. What an earlier result can bring is
// neither required nor given its default: entered, it would take the result's
// place.
func paramFields(order []*skill.Skill) []overlay.Field {
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
	if slices.ContainsFunc(each, func(own []overlay.Field) bool { return len(own) == 0 }) {
		fields = append(fields, overlay.Field{Name: andMore, Type: overlay.JSONField, Description: "any further parameters, as an object"})
	}
	return fields
}

func note(text, more string) string {
	if text == "" {
		return more
	}
	return fmt.Sprintf("%s (%s)", text, more)
}
