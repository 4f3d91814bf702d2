package skill

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
)

// ownParams is the root of references to the composite's own parameters.
const ownParams = "params"

// checkSteps reports every mistake in the references of a composite's steps:
// each may look at the skill's own parameters, as far as parameters (its
// parameters_schema) declares any, and at the results of earlier steps.
func checkSteps(steps []Step, parameters core.Raw) []error {
	own := mapping.Declared(parameters)
	var errs []error
	var earlier []string
	for i, s := range steps {
		field := fmt.Sprintf("runner.steps[%d]", i)
		switch name, rest := mapping.Word(s.ID); {
		case name == "" || rest != "" || len(s.ID) > 50 || name == ownParams:
			errs = append(errs, core.Invalid(field+".id", s.ID, `1-50 letters, digits, - and _, and not "params"`))
		case slices.Contains(earlier, s.ID):
			errs = append(errs, core.Invalid(field+".id", s.ID, "a different id for each step"))
		}
		if len(s.Params) > 0 {
			if err := core.CheckObject(field+".params", s.Params, core.MaxInput); err != nil {
				errs = append(errs, err)
				earlier = append(earlier, s.ID)
				continue
			}
		}
		for _, u := range mapping.Uses(s.Params, field+".params") {
			if err := (use{u}).checkStep(s.ID, earlier, steps, own); err != nil {
				errs = append(errs, err)
			}
		}
		earlier = append(earlier, s.ID)
	}
	return errs
}

// checkPrompt reports every reference of a prompt that names no parameter.
func checkPrompt(prompt string, parameters core.Raw) []error {
	own := mapping.Declared(parameters)
	pieces, err := mapping.Parse(prompt)
	if err != nil {
		return []error{mapping.InField("runner.prompt", err)}
	}
	var errs []error
	for _, p := range pieces {
		if p.Ref != nil && len(own) > 0 && !slices.Contains(own, p.Ref.Root) {
			errs = append(errs, mapping.InField("runner.prompt", core.Errorf(core.InvalidInput,
				"%s: the skill has no parameter %s; it has %s", p.Ref.Text, p.Ref.Root, strings.Join(mapping.SomeNames(own), ", "))))
		}
	}
	return errs
}

// use is a reference of a step.
type use struct{ mapping.Use }

func (u use) checkStep(step string, earlier []string, steps []Step, own []string) error {
	fail := func(format string, args ...any) error {
		return mapping.InField(u.Field, core.Errorf(core.InvalidInput, "step %s: %s", step, fmt.Sprintf(format, args...)))
	}
	switch {
	case u.Err != nil:
		return fail("%v", u.Err)
	case u.Ref.Root == ownParams && len(u.Ref.Path) > 0 && u.Ref.Path[0].Key == "":
		return fail("%s: params has fields, not items", u.Ref.Text)
	case u.Ref.Root == ownParams && len(u.Ref.Path) > 0 && len(own) > 0 && !slices.Contains(own, u.Ref.Path[0].Key):
		return fail("%s: the skill has no parameter %s; it has %s", u.Ref.Text, u.Ref.Path[0].Key, strings.Join(mapping.SomeNames(own), ", "))
	case u.Ref.Root == ownParams || slices.Contains(earlier, u.Ref.Root):
		return nil
	case u.Ref.Root == step:
		return fail("%s: a step can't use its own result", u.Ref.Text)
	case slices.ContainsFunc(steps, func(s Step) bool { return s.ID == u.Ref.Root }):
		return fail("%s: step %s runs later; only results of earlier steps are there", u.Ref.Text, u.Ref.Root)
	case len(earlier) == 0:
		return fail("%s: no step comes before this one; ${params.…} names the skill's own parameters", u.Ref.Text)
	}
	return fail("%s: there is no step %s; earlier ones are %s", u.Ref.Text, u.Ref.Root, strings.Join(mapping.SomeNames(earlier), ", "))
}

// fillPrompt is a prompt with its ${param} filled in.
func fillPrompt(prompt string, params core.Raw) (string, error) {
	pieces, err := mapping.Parse(prompt)
	if err != nil {
		return "", mapping.InField("runner.prompt", err)
	}
	scope := map[string]core.Raw{}
	for _, p := range pieces {
		if p.Ref == nil {
			continue
		}
		if value, _ := mapping.Member(params, p.Ref.Root); value != nil {
			scope[p.Ref.Root] = value
		}
	}
	s, err := mapping.Splice(pieces, scope)
	if err != nil {
		return "", mapping.InField("runner.prompt", err)
	}
	return s, nil
}
