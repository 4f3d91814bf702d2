package exec

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// codexEvent is a line of codex exec --json.
type codexEvent struct {
	Type   string   `json:"type"`
	Thread string   `json:"thread_id"`
	Item   core.Raw `json:"item"`
	// Usage is of the thread so far, those turns too that another process had.
	Usage struct {
		Input  int64 `json:"input_tokens"`
		Cached int64 `json:"cached_input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
	Message string `json:"message"` // of an error, after which it may go on
	Error   struct {
		Message string `json:"message"`
	} `json:"error"` // of a turn that failed
}

// codexItem is what the agent says or does. What is none of its texts is a call, whose
// arguments are the other members.
type codexItem struct {
	ID      string   `json:"id"`
	Type    string   `json:"type"`
	Text    string   `json:"text"`
	Message string   `json:"message"`
	Status  string   `json:"status"`
	Output  string   `json:"aggregated_output"`
	Exit    *int     `json:"exit_code"`
	Result  core.Raw `json:"result"`
	Error   core.Raw `json:"error"`

	Server  string `json:"server"` // of MCP
	Tool    string `json:"tool"`
	Changes []struct {
		Path string `json:"path"`
		Kind string `json:"kind"` // add, delete or update
	} `json:"changes"`
	Todo []struct {
		Text string `json:"text"`
		Done bool   `json:"completed"`
	} `json:"items"`
}

func readCodex(h *hearing, raw core.Raw) bool {
	var e codexEvent
	if core.DecodeStored(raw, &e) != nil {
		return false
	}
	switch e.Type {
	case "thread.started":
		h.began(e.Thread)
	case "turn.started":
	case "item.started", "item.updated", "item.completed":
		return h.codexItem(e.Item, e.Type == "item.completed")
	case "turn.completed":
		u := fleet.Split{Input: e.Usage.Input, Output: e.Usage.Output, Cached: e.Usage.Cached}
		turn := u
		if b := h.talk.Spent; u.Input >= b.Input && u.Output >= b.Output && u.Cached >= b.Cached { // else it began anew
			turn = keeper.Beyond(u, b)
		}
		h.spend(turn, 0)
		h.talk.Spent = u
		h.finish("")
	case "turn.failed":
		h.finish(cmp.Or(e.Error.Message, h.complaint, "the turn failed"))
	case "error":
		h.complain(e.Message)
	default:
		return false
	}
	return true
}

func (h *hearing) codexItem(raw core.Raw, over bool) bool {
	var i codexItem
	if core.DecodeStored(raw, &i) != nil || i.ID == "" {
		return false
	}
	switch i.Type {
	case "agent_message":
		if over {
			h.message("message", i.Text)
		}
	case "reasoning":
		if over {
			h.message("thought", i.Text)
		}
	case "error":
		h.log("WARN", i.Message)
	case "todo_list":
		h.codexPlan(i)
	default:
		if _, known := h.open[i.ID]; !known {
			h.codexCall(i, raw)
		}
		if over {
			h.codexDone(i)
		}
	}
	return true
}

func (h *hearing) codexCall(i codexItem, raw core.Raw) {
	args := map[string]core.Raw{}
	_ = core.DecodeStored(raw, &args)
	for _, other := range []string{"id", "type", "text", "message", "status", "aggregated_output", "exit_code", "result", "error"} {
		delete(args, other)
	}
	tool, what := i.Type, about(core.MustEncode(args))
	for _, c := range i.Changes {
		what = strings.TrimPrefix(what+", "+c.Kind+" "+c.Path, ", ")
	}
	if i.Tool != "" {
		tool, what = i.Server+"."+i.Tool, about(args["arguments"])
	}
	h.call(i.ID, tool, what, core.MustEncode(args))
}

func (h *hearing) codexDone(i codexItem) {
	why := ""
	if i.Status != "" && i.Status != "completed" { // failed, declined
		var told struct {
			Message string `json:"message"`
		}
		_ = core.DecodeStored(i.Error, &told)
		why = cmp.Or(told.Message, i.Status)
		if i.Exit != nil && *i.Exit != 0 {
			why = fmt.Sprintf("exit status %d", *i.Exit)
		}
	}
	out := map[string]any{}
	if i.Output != "" {
		out["output"] = core.ClipTo(i.Output, core.MaxInput/2)
	}
	if i.Exit != nil {
		out["exit_code"] = *i.Exit
	}
	if len(i.Result) > 0 && i.Result.Kind() != 'n' && len(i.Result) < core.MaxInput/2 {
		out["result"] = i.Result
	}
	h.done(i.ID, out, why)
}

func (h *hearing) codexPlan(i codexItem) {
	var steps []fleet.Step
	for _, s := range i.Todo {
		steps = append(steps, fleet.Step{Text: s.Text, Status: map[bool]string{true: "completed", false: "pending"}[s.Done]})
	}
	h.say(keeper.Plan(steps))
}
