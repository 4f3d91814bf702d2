package otlp

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// maxTrail is how many events of one task are read, newest first. What an
// older attempt did is left out of a task with more.
const maxTrail = 500

// life is what the audit log says about a task.
type life struct {
	task  task.Task
	tries []try
	marks []*tracepb.Span_Event
}

// try is one attempt: its wait for a worker, and its run.
type try struct {
	n            int
	queued       time.Time
	began, ended time.Time // zero when it never began, or has not ended
	code         string    // of the error that ended it
}

// lifeOf reads a task's life, and keeps it for the batch.
func (d *deriver) lifeOf(ctx context.Context, id string) (*life, error) {
	if l, ok := d.lives[id]; ok {
		return l, nil
	}
	t, err := d.eng.Tasks.Get(ctx, d.tenant, id)
	if err != nil {
		return nil, err
	}
	trail, err := d.eng.Audit.Trail(ctx, d.tenant, t.AuditSeq, maxTrail)
	if err != nil {
		return nil, err
	}
	l := &life{task: t}
	now := try{queued: t.CreatedAt}
	for i := len(trail) - 1; i >= 0; i-- {
		if err := l.take(&trail[i], &now); err != nil {
			return nil, err
		}
	}
	if !now.queued.IsZero() { // it is not over
		l.tries = append(l.tries, now)
	}
	d.lives[id] = l
	return l, nil
}

func (t *try) open() bool { return !t.began.IsZero() && t.ended.IsZero() }

// take goes on with the next event of the task.
func (l *life) take(e *audit.Event, now *try) error {
	p, err := e.Data()
	if err != nil {
		return err
	}
	var state struct {
		Status  task.Status `json:"status"`
		Attempt int         `json:"attempt"`
	}
	var detail struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
		Decision struct {
			Decision   string `json:"decision"`
			ReasonCode string `json:"reason_code"`
			RuleID     string `json:"rule_id"`
			DecisionID string `json:"decision_id"`
		} `json:"decision"`
	}
	if len(p.State) == 0 || core.DecodeStored(p.State, &state) != nil {
		return nil
	}
	if len(p.Detail) > 0 {
		_ = core.DecodeStored(p.Detail, &detail) // what it lacks has no attribute
	}
	if made := detail.Decision; made.Decision != "" {
		l.marks = append(l.marks, happened(e.CreatedAt, "decision", text("swarmdeck.decision", made.Decision),
			text("swarmdeck.reason_code", made.ReasonCode), text("swarmdeck.rule.id", made.RuleID), text("swarmdeck.decision.id", made.DecisionID)))
	}
	switch {
	case e.EventType == "worker.consumed":
		if now.n = state.Attempt; !now.open() {
			now.began = e.CreatedAt
		}
	case state.Status == task.Queued && now.open() && state.Attempt == now.n: // given back: the attempt goes on
		l.marks = append(l.marks, happened(e.CreatedAt, "interrupted"))
	case state.Status == task.Queued && now.open():
		now.ended, now.code = e.CreatedAt, detail.Error.Code
		l.tries = append(l.tries, *now)
		*now = try{n: state.Attempt, queued: e.CreatedAt}
	case state.Status.Terminal() && (now.open() || !now.queued.IsZero()):
		now.ended, now.code = e.CreatedAt, detail.Error.Code
		l.tries = append(l.tries, *now)
		*now = try{}
	case e.EventType == "result.held", e.EventType == "task.paused", e.EventType == "task.resumed", e.EventType == "task.cancel_requested":
		l.marks = append(l.marks, happened(e.CreatedAt, e.EventType))
	}
	return nil
}

// at is the attempt that was under way at a time, or the last one before it.
func (l *life) at(when time.Time) int {
	n := 0
	for _, t := range l.tries {
		if !t.began.IsZero() && !t.began.After(when) {
			n = t.n
		}
	}
	return n
}

// ran reports whether any attempt had begun at a time.
func (l *life) ran(when time.Time) bool {
	return slices.ContainsFunc(l.tries, func(t try) bool { return !t.began.IsZero() && !t.began.After(when) })
}

// above is the parent's span of a task: what asked for it.
func (d *deriver) above(ctx context.Context, t *task.Task) string {
	if t.ParentTaskID == "" {
		return t.ParentSpan
	}
	parent, err := d.lifeOf(ctx, t.ParentTaskID)
	switch {
	case err != nil || parent.task.TraceID != t.TraceID:
		return t.ParentSpan
	case !parent.ran(t.CreatedAt):
		return task.Span(d.tenant, t.ParentTaskID)
	}
	return task.RunSpan(d.tenant, t.ParentTaskID, parent.at(t.CreatedAt))
}

