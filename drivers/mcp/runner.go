package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Kind is the task kind that Runner carries out, SkillKind the runner kind of
// skills that SkillRunner does.
const (
	Kind      = judge.KindMCP
	SkillKind = "mcp"
)

// callInput is the input of a mcp.call task.
type callInput struct {
	Server string   `json:"server"`
	Tool   string   `json:"tool"`
	Args   core.Raw `json:"args"`
	// ToolDigest names the tool as it is. It is filled in for whoever judges
	// the call, which binds an approval to it; what a caller gives is not used.
	ToolDigest string `json:"tool_digest,omitempty"`

	approved    bool    // by a person
	traceparent string  // of the work that the call belongs to
	of          *caller // is asked what the server wants to know
}

// Runner carries out mcp.call tasks {"server","tool","args"}. The result is
// {"content":[…]}, with "structured" where the tool gives that. What a tool
// itself calls an error fails the task with code tool_error; it is not retried.
type Runner struct{ c *Client }

// SkillRunner carries out skills that are a tool of a server: the parameters
// are its arguments, and its result is the structured one, where there is one.
type SkillRunner struct{ c *Client }

var (
	_ swarm.Runner   = Runner{}
	_ skill.Runner   = SkillRunner{}
	_ skill.Effecter = SkillRunner{}
)

// Runner carries out tasks.
func (c *Client) Runner() Runner { return Runner{c} }

// SkillRunner carries out skills.
func (c *Client) SkillRunner() SkillRunner { return SkillRunner{c} }

func parseCall(input core.Raw) (in callInput, err error) {
	if err := core.Decode(input, &in); err != nil {
		return in, err
	}
	if len(in.Args) == 0 {
		in.Args = core.Raw("{}")
	}
	if err := checkNames("", in.Server, in.Tool); err != nil {
		return in, err
	}
	return in, core.CheckObject("args", in.Args, core.MaxInput)
}

func checkNames(prefix, server, tool string) error {
	for _, f := range [][2]string{{"server", server}, {"tool", tool}} {
		if f[1] == "" || line(f[1], 200) != f[1] {
			return core.Invalid(prefix+f[0], clean(clip(f[1])), "1-200 printable bytes")
		}
	}
	return nil
}

// Check implements swarm.Runner. The server must be known; whether it has the
// tool is found out when it is called.
func (r Runner) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	in, err := parseCall(input)
	if err != nil {
		return "", judge.Action{}, err
	}
	s, err := r.c.server(context.Background(), tenant, in.Server)
	if err != nil {
		return "", judge.Action{}, fmt.Errorf("server: %w", err)
	}
	action := judge.Action{Kind: Kind, Server: in.Server, Tool: in.Tool}
	var k known
	if k, in.ToolDigest = r.c.tools.tool(s, in.Tool); k.reads() {
		action.Effects = []string{"read"}
	}
	action.Args = core.MustEncode(in)
	return in.Server + "." + in.Tool + " " + line(string(in.Args), 120), action, nil
}

// Bind is what the server says of the tool: a card shows how it differs from what was
// approved before.
func (r Runner) Bind(tenant string, action judge.Action) []judge.File {
	s, err := r.c.server(context.Background(), tenant, action.Server)
	if err != nil {
		return nil
	}
	k, _ := r.c.tools.tool(s, action.Tool)
	if k.Digest == "" {
		return nil
	}
	return []judge.File{{
		Path: "what " + s.Name + " says of " + action.Tool, SHA256: r.c.opt.Keep(tenant, []byte(k.Said)), Size: int64(len(k.Said)), Mode: "as described", Runs: true,
	}}
}

func (Runner) Slot(_, _ string) (bool, string) { return true, "" }

