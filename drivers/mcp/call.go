package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// call is one call of a tool that may go ahead.
type call struct {
	eng   *engine.Engine
	dir   string
	id    Identity
	by    core.Caller
	agent *fleet.Agent // who calls, when that is an agent
	trace string       // of the task that the agent works on
	// parent is the traceparent that an operator's client sent along; "" for
	// none. An agent's is what the engine knows it to work on.
	parent string
	at     time.Time
}

type callKey struct{}

// gate is the one place that every call of a tool passes: known, permitted,
// valid, judged. What it lets through goes on with the final arguments.
func (s *Server) gate(who whose) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			r, is := req.(*mcp.CallToolRequest)
			if !is {
				return next(ctx, method, req)
			}
			id, err := who(req)
			if err != nil {
				return nil, err
			}
			t, known := s.tools[r.Params.Name]
			if !known { // the protocol's own answer, which names what was asked for
				_ = s.refuse(ctx, id, clean(clip(r.Params.Name)), core.Missing("tool", r.Params.Name))
				return next(ctx, method, req)
			}
			work := func(ctx context.Context, callID string) (*mcp.CallToolResult, bool, error) {
				c, args, err := s.allow(ctx, id, t, callID, r)
				if err != nil {
					return failure(s.refused(ctx, id, t, err)), false, nil
				}
				allowed := *r
				params := *r.Params
				params.Arguments = []byte(args)
				allowed.Params = &params
				out, err := next(context.WithValue(ctx, callKey{}, c), method, &allowed)
				result, _ := out.(*mcp.CallToolResult)
				return result, true, err
			}
			return s.once.do(ctx, id, r, work)
		}
	}
}

// allow checks a call and has it judged. The arguments are those to act with.
func (s *Server) allow(ctx context.Context, id Identity, t tool, callID string, r *mcp.CallToolRequest) (*call, core.Raw, error) {
	if id.Kind == core.Operator && id.Role == Viewer && t.effect != reads {
		return nil, nil, core.Errorf(core.Denied, "%s: needs the role operator, %s is viewer", t.name, id.Name).With("field", "role")
	}
	c := &call{eng: s.eng, dir: s.opt.Dir, id: id, by: id.caller(), at: time.Now()}
	if id.Kind == core.Agent {
		a, err := s.eng.Fleet.Agent(ctx, id.Tenant, id.Name)
		if err != nil {
			return nil, nil, err
		}
		c.agent = &a
	}
	fill := func(args core.Raw) (core.Raw, error) {
		args, err := checkArgs(t.params, args)
		if err == nil && t.fill != nil {
			args, err = t.fill(c, args)
		}
		return args, err
	}
	args, err := fill(core.Raw(r.Params.Arguments))
	if err != nil {
		return nil, nil, err
	}
	args, err = s.judge(ctx, c, t, callID, args, fill, r)
	return c, args, err
}

// handle carries out a call that the gate let through.
func (s *Server) handle(t tool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c, ok := ctx.Value(callKey{}).(*call)
		if !ok {
			return nil, errors.New("a call that was not judged")
		}
		ctx, cancel := context.WithTimeout(ctx, s.opt.CallTime)
		defer cancel()
		v, err := t.run(ctx, c, core.Raw(r.Params.Arguments))
		var result *mcp.CallToolResult
		if err == nil {
			result, err = answer(v)
		}
		if err == nil {
			return result, nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = core.Errorf(core.Unavailable, "%s: not over after %s", t.name, s.opt.CallTime)
		}
		return failure(s.refused(ctx, c.id, t, err)), nil
	}
}

// refused audits an error that is a refusal of the caller's doing.
func (s *Server) refused(ctx context.Context, id Identity, t tool, err error) error {
	e := core.AsError(err)
	if e.Code != core.Denied && e.Code != core.InvalidInput {
		return err
	}
	return s.refuse(ctx, id, t.name, e)
}

// refuse audits a refusal and returns it.
func (s *Server) refuse(ctx context.Context, id Identity, tool string, cause *core.Error) error {
	detail := map[string]any{"code": cause.Code, "message": line(cause.Message, 1024)}
	if field, ok := cause.Details["field"].(string); ok {
		detail["field"] = line(field, 128)
	}
	if tool == "" {
		tool = "connection"
	}
	err := s.eng.Audit.Refuse(ctx, id.caller(), audit.Entry{Type: "mcp.refused", Subject: "tool", ID: tool, Detail: detail}, cause)
	if err != nil && !errors.Is(err, cause) {
		return fmt.Errorf("refuse a call: %w", err)
	}
	return err
}
