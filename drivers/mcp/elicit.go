package mcp

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Asker puts questions before the judge; the fleet does.
type Asker interface {
	Ask(ctx context.Context, x judge.Request) (judge.Outcome, error)
}

// ReasonKey is the member of an answer's _meta that says why a question was not put.
const ReasonKey = "swarmdeck/reason"

// What becomes of a question, in the words of the protocol.
const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
)

// silence is the reason code of an approval that nobody answered in time.
const silence = "deadline"

// elicit answers a question of the server with what a person says.
func (l *link) elicit(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	of := l.whose(ctx)
	if len(of) == 0 {
		return refused("no call of a tool is under way that it could be about"), nil
	}
	args, err := l.question(r.Params, of)
	if err == nil {
		err = of.enter()
	}
	if err != nil {
		why := line(err.Error(), 1024)
		of.log("WARN", "server "+l.spec.Name+" asks what nobody is asked: "+why)
		return refused(why), nil
	}
	defer of.leave()
	over := of.over(ctx)
	if !of.take(ctx, over) {
		return &mcp.ElicitResult{Action: cancel}, nil
	}
	defer of.give()
	of.log("INFO", "server "+l.spec.Name+" asks a person: "+line(r.Params.Message, 1024))
	of.waits(true)
	defer of.waits(false)
	reply, err := l.c.asker().Ask(ctx, l.put(of, over, args, r.Params.Message))
	switch {
	case err != nil && (errors.Is(err, judge.ErrStopped) || ctx.Err() != nil): // nobody waits for it any more
	case err != nil:
		of.log("WARN", "the question could not be put: "+line(err.Error(), 1024))
	case reply.Approved:
		content := map[string]any{}
		if err := core.DecodeStored(reply.Content, &content); err != nil {
			return nil, err
		}
		return &mcp.ElicitResult{Action: accept, Content: content}, nil
	case reply.Abort:
		of.abort(reply.Reason)
	case reply.Decision.Decision == judge.Deny && reply.Decision.ReasonCode != silence:
		return &mcp.ElicitResult{Action: decline}, nil
	}
	return &mcp.ElicitResult{Action: cancel}, nil
}

// refused declines a question that is put to nobody, and says why.
func refused(why string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: decline, Meta: mcp.Meta{ReasonKey: why}}
}

// question checks what the server asks and returns it as arguments.
func (l *link) question(p *mcp.ElicitParams, of callers) (core.Raw, error) {
	if p.Mode != "" && p.Mode != "form" {
		return nil, core.Invalid("mode", clean(clip(p.Mode)), "form: nobody is sent to an address that a server names")
	}
	q := judge.Question{Message: clean(p.Message), Server: l.spec.Name}
	if p.RequestedSchema != nil {
		schema, err := core.Encode(p.RequestedSchema)
		if err == nil {
			schema, err = cleanJSON(schema)
		}
		if err == nil {
			q.Schema, err = core.Canonical(schema) // the protocol's library keeps no order
		}
		if err != nil {
			return nil, core.Errorf(core.InvalidInput, "schema: %v", err).With("field", "schema")
		}
	}
	if len(of) > 1 {
		for _, c := range of[:min(len(of), maxTold)] {
			q.Tasks = append(q.Tasks, c.task.TaskID)
		}
	}
	return q.Args()
}

// maxTold bounds the tasks that a question names.
const maxTold = 20

// put is the question to the judge. One whose task can't be told belongs to none.
func (l *link) put(of callers, over <-chan struct{}, args core.Raw, message string) judge.Request {
	x := judge.Request{
		By: core.Self(l.spec.TenantID, "mcp"), GivesUp: true, Stop: over,
		Ask: judge.Ask{
			Gate: judge.GateQuestion, Driver: "mcp", Risk: judge.Low,
			Action: judge.Action{Kind: judge.KindQuestion, Server: l.spec.Name, Args: args},
			Intent: strings.TrimSpace(line(message, 1000)), Said: true,
		},
	}
	x.Ask.By, x.Ask.TraceID = x.By, of[0].task.TraceID
	if len(of) == 1 {
		t := &of[0].task
		x.Held, x.Ask.TaskID, x.Ask.Session, x.Ask.Attempt, x.Ask.Priority = of[0].held, t.TaskID, t.SessionID, t.Attempt, t.Priority
	}
	x.Record = func(tx *audit.Tx, step judge.Step) error {
		detail := map[string]any{"task_id": x.Ask.TaskID, "approval_id": step.Approval}
		event := map[string]string{judge.Requested: "asked", judge.Started: "answered", judge.Stale: "stale"}[step.Name]
		if step.Name == judge.Requested {
			detail = map[string]any{"task_id": x.Ask.TaskID, "decision_id": step.Decision.DecisionID}
		}
		_, err := tx.Record(audit.Entry{Type: "question." + event, Trace: x.Ask.TraceID, Subject: "server", ID: l.spec.Name, Detail: detail})
		return err
	}
	return x
}
