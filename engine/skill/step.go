package skill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// chainOptions say where and how a chain is run within a run.
type chainOptions struct {
	place string  // of the chain's goal; "" at the top, where it is the skill's name
	pause float64 // what the pause between tries is multiplied with
	exact bool    // the parameters are the goal's own: nothing is added or left out
}

const defaultBackoff = 2

// failure is how a step failed for good, or why a run can't go on.
type failure struct {
	code    string
	message string
	denied  bool // by the judge or a person
	final   bool // it is not tried again

	skill, step, execution string // "" when it did not get so far
}

func (f *failure) Error() string {
	if f.step == "" {
		return f.message
	}
	return f.step + ": " + f.message
}

// chain runs a skill after what it depends on. What has run in this run
// already is not run again for being a dependency.
func (r *run) chain(ctx context.Context, goal *Skill, given core.Raw, at chainOptions) (core.Raw, error) {
	order, err := r.x.chain(goal)
	if err != nil {
		return nil, &failure{code: "invalid_skill", message: err.Error()}
	}
	for _, k := range order[:len(order)-1] {
		if r.ran[k.Ref()] {
			continue
		}
		params, _ := feed(k, given, r.trail)
		place := placeOf(order, k)
		if at.place != "" {
			place = at.place + "/" + place
		}
		if _, err := r.step(ctx, k, params, chainOptions{place: place, pause: at.pause}, r.judged(k)); err != nil {
			return nil, err
		}
	}
	judged := r.judged(goal)
	params := given
	if !at.exact {
		var fed bool
		params, fed = feed(goal, given, r.trail)
		// What was asked for was judged as the task was dispatched, if it is
		// still that.
		judged = judged && (fed || r.newer)
	}
	if at.place == "" {
		at.place = placeOf(order, goal)
	}
	return r.step(ctx, goal, params, at, judged)
}

// placeOf is a skill's name, with its version where another one runs too.
func placeOf(order []*Skill, k *Skill) string {
	if slices.ContainsFunc(order, func(o *Skill) bool { return o != k && o.Name == k.Name }) {
		return k.Ref()
	}
	return k.Name
}

// judged reports whether a skill does more than read.
func (r *run) judged(k *Skill) bool {
	return slices.ContainsFunc(k.Effects, func(e Effect) bool { return e != Read })
}

// step runs one skill until it succeeds or has no try left. A step that an
// earlier attempt has finished is not run again.
func (r *run) step(ctx context.Context, k *Skill, params core.Raw, at chainOptions, judged bool) (core.Raw, error) {
	if e := r.finished[at.place]; e != nil {
		if e.Status != StatusSuccess {
			return nil, failureOf(e)
		}
		r.note(k, e.Result)
		return e.Result, nil
	}
	params, err := k.CheckParams(params)
	if err != nil {
		return nil, &failure{code: "invalid_params", message: core.AsError(err).Message, step: at.place, skill: k.Ref()}
	}
	if a := r.s.alive(r.by.Tenant, r.agent); a != nil && a.Stopping {
		return nil, &cutShort{wordStopped}
	}
	var no *failure
	files := r.s.bind(r.by.Tenant, k.Runner)
	if judged || !among(files, r.job.Files) {
		if params, files, no, err = r.ask(ctx, k, params, at.place); err != nil {
			return nil, err
		}
	}
	r.files[at.place] = files
	if err := r.stand.Until(ctx, func() bool { return !r.stand.held }); err != nil {
		return nil, err
	}
	e, err := r.begin(ctx, k, params, at.place)
	if err != nil {
		return nil, err
	}
	if no != nil {
		no.execution = e.ExecutionID
		return nil, r.fail(ctx, k, e, no)
	}
	return r.tries(ctx, k, e, at.pause)
}

