package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// stepArgs is what a step's approval is bound to. It has the shape of a task's.
type stepArgs struct {
	Skill   string    `json:"skill"` // name@version
	Params  core.Raw  `json:"params"`
	AgentID string    `json:"agent_id"`
	Step    string    `json:"step"`
	Plan    []planned `json:"plan"` // the one skill
}

// ask puts a step with its exact parameters before the judge. They may come
// back edited. no is why it may not run.
func (r *run) ask(ctx context.Context, k *Skill, params core.Raw, place string) (_ core.Raw, files []judge.File, no *failure, err error) {
	t := &r.job.Task
	args := stepArgs{k.Ref(), params, r.agent, place, []planned{{Skill: k.Ref(), Digest: k.Digest, Effects: k.Effects, Runner: k.Runner}}}
	effects := core.Map(k.Effects, func(e Effect) string { return string(e) })
	r.stand.change(func() { r.stand.asking = true })
	defer r.stand.change(func() { r.stand.asking = false })
	reply, err := r.s.opt.Judge.Request(ctx, judge.Request{
		By: r.by, Stop: ctx.Done(), Held: r.stand.standing,
		Ask: judge.Ask{
			Gate: judge.GateSkill, TraceID: t.TraceID, TaskID: t.TaskID, Session: t.SessionID, Attempt: t.Attempt, Priority: t.Priority,
			Action: judge.Action{Kind: KindInvoke, Server: k.Runner.Kind, Tool: k.Name, CallID: place, Args: core.MustEncode(args), Effects: effects},
			Agent:  judge.AgentRef{Name: r.agent, Role: "subagent"}, Intent: "run " + title(k, params),
			By: t.Asker(),
		},
		Record: func(tx *audit.Tx, step judge.Step) error {
			if step.Name == judge.Stale {
				tx.OnCommit(func() { r.job.Log("WARN", place+": its approval no longer stands: asked anew") })
			}
			detail := step.Detail()
			detail["task_id"], detail["skill"], detail["step"] = t.TaskID, k.Ref(), place
			_, err := tx.Record(audit.Entry{Type: "step." + step.Name, Trace: t.TraceID, Subject: "subagent", ID: r.agent, Detail: detail})
			return err
		},
		Bind:  func(core.Raw) []judge.File { return r.s.bind(t.TenantID, k.Runner) },
		Check: func(edit core.Raw) (core.Raw, error) { return args.edited(k, edit) },
	})
	switch {
	case errors.Is(err, judge.ErrStopped) || ctx.Err() != nil && err != nil:
		return nil, nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, nil, nil, fmt.Errorf("ask about %s: %w", place, err)
	case !reply.Approved:
		r.denials = append(r.denials, reply.Decision.DecisionID)
		why := cmp.Or(reply.Reason, reply.Decision.ReasonCode)
		return params, nil, &failure{code: "approval_denied", message: "denied: " + why, denied: true, final: reply.Abort, step: place, skill: k.Ref()}, nil
	}
	if err := core.DecodeStored(reply.Args, &args); err != nil {
		return nil, nil, nil, fmt.Errorf("read the approved parameters of %s: %w", place, err)
	}
	return args.Params, reply.Files, nil, nil
}

// edited checks an edit: of a step only its parameters can be edited, and they must
// fit the skill. What else an edit leaves out stays.
func (was stepArgs) edited(k *Skill, edit core.Raw) (core.Raw, error) {
	var now stepArgs
	err := core.Decode(edit, &now)
	if err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	for _, f := range []struct{ name, was, now string }{
		{"skill", was.Skill, now.Skill}, {"agent_id", was.AgentID, now.AgentID}, {"step", was.Step, now.Step},
	} {
		if f.now != "" && f.now != f.was {
			return nil, core.Invalid("edit."+f.name, f.now, f.was+": only params can be edited")
		}
	}
	if was.Params, err = k.CheckParams(now.Params); err != nil {
		return nil, err
	}
	return core.MustEncode(was), nil
}

// maxBound bounds the files that one run's question lists.
const maxBound = 256

// bind finds the files that a spec names, as they are now.
func (s *Skills) bind(tenant string, spec Spec) []judge.File {
	if b, ok := s.opt.Runners[spec.Kind].(Binder); ok {
		return b.Bind(tenant, spec)
	}
	return nil
}

// Bind finds the files that the skills of an invocation's plan name.
func (i invoker) Bind(tenant string, action judge.Action) []judge.File {
	var in invocation
	var plan []planned
	if core.DecodeStored(action.Args, &in) != nil || core.DecodeStored(in.Plan, &plan) != nil {
		return nil
	}
	var out []judge.File
	for _, p := range plan {
		for _, f := range i.s.bind(tenant, p.Runner) {
			if slices.Contains(out, f) {
				continue
			}
			if len(out) == maxBound {
				return append(out, judge.File{Unbound: "more files than can be bound"})
			}
			out = append(out, f)
		}
	}
	return out
}

// among reports whether all files were judged as they are.
func among(files, judged []judge.File) bool {
	return !slices.ContainsFunc(files, func(f judge.File) bool { return !slices.Contains(judged, f) })
}
