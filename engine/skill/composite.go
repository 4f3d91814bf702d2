package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

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
	var f *failure
	if err == nil || !errors.As(err, &f) || f.final {
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
	default:
		return nil, err
	}
	return r.chain(ctx, k, params, at)
}