// tries runs a skill up to 1 + max_retries times.
func (r *run) tries(ctx context.Context, k *Skill, e *Execution, pause float64) (core.Raw, error) {
	for n := 0; ; n++ {
		result, err := r.try(ctx, k, e, n)
		if err == nil {
			if result, err = r.accept(ctx, k, e, result); err == nil {
				return result, nil
			}
		}
		f, failed := errors.AsType[*failure](err)
		if !failed {
			return nil, r.interrupt(ctx, k, e, err)
		}
		if f.final || f.denied || n >= k.MaxRetries {
			return nil, r.fail(ctx, k, e, f)
		}
		r.job.Log("WARN", fmt.Sprintf("%s: try %d failed: %s", e.Step, n+1, f.message))
		if err := r.retried(ctx, e, f); err != nil {
			return nil, err
		}
		if err := rest(ctx, pause, n); err != nil {
			return nil, r.interrupt(ctx, k, e, err)
		}
	}
}

// Pauses between tries.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 30 * time.Second
)

// rest waits before the next try, longer each time.
func rest(ctx context.Context, multiplier float64, n int) error {
	d := min(mostPause, time.Duration(float64(firstPause)*math.Pow(multiplier, float64(n))))
	core.Within(ctx.Done(), d)
	return context.Cause(ctx)
}

// accept checks a result and ends the execution with it, all on disk when it
// returns.
func (r *run) accept(ctx context.Context, k *Skill, e *Execution, result core.Raw) (core.Raw, error) {
	if err := checkResultObject(result); err != nil {
		return nil, e.fail("bad_result", err.Error())
	}
	if err := k.checkResult(result); err != nil {
		return nil, e.fail("bad_result", core.AsError(err).Message)
	}
	if err := r.end(ctx, k, e, func(e *Execution) { e.Status, e.Result = StatusSuccess, result }); err != nil {
		return nil, err
	}
	r.note(k, result)
	return result, nil
}

// note keeps a result for what runs after it.
func (r *run) note(k *Skill, result core.Raw) {
	r.results[k.Name], r.ran[k.Ref()] = result, true
	r.trail = append([]core.Raw{result}, r.trail...)
}

// fail ends an execution that has no try left.
func (r *run) fail(ctx context.Context, k *Skill, e *Execution, f *failure) error {
	if f.step == "" {
		f.step, f.skill = e.Step, k.Ref()
	}
	if f.step == e.Step {
		f.execution = e.ExecutionID
	}
	message, status := f.message, StatusFailed
	switch {
	case f.step != e.Step: // a step within it
		message = f.Error()
	case f.code == codeTimeout:
		status = StatusTimeout
	}
	r.job.Log("ERROR", e.Step+" failed: "+message)
	if err := r.end(ctx, k, e, func(e *Execution) {
		e.Status, e.Error = status, core.ClipTo(message, maxExecutionError)
		e.ErrorCode, e.Denied, e.Final = f.code, f.denied, f.final
	}); err != nil {
		return err
	}
	return f
}

const codeTimeout = "skill_timeout"

// failureOf is how a step failed in an earlier attempt.
func failureOf(e *Execution) *failure {
	f := e.fail(e.ErrorCode, e.Error)
	f.denied, f.final = e.Denied, e.Final
	return f
}

// fail is a failure of this execution.
func (e *Execution) fail(code, message string) *failure {
	return &failure{code: code, message: message, step: e.Step, skill: e.SkillName + "@" + e.SkillVersion, execution: e.ExecutionID}
}

// interrupt ends an execution that was ended from outside, and returns why.
func (r *run) interrupt(ctx context.Context, k *Skill, e *Execution, why error) error {
	text := interruptedByEngine
	if end, ok := errors.AsType[*cutShort](why); ok && r.base.Err() == nil {
		text = end.reason
	}
	err := r.update(ctx, func(tx *audit.Tx) error {
		if err := r.s.interruptIn(tx, e, text); err != nil {
			return err
		}
		if text == interruptedByEngine {
			return nil // it comes again
		}
		return r.s.announce(tx, k, e)
	})
	if errors.Is(err, errLost) { // only its record is left to be closed
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordWait)
		defer stop()
		err = r.s.ledger.Update(ctx, r.by, func(tx *audit.Tx) error { return r.s.interruptIn(tx, e, "interrupted: "+errLost.Error()) })
	}
	return errors.Join(why, err)
}
