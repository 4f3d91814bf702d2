package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Reason codes that the judge itself gives. The others come from rules.
const (
	reasonNoRule   = "no_rule"
	reasonArgs     = "args.invalid"
	ReasonAlways   = "always.rule"
	reasonDeadline = "deadline"
	reasonApproved = "operator.approved"
	reasonEdited   = "operator.edited"
	reasonConsent  = "operator.consents"
	reasonDenied   = "operator.denied"
	reasonAborted  = "operator.aborted"
	reasonRecalled = "asker.withdrew"
)

// Evaluate decides without recording and never fails: a fault of the rules or
// a time-out is hitl (requirement 2.1). Call it outside a transaction. The deny rules come
// first, then the table; an always rule stands in for the person whom the
// table would ask, unless the ask is riskier than the one it was made from, or a
// floor holds it.
//
// Arguments that can't be bound to a digest (CheckArgs) are denied.
func (j *standing) Evaluate(ctx context.Context, tenant string, ask Ask) Verdict {
	of := j.policies.ruling(ctx, tenant)
	defer j.policies.rest(tenant, of) // another may rule by now
	v := j.policies.by(ctx, of, tenant, &ask, nil)
	j.applyAlways(ctx, of, tenant, &ask, &v)
	return v
}

// decide is Evaluate without the always rules.
func (j *policies) decide(ctx context.Context, tenant string, ask *Ask) Verdict {
	of := j.ruling(ctx, tenant)
	defer j.rest(tenant, of)
	return j.by(ctx, of, tenant, ask, nil)
}

// by is the verdict of a policy, active or not. The base policy's deny rules
// come first, with what the base makes of the action, and its floors last, of what
// the policy would approve; so no policy can lower them. A trace may be nil.
func (j *policies) by(ctx context.Context, of *ruling, tenant string, ask *Ask, tr *trace) Verdict {
	switch ask.Gate {
	case GateGrant:
		return j.byGrant(ctx, of, tenant, ask, tr)
	case GateQuestion:
		return j.byQuestion(ctx, of, tenant, ask, tr)
	}
	until := time.Now().Add(j.evaluation)
	v := j.above(ctx, until, of, tenant, ask, tr)
	if v.Decision == Approve {
		j.hold(ctx, until, of, ask, tr, &v)
	}
	if v.Decision == HITL && ask.Contained.Why != "" {
		v.Rationale = core.ClipTo(joined(" ", v.Rationale, "It is not contained: "+ask.Contained.Why+"."), maxRationale)
	}
	return v
}

// above is the verdict of a policy over the base's deny rules.
func (j *policies) above(ctx context.Context, until time.Time, of *ruling, tenant string, ask *Ask, tr *trace) Verdict {
	v := Verdict{PolicyVersion: of.version, Confidence: ask.Confidence, Risk: claimed(ask.Risk)}
	if slices.ContainsFunc(ask.Action.Files, func(f File) bool { return f.Lies != "" }) {
		v.Risk = graver(v.Risk, High)
	}
	if !v.bind(tenant, ask) {
		return v
	}
	base := j.table()
	f := &facts{t: base, ask: ask, trace: tr}
	var r *rule
	var err error
	if of.table != base || of.program != nil || of.broken != nil {
		r, err = first(ctx, until, f, base.floor[ask.Gate])
	}
	if r == nil && err == nil {
		if err = of.broken; err == nil && of.decides(ask.Gate) {
			j.byProgram(ctx, of, tenant, ask, &v)
			return v
		}
	}
	if r == nil && err == nil {
		if of.table != base {
			f = &facts{t: of.table, ask: ask, trace: tr}
		}
		r, err = first(ctx, until, f, of.table.floor[ask.Gate], of.table.rest[ask.Gate]) // a deny rule wherever it stands
	}
	switch {
	case err != nil:
		v.failed(ctx, until, err)
	case r == nil:
		v.Decision, v.ReasonCode, v.Rationale = HITL, reasonNoRule, "No rule covers this."
		v.Risk = graver(v.Risk, Medium)
	default:
		v.Decision, v.ReasonCode, v.Rationale, v.RuleID = r.Decision, r.ReasonCode, r.Rationale, r.ID
		v.Risk = graver(v.Risk, r.Risk)
		v.Retry = r.Retry && !ask.LastTry
		v.route = &r.Route
		if ask.Gate != GateResult {
			v.Confidence = r.Confidence
		}
	}
	return v
}

// bind has the verdict be about an ask. Arguments that can't be bound are denied:
// false.
func (v *Verdict) bind(tenant string, ask *Ask) bool {
	v.ask = evaluated{args: ask.Action.Args, attempt: ask.Attempt}
	canonical, err := canonicalArgs(ask.Action.Args)
	if err != nil {
		v.ask.refused = err
		v.Decision, v.ReasonCode, v.Rationale = Deny, reasonArgs, err.Error()
		return false
	}
	v.ask.prefix = digestPrefix(ask, canonical, v.PolicyVersion)
	if ask.TaskID != "" {
		v.Digest = finish(v.ask.prefix, ask.TaskID, tenant)
		v.ask.task, v.ask.tenant = ask.TaskID, tenant
	}
	return true
}

