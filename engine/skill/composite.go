package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
)

// composite runs the steps of a composite skill in order. Its result is the
// last one's.
func (r *run) composite(ctx context.Context, k *Skill, e *Execution, n int) (core.Raw, error) {
	place := e.Step
	if n > 0 { // another try of the whole is not the one before
		place = fmt.Sprintf("%s~%d", place, n)
	}
	scope := map[string]core.Raw{ownParams: e.Parameters}
	ran := maps.Clone(r.ran)
	var last core.Raw
	for _, step := range k.Runner.Steps {
		params, err := mapping.Fill(step.Params, scope)
		if err != nil {
			return nil, &failure{code: "invalid_params", message: core.AsError(err).Message, step: place + "/" + step.ID}
		}
		if last, err = r.policy(ctx, step, params, place+"/"+step.ID); err != nil {
			if n < k.MaxRetries {
				r.ran = ran // another try runs what this one ran
			}
			return nil, err
		}
		scope[step.ID] = last
	}
	return last, nil
}

// policy runs one step of a composite, and does what its error_policy says
// when it fails.
func (r *run) policy(ctx context.Context, step Step, params core.Raw, place string) (core.Raw, error) {
	k := r.x.find(step.Skill)
	if k == nil {
		return nil, &failure{code: "invalid_skill", message: "skill " + step.Skill + " is not part of this run", step: place}
	}
	at := chainOptions{place: place, pause: cmp.Or(step.BackoffMultiplier, defaultBackoff), exact: true}
	result, err := r.chain(ctx, k, params, at)
	f, failed := errors.AsType[*failure](err)
	if !failed || f.final {
		return result, err
	}
	switch step.ErrorPolicy {
	case Retry:
		if k.MaxRetries > 0 || f.denied {
			return nil, err // it had its retries
		}
		if err := rest(ctx, at.pause, 0); err != nil {
			return nil, err
		}
		at.place += "~again"
		return r.chain(ctx, k, params, at)
	case Fallback:
		other := r.x.find(step.Fallback)
		if other == nil {
			return nil, &failure{code: "invalid_skill", message: "skill " + step.Fallback + " is not part of this run", step: place}
		}
		r.job.Log("WARN", place+" failed, "+other.Name+" runs instead: "+f.message)
		at.place += "~fallback"
		if result, err = r.chain(ctx, other, params, at); err == nil {
			r.ran[k.Ref()] = true // for what depends on it
		}
		return result, err
	}
	return nil, err
}

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
			if err := checkUse(u, s.ID, earlier, steps, own); err != nil {
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

// checkUse reports what is wrong with a reference of a step.
func checkUse(u mapping.Use, step string, earlier []string, steps []Step, own []string) error {
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
