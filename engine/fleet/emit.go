package fleet

import (
	"context"
	"fmt"
	"math"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// emit takes one event of the run from its runtime.
func (r *run) emit(ctx context.Context, e Event) (ToolAnswer, error) {
	if e.Type == "tool_request" {
		return r.tool(ctx, e)
	}
	r.follow(ctx, &e)
	switch e.Type {
	case "message":
		r.log.add("INFO", e.Text, "message")
	case "log":
		r.log.add(e.Level, e.Text, "log")
	case "thought":
		r.log.add("DEBUG", e.Text, "thought")
	case "plan", "diff":
		r.log.add("INFO", e.Text, e.Type)
	case "tool_call":
		r.log.add("INFO", "runs "+toolName(e)+" without asking", "tool")
	case "mode":
		return ToolAnswer{}, r.mode(ctx, e)
	case "model_request":
		// The record has it; the log tells of the answer.
	case "model_response":
		level, text := modelLine(&e)
		r.log.add(level, text, "model")
	case "usage":
		r.use(e.Tokens, e.CostUSD)
	case "attention":
		return ToolAnswer{}, r.attend(ctx, e.Text)
	case "tool_result":
		return ToolAnswer{}, r.toolResult(ctx, e)
	case "result":
		// The outcome of Prompt says it all; a text beside it is kept.
		if e.Text != "" {
			r.log.add("INFO", e.Text, "result")
		}
	default:
		r.log.add("INFO", e.Text, "unknown:"+cut(e.Type, maxCall))
	}
	return ToolAnswer{}, r.log.failed()
}

// follow tells all who follow the run of an event.
func (r *run) follow(ctx context.Context, e *Event) {
	r.progress.event(e, r.acts.take(e))
	if r.seen != nil {
		r.seen.Event(ctx, *e)
	}
}

// use counts what the agent spent. A claim to have gained something is not
// believed.
func (r *run) use(tokens int64, cost float64) {
	if tokens < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) || cost < 0 {
		r.log.add("WARN", fmt.Sprintf("usage of %d tokens and %g USD is not possible, and was not counted", tokens, cost), "usage")
		return
	}
	r.acts.used(tokens, cost)
	r.job.Use(tokens, cost)
}

// attend records that the agent asks for a person, on its record and for good
// beside the task.
func (r *run) attend(ctx context.Context, text string) error {
	text = cut(text, maxReason)
	if text == "" {
		text = "the agent asks for you"
	}
	r.log.add("WARN", text, "attention")
	t := &r.job.Task
	n := record.Event{Type: "agent.attention", Trace: t.TraceID, Detail: map[string]any{"task_id": t.TaskID, "text": text}}
	_, err := r.f.change(ctx, r.m.speaker(), r.m, n, func(tx *audit.Tx, a *Agent) error {
		if a.Attention == text || a.TaskID != t.TaskID {
			return errSame
		}
		a.Attention = text
		return attention.Put(tx, record.Key(t.TaskID), text)
	})
	return err
}

// mode records how the agent's own permissions are set: another mode asks for
// less or for more than the one that was wanted, so the gate's strength changed.
func (r *run) mode(ctx context.Context, e Event) error {
	level := "INFO"
	if e.Status != "" {
		level = "WARN"
	}
	r.log.add(level, e.Text, "mode")
	detail := map[string]any{"task_id": r.job.Task.TaskID, "text": cut(e.Text, maxReason)}
	if core.CheckObject("args", e.Args, maxOptions) == nil {
		detail["mode"] = e.Args
	}
	return r.f.opt.Ledger.Update(ctx, r.m.speaker(), func(tx *audit.Tx) error {
		_, err := tx.Record(audit.Entry{Type: "agent.mode", Trace: r.job.Task.TraceID, Subject: "agent", ID: r.m.name, Detail: detail})
		return err
	})
}

func toolName(e Event) string {
	return strings.TrimSpace(cut(e.Tool, maxCall) + " " + oneLine(e.Text, maxIntent))
}

// toolResult keeps what came of a call. A call that was never asked about is
// shown as such: the agent did it past the gate, or invented it.
func (r *run) toolResult(ctx context.Context, e Event) error {
	r.mu.Lock()
	tool, asked := r.calls[e.CallID]
	delete(r.calls, e.CallID)
	r.mu.Unlock()
	id, status := cut(e.CallID, maxCall), cut(e.Status, maxCall)
	if !asked && e.Tool != "" { // the runtime saw it happen
		tool = toolName(e) + " (not asked)"
	} else if !asked {
		r.log.add("WARN", fmt.Sprintf("result (%s) of tool call %q, for which no permission was asked", status, id), "tool")
		return r.log.failed()
	}
	level, text := "INFO", fmt.Sprintf("%s %s: %s", tool, id, status)
	if status != "ok" {
		level = "WARN"
	}
	if len(e.Output) > 0 {
		text += " " + string(e.Output)
	}
	if e.Error != "" {
		text += " " + e.Error
	}
	r.log.add(level, text, "tool")
	t := &r.job.Task
	return r.f.opt.Ledger.Update(ctx, r.m.speaker(), func(tx *audit.Tx) error {
		_, err := tx.Record(audit.Entry{
			Type: "tool.result", Trace: t.TraceID, Subject: "agent", ID: r.m.name,
			Detail: map[string]any{"task_id": t.TaskID, "call_id": id, "tool": cut(tool, maxIntent), "asked": asked, "status": status, "bytes": len(e.Output)},
		})
		return err
	})
}

// failed is the first error of the log.
func (t *transcript) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