// Doubt has a person decide what the policy does not deny, for a reason of whoever
// asks. No always rule stands in for that person, neither now nor later.
func (v *Verdict) Doubt(code, why string) {
	if v.Decision == Deny {
		return
	}
	v.Decision, v.ReasonCode, v.Rationale, v.RuleID, v.doubt, v.program, v.always = HITL, code, why, "", true, false, ""
	v.Risk = graver(v.Risk, Medium)
}

// failed leaves to a person what the rules could not decide.
func (v *Verdict) failed(ctx context.Context, until time.Time, err error) {
	v.Decision, v.ReasonCode, v.Rationale, v.RuleID = HITL, ReasonError, core.ClipTo("The policy failed: "+err.Error(), 512), ""
	v.Risk = graver(v.Risk, Medium)
	if late(ctx, until) != nil {
		v.ReasonCode = ReasonTimeout
	}
}

// hold keeps what a policy would approve to the floors that are not switched off:
// those of the base, and the policy's own.
func (j *policies) hold(ctx context.Context, until time.Time, of *ruling, ask *Ask, tr *trace, v *Verdict) {
	tables := []*table{j.table()}
	if of.table != tables[0] {
		tables = append(tables, of.table)
	}
	for i, t := range tables {
		held := t.held[ask.Gate]
		if i == 0 { // a policy's own stand, whatever their ids
			held = of.standing(held)
		}
		// The base's floors look for the policy's topics too.
		for _, seen := range tables {
			r, err := first(ctx, until, &facts{t: seen, ask: ask}, held)
			if err != nil {
				v.failed(ctx, until, err)
				return
			}
			if r == nil {
				continue
			}
			if tr != nil {
				_, _ = first(ctx, until, &facts{t: seen, ask: ask, trace: tr}, []*rule{r})
			}
			v.Decision, v.ReasonCode, v.Rationale, v.RuleID, v.program = HITL, r.ReasonCode, r.Rationale, r.ID, false
			v.route = &r.Route
			v.Risk = graver(v.Risk, r.Risk)
			return
		}
	}
}

// byProgram asks the program. What it must fear is a person's to judge.
func (j *policies) byProgram(ctx context.Context, of *ruling, tenant string, ask *Ask, v *Verdict) {
	reply := FaultReply(ReasonError, "nothing here runs policies that are programs")
	if j.programs != nil {
		reply = j.programs.Decide(ctx, of.program, of.input(j.table(), tenant, ask))
	}
	v.Decision, v.ReasonCode, v.Rationale, v.RuleID = Decision(reply.Decision), reply.ReasonCode, reply.Rationale, reply.RuleID
	v.program, v.Unsandboxed, v.stderr = !reply.Fault, reply.Unsandboxed, reply.Stderr
	if reply.Decision == replyAbort {
		v.Decision, v.Abort = Deny, true
	}
	if ask.Gate != GateResult || reply.Fault {
		v.Confidence = reply.Confidence
	}
	if v.Decision != Approve {
		v.Risk = graver(v.Risk, Medium)
	}
}

// first is the first rule of the lists that matches, nil when none does.
func first(ctx context.Context, until time.Time, f *facts, lists ...[]*rule) (*rule, error) {
	for _, rules := range lists {
		for _, r := range rules {
			if !r.applies(f.ask.Action.Kind) {
				continue
			}
			f.trace.look(r)
			yes, err := r.match(f)
			if err == nil {
				err = late(ctx, until)
			}
			if err != nil {
				return nil, err
			}
			if yes {
				return r, nil
			}
		}
	}
	return nil, nil
}

// late reports an evaluation whose caller has gone or whose time is over. One
// rule is not interrupted: its cost limit ends it soon enough.
func late(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !time.Now().Before(until) {
		return context.DeadlineExceeded
	}
	return nil
}

// refusal is the verdict of the deny rules alone.
func (j *policies) refusal(ctx context.Context, tenant string, ask *Ask) (*rule, error) {
	of, base, until := j.ruling(ctx, tenant), j.table(), time.Now().Add(j.evaluation)
	if of.broken != nil {
		return nil, of.broken
	}
	r, err := first(ctx, until, &facts{t: base, ask: ask}, base.floor[ask.Gate])
	if r == nil && err == nil && of.table != base {
		r, err = first(ctx, until, &facts{t: of.table, ask: ask}, of.table.floor[ask.Gate])
	}
	return r, err
}

// checkVerdict reports a verdict that must not be committed for this ask.
func (j *policies) checkVerdict(tx *audit.Tx, ask *Ask, v *Verdict) error {
	switch {
	case v.ask.refused != nil:
		return v.ask.refused
	case v.ask.prefix == nil:
		return errors.New("commit a verdict that Evaluate did not make")
	case v.PolicyVersion != j.rulingIn(tx).version:
		return ErrStale
	case v.ask.attempt != ask.Attempt || string(v.ask.args) != string(ask.Action.Args):
		return fmt.Errorf("commit a verdict for another ask (attempt %d, now %d, or other arguments)", v.ask.attempt, ask.Attempt)
	}
	return nil
}
