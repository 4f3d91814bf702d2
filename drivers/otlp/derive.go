package otlp

import (
	"cmp"
	"context"
	"errors"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
)

// deriver makes spans of a tenant's audit events, for one batch.
type deriver struct {
	eng     *engine.Engine
	tenant  string
	told    func(trace string) bool
	content bool // what was said is told too
	spans   []*tracepb.Span
	lives   map[string]*life
}

// wanted picks the events that end something.
func wanted(kind []byte) bool {
	switch string(kind) {
	case "task.succeeded", "task.failed", "task.blocked", "task.timed_out", "task.cancelled",
		"judge.outcome", "approval.approved", "approval.denied", "approval.expired", "approval.voided",
		"execution.success", "execution.failed", "execution.timeout", dag.FinishedEvent:
		return true
	}
	return false
}

func (d *deriver) add(s *tracepb.Span) {
	if s != nil {
		d.spans = append(d.spans, s)
	}
}

// take makes the spans of one event. A record that can't be found has none.
func (d *deriver) take(ctx context.Context, e *audit.Event) error {
	if !d.told(e.TraceID) {
		return nil
	}
	p, err := e.Data()
	if err != nil {
		return err
	}
	area, _, _ := strings.Cut(e.EventType, ".")
	switch area {
	case "task":
		err = d.ended(ctx, p.ID)
	case "judge":
		err = d.decision(ctx, p)
	case "approval":
		err = d.approval(ctx, e, p.ID)
	case "execution":
		err = d.execution(ctx, p.ID)
	case "dag":
		err = d.over(ctx, p.ID)
	}
	if errors.Is(err, core.Kind(core.NotFound)) {
		return nil
	}
	return err
}

// within is the span of what a task did at a time: its attempt, or the task
// itself before the first.
func (d *deriver) within(tk string, attempt int, started bool) string {
	switch {
	case tk == "":
		return ""
	case !started:
		return task.Span(d.tenant, tk)
	}
	return task.RunSpan(d.tenant, tk, attempt)
}

// decision is the judge's word. One that only let a task start, or its result
// through, has no event of its own; it is an event of the task's span.
func (d *deriver) decision(ctx context.Context, p audit.Payload) error {
	var g judge.GateDecision
	if err := core.DecodeStored(p.Detail, &g); err != nil {
		return nil //nolint:nilerr // one of another shape says nothing here
	}
	attempt, started := 0, g.Gate != judge.GateStart
	if g.TaskID != "" && started {
		l, err := d.lifeOf(ctx, g.TaskID)
		if err != nil {
			return err
		}
		attempt, started = l.at(g.CreatedAt), l.ran(g.CreatedAt)
	}
	parent := d.within(g.TaskID, attempt, started)
	d.add(span(g.TraceID, core.SpanID(d.tenant, "decision", p.ID, 0), parent, "decide "+string(g.Gate), g.CreatedAt, g.CreatedAt,
		text("swarmdeck.tenant.id", d.tenant), text("swarmdeck.task.id", g.TaskID), text("swarmdeck.decision.id", p.ID),
		text("swarmdeck.decision", string(g.Decision)), text("swarmdeck.reason_code", g.ReasonCode), text("swarmdeck.rule.id", g.RuleID),
		text("swarmdeck.policy.version", g.PolicyVersion), text("swarmdeck.approval.id", g.ApprovalID), real("swarmdeck.confidence", g.Confidence),
		text("enduser.id", g.DecidedBy), text("swarmdeck.door", string(g.Door)), text("gen_ai.agent.name", g.Agent)))
	return nil
}

// approval is a question to a person, from when it was asked.
func (d *deriver) approval(ctx context.Context, e *audit.Event, id string) error {
	a, err := d.eng.Judge.Approval(ctx, d.tenant, id)
	if err != nil {
		return err
	}
	void := e.EventType == "approval.voided"
	if a.Status == judge.Open || void && !a.AnsweredAt.IsZero() { // told when it was answered
		return nil
	}
	s := span(a.TraceID, core.SpanID(d.tenant, "approval", id, 0), d.within(a.TaskID, a.Attempt, a.Gate != judge.GateStart), "approval", a.CreatedAt, e.CreatedAt,
		text("swarmdeck.tenant.id", d.tenant), text("swarmdeck.task.id", a.TaskID), text("swarmdeck.approval.id", id),
		text("swarmdeck.approval.status", string(a.Status)), text("swarmdeck.gate", string(a.Gate)), text("swarmdeck.risk", string(a.Risk)),
		text("swarmdeck.reason_code", a.ReasonCode), text("swarmdeck.rule.id", a.RuleID), text("gen_ai.agent.name", a.Agent.Name),
		text("gen_ai.tool.name", a.Action.Tool), text("enduser.id", a.AnsweredBy), text("swarmdeck.approval.consents", strings.Join(a.Consenting(), " ")),
		flag("swarmdeck.approval.self", a.SelfApproved), flag("swarmdeck.approval.edited", a.PriorDigest != ""))
	if s != nil && !a.ShownAt.IsZero() {
		s.Events = append(s.Events, happened(a.ShownAt, "shown"))
	}
	d.add(s)
	return nil
}

// execution is a skill's run. A step of a composite is below the composite.
func (d *deriver) execution(ctx context.Context, id string) error {
	x, err := d.eng.Skills.Execution(ctx, d.tenant, id)
	if err != nil || x.CompletedAt.IsZero() {
		return err
	}
	l, err := d.lifeOf(ctx, x.TaskID)
	if err != nil {
		return err
	}
	n := l.at(x.StartedAt)
	parent := task.RunSpan(d.tenant, x.TaskID, n)
	if i := strings.LastIndexByte(x.Step, '/'); i > 0 {
		parent = skill.StepSpan(d.tenant, x.TaskID, x.Step[:i], n)
	}
	s := span(x.TraceID, skill.StepSpan(d.tenant, x.TaskID, x.Step, n), parent, "skill "+x.SkillName, x.StartedAt, x.CompletedAt,
		text("swarmdeck.tenant.id", d.tenant), text("swarmdeck.task.id", x.TaskID), text("swarmdeck.execution.id", id),
		text("swarmdeck.skill.name", x.SkillName), text("swarmdeck.skill.version", x.SkillVersion), text("swarmdeck.skill.runner", x.Kind),
		text("swarmdeck.skill.step", x.Step), text("swarmdeck.subagent.id", x.AgentID), count("swarmdeck.skill.retries", int64(x.RetryCount)))
	if x.Status != skill.StatusSuccess {
		failed(s, cmp.Or(x.ErrorCode, string(x.Status)))
	}
	d.add(s)
	return nil
}
