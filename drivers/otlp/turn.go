package otlp

import (
	"cmp"
	"context"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// maxTurn bounds the events that are read of one turn of an agent, in pages of
// core.MaxPageSize. The turn's span says how many there were.
const maxTurn = 20 * core.MaxPageSize

// over makes the spans of a run that is over: its record is complete.
func (d *deriver) over(ctx context.Context, run string) error {
	r, err := d.eng.DAG.Run(ctx, d.tenant, run)
	if err != nil || !d.told(r.TraceID) {
		return err
	}
	return d.turn(ctx, &r)
}

// turn makes the spans of an agent's turn.
func (d *deriver) turn(ctx context.Context, r *dag.RunState) error {
	parent := ""
	if r.TaskID != "" {
		t, err := d.eng.Tasks.Header(ctx, core.Self(d.tenant, "otlp"), r.TaskID)
		if err == nil && t.Kind != fleet.KindPrompt {
			return nil // its attempt and its skills have spans of their own
		}
		l, err := d.lifeOf(ctx, r.TaskID)
		if err != nil {
			return err
		}
		parent = d.within(r.TaskID, l.at(r.StartedAt.Time()), true)
	}
	own := core.SpanID(d.tenant, "turn", r.RunID, 0)
	s := span(r.TraceID, own, parent, "invoke_agent "+r.AgentID, r.StartedAt.Time(), r.FinishedAt.Time(),
		text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", r.AgentID), text("gen_ai.conversation.id", r.RunID),
		text("gen_ai.request.model", r.Model), count("gen_ai.usage.input_tokens", r.Usage.PromptTokens), count("gen_ai.usage.output_tokens", r.Usage.CompletionTokens),
		text("swarmdeck.tenant.id", d.tenant), text("swarmdeck.task.id", r.TaskID), text("swarmdeck.session.id", r.SessionID),
		text("swarmdeck.run.exit", r.Exit), integer("swarmdeck.run.events", int64(r.Events)))
	if r.Interrupted != "" {
		failed(s, string(r.Interrupted))
	}
	d.add(s)
	open := calls{d: d, run: r, parent: own, tools: map[string]dag.Event{}, models: map[string]dag.Event{}}
	for page := 1; page <= maxTurn/core.MaxPageSize; page++ {
		found, err := d.eng.DAG.Events(ctx, d.tenant, dag.Query{Run: r.RunID, Filter: core.Filter{Page: page, Size: core.MaxPageSize}})
		if err != nil {
			return err
		}
		for _, e := range found.Items {
			open.take(e.Event)
		}
		if len(found.Items) < core.MaxPageSize {
			break
		}
	}
	open.cut()
	return nil
}

// calls pairs what was asked of tools and models with the answers.
type calls struct {
	d             *deriver
	run           *dag.RunState
	parent        string
	tools, models map[string]dag.Event
}

func (c *calls) take(e dag.Event) {
	switch b := e.Body.(type) {
	case *dag.ToolCall:
		c.tools[b.CallID] = e
	case *dag.ToolResult:
		if asked, ok := c.tools[b.CallID]; ok {
			delete(c.tools, b.CallID)
			code := ""
			if b.Status != dag.CallOK {
				if code = string(b.Status); b.Error != nil && b.Error.Code != "" {
					code = b.Error.Code
				}
			}
			c.tool(asked, e.TS, code, c.d.json("gen_ai.tool.call.result", within(b.Result)))
		}
	case *dag.ModelRequest:
		c.models[cmp.Or(e.CorrelationID, e.EventID)] = e // by their correlation, where they have one
	case *dag.ModelResponse:
		key := cmp.Or(e.CorrelationID, b.RequestID)
		if asked, ok := c.models[key]; ok {
			delete(c.models, key)
			s := c.model(asked, e.TS)
			if s == nil {
				return
			}
			if b.Status != "" && b.Status != dag.CallOK {
				failed(s, string(b.Status))
			}
			u := dag.Usage{}
			if b.Usage != nil {
				u = *b.Usage
			}
			s.Attributes = append(s.Attributes, kept(
				texts("gen_ai.response.finish_reasons", b.FinishReason), count("gen_ai.usage.input_tokens", u.PromptTokens),
				count("gen_ai.usage.output_tokens", u.CompletionTokens), count("gen_ai.usage.cache_read.input_tokens", u.CachedTokens),
				c.d.messages("gen_ai.output.messages", &e, b.FinishReason))...)
		}
	}
}

func (c *calls) tool(asked dag.Event, end dag.Time, code string, more ...*commonpb.KeyValue) {
	b := asked.Body.(*dag.ToolCall)
	s := span(c.run.TraceID, core.SpanID(c.d.tenant, "tool", asked.EventID, 0), c.parent, "execute_tool "+b.Tool, asked.TS.Time(), end.Time(),
		text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", b.Tool), text("gen_ai.tool.call.id", b.CallID),
		text("gen_ai.agent.name", c.run.AgentID), text("gen_ai.conversation.id", c.run.RunID), text("swarmdeck.tool.server", b.Server),
		text("swarmdeck.task.id", c.run.TaskID), c.d.json("gen_ai.tool.call.arguments", within(b.Args)))
	if s != nil {
		s.Attributes = append(s.Attributes, kept(more...)...)
	}
	failed(s, code)
	c.d.add(s)
}

func (c *calls) model(asked dag.Event, end dag.Time) *tracepb.Span {
	b := asked.Body.(*dag.ModelRequest)
	s := span(c.run.TraceID, core.SpanID(c.d.tenant, "model", asked.EventID, 0), c.parent, "chat "+b.Model, asked.TS.Time(), end.Time(),
		text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", b.Model), text("gen_ai.agent.name", c.run.AgentID),
		text("gen_ai.conversation.id", c.run.RunID), c.d.messages("gen_ai.input.messages", &asked, ""))
	if s != nil {
		s.Kind = tracepb.Span_SPAN_KIND_CLIENT
	}
	c.d.add(s)
	return s
}

// cut ends what had no answer with the turn.
func (c *calls) cut() {
	for _, asked := range c.tools {
		c.tool(asked, c.run.FinishedAt, "unanswered")
	}
	for _, asked := range c.models {
		failed(c.model(asked, c.run.FinishedAt), "unanswered")
	}
}
