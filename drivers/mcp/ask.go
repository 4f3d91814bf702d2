package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
)

// noticeEvery is the time between progress notices while a person is waited
// for.
const noticeEvery = 10 * time.Second

// judge puts a call before the judge and blocks until there is an answer. It
// returns the arguments to act with: an answer may have edited them.
func (s *Server) judge(ctx context.Context, c *call, t tool, callID string, args core.Raw, check func(core.Raw) (core.Raw, error), r *mcp.CallToolRequest) (core.Raw, error) {
	ask := judge.Ask{
		Gate: judge.GateTool, TraceID: core.NewTrace(nil), Driver: "mcp", By: c.by,
		Action: judge.Action{Kind: "tool", Server: Name, Tool: t.name, CallID: callID, Args: args},
		Intent: fmt.Sprintf("%s calls %s", c.by.Name, t.name),
	}
	if parent, ok := r.Params.Meta["traceparent"].(string); ok && c.id.Kind == core.Operator {
		if trace, _, ok := core.ParseTraceparent(parent); ok {
			ask.TraceID, c.parent = trace, parent
		}
	}
	if c.agent != nil {
		ask.Agent = judge.AgentRef{Name: c.agent.Name, Role: c.agent.Role, Project: c.agent.Project}
		ask.Session = c.agent.SessionID
		if c.agent.TaskID != "" {
			task, err := s.eng.Tasks.Get(ctx, c.id.Tenant, c.agent.TaskID)
			if err != nil {
				return nil, err
			}
			ask.TaskID, ask.TraceID, ask.Attempt, ask.Priority = task.TaskID, task.TraceID, task.Attempt, task.Priority
		}
	}
	c.trace = ask.TraceID
	waits := make(chan string, 1)
	noticed := make(chan struct{})
	told, end := context.WithCancel(ctx)
	go func() {
		defer close(noticed)
		notices(told, r, waits)
	}()
	reply, err := s.eng.Fleet.Ask(ctx, judge.Request{
		By: c.by, Ask: ask, Apart: true, Check: check, Stop: s.ctx.Done(), Held: func() (bool, <-chan struct{}) { return s.held(c, t), nil },
		Opened: func(approval string) {
			select {
			case waits <- approval:
			default: // put anew: the first notice said enough
			}
		},
		Record: func(tx *audit.Tx, step judge.Step) error {
			detail := step.Detail()
			detail["tool"], detail["call_id"], detail["server"] = t.name, callID, Name
			_, err := tx.Record(audit.Entry{Type: "tool." + step.Name, Trace: ask.TraceID, Subject: "tool", ID: t.name, Detail: detail})
			return err
		},
	})
	end()
	<-noticed
	switch {
	case errors.Is(err, judge.ErrStopped):
		return nil, core.Errorf(core.Unavailable, "%s: the server is being closed", t.name)
	case err != nil:
		return nil, err
	case !reply.Approved:
		return nil, denied(t.name, reply)
	}
	return reply.Args, nil
}

// held reports whether the call is to stand still: an emergency stop freezes
// what would change something.
func (s *Server) held(c *call, t tool) bool {
	return t.effect != op.Reads && s.eng.Swarm.EStops.On(c.id.Tenant)
}

// denied is what a caller is told about a no.
func denied(tool string, no judge.Outcome) error {
	return core.Errorf(core.Denied, "%s: denied: %s", tool, line(cmp.Or(no.Reason, no.Decision.ReasonCode), 1024)).
		With("reason_code", no.Decision.ReasonCode).With("decision_id", no.Decision.DecisionID)
}

// notices tells a client that asked for progress what its call waits for, so
// that it has patience.
func notices(ctx context.Context, r *mcp.CallToolRequest, waits <-chan string) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return
	}
	var approval string
	select {
	case approval = <-waits:
	case <-ctx.Done():
		return
	}
	for n := 1.0; ; n++ {
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: n, Message: "waits for a person to answer approval " + approval,
		}); err != nil {
			return // the client has gone; the call finds that out by itself
		}
		if core.Within(ctx.Done(), noticeEvery) {
			return
		}
	}
}
