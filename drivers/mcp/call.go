package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
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

// handle is the one place that every call of a tool passes: permitted, valid,
// judged, and carried out with the final arguments.
func (s *Server) handle(t tool, who whose) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		id, err := who(r)
		if err != nil {
			return nil, err
		}
		return s.once.do(ctx, id, r, func(ctx context.Context, callID string) (*mcp.CallToolResult, bool, error) {
			c, args, err := s.allow(ctx, id, t, callID, r)
			if err != nil {
				return failure(s.refused(ctx, id, t, err)), false, nil
			}
			return s.carryOut(ctx, c, t, args), true, nil
		})
	}
}

// strange audits calls of tools that there are not. The protocol's own answer
// names what was asked for.
func (s *Server) strange(who whose) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if r, is := req.(*mcp.CallToolRequest); is {
				if _, known := s.tools[r.Params.Name]; !known {
					id, err := who(req)
					if err != nil {
						return nil, err
					}
					_ = s.refuse(ctx, id, clean(clip(r.Params.Name)), core.Missing("tool", r.Params.Name))
				}
			}
			return next(ctx, method, req)
		}
	}
}

// allow checks a call and has it judged. The arguments are those to act with.
func (s *Server) allow(ctx context.Context, id Identity, t tool, callID string, r *mcp.CallToolRequest) (*call, core.Raw, error) {
	if id.Kind == core.Operator && !id.Role.Includes(t.role) {
		return nil, nil, core.Errorf(core.Denied, "%s: needs the rights of %s, %s has those of %s", t.name, t.role, id.Name, id.Role).With("field", "role")
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
		if err == nil {
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

// carryOut does what a call asks for.
func (s *Server) carryOut(ctx context.Context, c *call, t tool, args core.Raw) *mcp.CallToolResult {
	ctx, cancel := context.WithTimeout(ctx, s.opt.CallTime)
	defer cancel()
	v, err := t.run(ctx, c, args)
	if err == nil {
		var result *mcp.CallToolResult
		if result, err = answer(v); err == nil {
			return result
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = core.Errorf(core.Unavailable, "%s: not over after %s", t.name, s.opt.CallTime)
	}
	return failure(s.refused(ctx, c.id, t, err))
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
	err := s.eng.Audit.Refuse(ctx, id.caller(), audit.Entry{Type: "mcp.refused", Subject: "tool", ID: cmp.Or(tool, "connection"), Detail: detail}, cause)
	if err != nil && !errors.Is(err, cause) {
		return fmt.Errorf("refuse a call: %w", err)
	}
	return err
}

// hidden reports characters that a screen would obey or not show: controls
// other than tab and line break, formats such as bidirectional overrides and
// zero widths, and separators of lines.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (r == utf8.RuneError || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector))
}

// clean drops what is hidden from a text that others wrote.
func clean(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

// line is a clean text on one line of at most n bytes.
func line(s string, n int) string {
	return core.ClipTo(strings.Join(strings.Fields(clean(s)), " "), n)
}

// cleanJSON is a JSON text with all its strings clean.
func cleanJSON(data core.Raw) (core.Raw, error) {
	if bytes.IndexFunc(data, hidden) < 0 && !bytes.Contains(data, []byte(`\u`)) && !bytes.Contains(data, []byte(`\b`)) &&
		!bytes.Contains(data, []byte(`\f`)) && !bytes.Contains(data, []byte(`\r`)) {
		return data, nil
	}
	var out bytes.Buffer
	// Two names may be the same once they are clean.
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true))
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err == nil && token.Kind() == '"' {
			token = jsontext.String(clean(token.String()))
		}
		if err == nil {
			err = enc.WriteToken(token)
		}
		if err != nil {
			return nil, fmt.Errorf("clean a result: %w", err)
		}
	}
}