func (r Runner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	_, action, err := r.Check(job.Task.TenantID, job.Task.Input)
	if err != nil {
		return nil, err
	}
	in, err := parseCall(action.Args)
	if err != nil {
		return nil, err
	}
	if !judge.SameFiles(job.Files, r.Bind(job.Task.TenantID, action)) {
		return nil, fmt.Errorf("%s.%s %w", in.Server, in.Tool, judge.ErrChanged)
	}
	in.approved, in.traceparent = job.Task.ApprovalID != "", job.Task.Traceparent()
	in.of = &caller{task: job.Task, log: job.Log, waits: func(bool) {}}
	if !in.approved && len(job.Files) == 0 {
		in.ToolDigest = "" // a rule let it pass before anything was known of it
	}
	call := skill.Call{Tenant: job.Task.TenantID, TaskID: job.Task.TaskID}
	return skill.RunFunc(ctx, call, func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
		defer job.Keep()()
		return r.c.held(ctx, hold, job.Task.TenantID, in)
	}), nil
}

// held calls a tool; a pause is in effect meanwhile, since all that is done
// here is to wait for the server.
func (c *Client) held(ctx context.Context, hold *skill.Hold, tenant string, in callInput) (out core.Raw, err error) {
	if err := hold.Wait(ctx); err != nil {
		return nil, err
	}
	in.of.held = hold.Standing
	if idle := hold.Idle(ctx, func() { out, err = c.call(ctx, tenant, in) }); idle != nil {
		return nil, errors.Join(idle, err)
	}
	return out, err
}

func (SkillRunner) Check(spec skill.Spec) error { return checkNames("runner.", spec.Server, spec.Tool) }

// Effects implements skill.Effecter: a server is a program that can do
// anything.
func (SkillRunner) Effects(skill.Spec) []skill.Effect { return []skill.Effect{skill.Exec} }

func (r SkillRunner) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	in := callInput{Server: call.Skill.Runner.Server, Tool: call.Skill.Runner.Tool, Args: call.Params, traceparent: call.Traceparent()}
	return skill.RunFunc(ctx, call, func(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
		in.of = &caller{log: call.Log, waits: call.Waits, task: task.Task{
			TenantID: call.Tenant, TaskID: call.TaskID, TraceID: call.TraceID, SessionID: call.Session, Attempt: call.Attempt,
		}}
		out, err := r.c.held(ctx, hold, call.Tenant, in)
		if err != nil {
			return nil, err
		}
		var result struct {
			Structured core.Raw `json:"structured"`
		}
		if err := core.DecodeStored(out, &result); err == nil && result.Structured.Kind() == '{' {
			return result.Structured, nil
		}
		return out, nil
	}), nil
}

// outcome is a tool's result as JSON, its texts clean.
func outcome(in callInput, r *mcp.CallToolResult) (core.Raw, error) {
	type part struct {
		Type string `json:"type"`
		Text string `json:"text,omitempty"`
		Note string `json:"note,omitempty"` // what stands for a part that is no text
	}
	var said []string
	parts := []part{}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			parts = append(parts, part{Type: "text", Text: c.Text})
			said = append(said, c.Text)
		case *mcp.ImageContent:
			parts = append(parts, part{Type: "image", Note: fmt.Sprintf("%d bytes of %s", len(c.Data), c.MIMEType)})
		case *mcp.AudioContent:
			parts = append(parts, part{Type: "audio", Note: fmt.Sprintf("%d bytes of %s", len(c.Data), c.MIMEType)})
		case *mcp.ResourceLink:
			parts = append(parts, part{Type: "resource_link", Note: c.URI})
		case *mcp.EmbeddedResource:
			p := part{Type: "resource"}
			if c.Resource != nil {
				p.Text, p.Note = c.Resource.Text, c.Resource.URI
			}
			parts = append(parts, p)
		}
	}
	if r.IsError {
		return nil, &skill.Failure{Code: "tool_error", Message: line(in.Server+"."+in.Tool+": "+strings.Join(said, "\n"), 4000)}
	}
	out := map[string]any{"content": parts}
	if r.StructuredContent != nil {
		out["structured"] = r.StructuredContent
	}
	data, err := core.Encode(out)
	if err != nil {
		return nil, fmt.Errorf("encode the result of %s.%s: %w", in.Server, in.Tool, err)
	}
	return cleanJSON(data)
}