// ended makes the spans of a task that is over.
func (d *deriver) ended(ctx context.Context, id string) error {
	delete(d.lives, id) // it may have been read before its end
	l, err := d.lifeOf(ctx, id)
	if err != nil {
		return err
	}
	t := &l.task
	own := task.Span(d.tenant, id)
	s := span(t.TraceID, own, d.above(ctx, t), "task "+t.Kind, t.CreatedAt, t.CompletedAt,
		text("swarmdeck.tenant.id", d.tenant), text("swarmdeck.task.id", id), text("swarmdeck.task.kind", t.Kind),
		text("swarmdeck.task.status", string(t.Status)), integer("swarmdeck.task.priority", int64(t.Priority)),
		integer("swarmdeck.task.attempts", int64(t.Attempt+1)), text("swarmdeck.task.retry_of", t.RetryOf), count("swarmdeck.task.denials", int64(t.Denials)),
		text("swarmdeck.session.id", t.SessionID), text("gen_ai.agent.name", t.Agent),
		text("swarmdeck.policy.version", t.Policy), text("enduser.id", t.CreatedBy), text("swarmdeck.created_by.kind", string(t.CreatedKind)))
	if s != nil {
		s.Events = l.marks
	}
	if s != nil && t.RetryOf != "" { // the one before has the same trace
		if before := span(t.TraceID, task.Span(d.tenant, t.RetryOf), "", "", t.CreatedAt, t.CreatedAt); before != nil {
			s.Links = append(s.Links, &tracepb.Span_Link{TraceId: before.TraceId, SpanId: before.SpanId, Attributes: kept(text("swarmdeck.link", "retry_of"))})
		}
	}
	failedTask(s, t.Status, t.ErrorCode)
	d.add(s)
	for i := range l.tries {
		d.try(ctx, t, own, &l.tries[i], i == len(l.tries)-1)
	}
	return nil
}

// failedTask marks a span by how its task ended: a cancel is no error.
func failedTask(s *tracepb.Span, status task.Status, code string) {
	switch status {
	case task.Failed, task.TimedOut, task.Blocked:
		failed(s, cmp.Or(code, string(status)))
	}
}

// try makes the spans of one attempt.
func (d *deriver) try(ctx context.Context, t *task.Task, above string, a *try, last bool) {
	n := integer("swarmdeck.task.attempt", int64(a.n))
	waited := a.began
	if waited.IsZero() {
		waited = a.ended
	}
	d.add(span(t.TraceID, core.SpanID(d.tenant, "queue", t.TaskID, a.n), above, "queue", a.queued, waited, n))
	if a.began.IsZero() || a.ended.IsZero() {
		return
	}
	s := span(t.TraceID, task.RunSpan(d.tenant, t.TaskID, a.n), above, "run "+t.Kind, a.began, a.ended,
		text("swarmdeck.task.id", t.TaskID), n, text("swarmdeck.worker", t.Worker))
	if s != nil {
		d.describe(ctx, t, s, last)
	}
	if !last || t.Status != task.Cancelled {
		failed(s, a.code)
	}
	d.add(s)
}

// describe adds what is known of a kind of work. Of its input, names alone.
func (d *deriver) describe(ctx context.Context, t *task.Task, s *tracepb.Span, last bool) {
	switch t.Kind {
	case "exec.run":
		var in struct {
			Argv []string `json:"argv"`
		}
		if core.DecodeStored(t.Input, &in) == nil && len(in.Argv) > 0 {
			s.Attributes = append(s.Attributes, kept(text("process.executable.name", filepath.Base(in.Argv[0])))...)
		}
		var out struct {
			RC *int64 `json:"rc"`
		}
		if r, err := d.eng.Tasks.Result(ctx, d.tenant, t.TaskID); last && err == nil && core.DecodeStored(r.Output, &out) == nil && out.RC != nil {
			s.Attributes = append(s.Attributes, integer("process.exit.code", *out.RC))
		}
	case "mcp.call":
		var in struct {
			Server string `json:"server"`
			Tool   string `json:"tool"`
		}
		if core.DecodeStored(t.Input, &in) != nil {
			return
		}
		s.Kind = tracepb.Span_SPAN_KIND_CLIENT
		s.Attributes = append(s.Attributes, kept(text("mcp.method.name", "tools/call"), text("gen_ai.operation.name", "execute_tool"),
			text("gen_ai.tool.name", in.Tool), text("swarmdeck.mcp.server", in.Server))...)
	}
}
