package exec

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// claudeEvent is a line of Claude Code, as far as it is read: a message of the model, or
// results of tools, in its own API's shape, and what it says itself.
type claudeEvent struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	Parent  string `json:"parent_tool_use_id"` // of a subagent
	Message struct {
		ID      string      `json:"id"`
		Content core.Raw    `json:"content"`
		Usage   claudeUsage `json:"usage"`
	} `json:"message"`

	PermissionMode string   `json:"permissionMode"` // of init
	Error          core.Raw `json:"error"`          // a word for what the API refused

	// Of api_retry.
	Attempt     int `json:"attempt"`
	MaxRetries  int `json:"max_retries"`
	ErrorStatus int `json:"error_status"`

	RateLimit struct {
		Status   string `json:"status"`
		Type     string `json:"rateLimitType"`
		ResetsAt int64  `json:"resetsAt"`
	} `json:"rate_limit_info"`

	// Of a result.
	IsError   bool                   `json:"is_error"`
	Result    string                 `json:"result"`
	Errors    core.Raw               `json:"errors"`
	APIStatus int                    `json:"api_error_status"`
	Cost      float64                `json:"total_cost_usd"`
	Usage     claudeUsage            `json:"usage"`
	Models    map[string]claudeModel `json:"modelUsage"` // of the conversation
	// SinceLast is of this process: it is told where the conversation was taken up.
	SinceLast map[string]claudeModel `json:"model_usage_since_last_result"`
}

type claudeUsage struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

func (u claudeUsage) split() fleet.Split {
	return fleet.Split{Input: u.Input + u.Written + u.Read, Output: u.Output, Cached: u.Read}
}

type claudeModel struct {
	Input   int64   `json:"inputTokens"`
	Output  int64   `json:"outputTokens"`
	Read    int64   `json:"cacheReadInputTokens"`
	Written int64   `json:"cacheCreationInputTokens"`
	Cost    float64 `json:"costUSD"`
	Window  int64   `json:"contextWindow"`
}

func readClaude(h *hearing, raw core.Raw) bool {
	var e claudeEvent
	if err := core.DecodeStored(raw, &e); err != nil {
		return false
	}
	switch e.Type {
	case "system":
		return h.claudeSystem(&e)
	case "assistant":
		h.claudeMessage(&e)
	case "user":
		h.claudeResults(&e)
	case "rate_limit_event":
		if l := e.RateLimit; l.Status != "allowed" {
			h.complain("rate limit " + l.Type + ": " + l.Status)
		}
	case "result":
		h.claudeResult(&e)
	case "stream_event": // pieces of the messages, which come whole too
	default:
		return false
	}
	return true
}

func (h *hearing) claudeSystem(e *claudeEvent) bool {
	switch e.Subtype {
	case "init":
		h.began(e.Session)
		if e.PermissionMode != "" {
			h.say(fleet.Event{
				Type: "mode", Text: "its own permission mode is " + core.ClipTo(e.PermissionMode, 64),
				Args: core.MustEncode(map[string]string{"mode": core.ClipTo(e.PermissionMode, 64)}),
			})
		}
	case "api_retry":
		h.complain(fmt.Sprintf("its model's API refuses: %s (status %d); try %d of %d", words(e.Error), e.ErrorStatus, e.Attempt, e.MaxRetries))
	default:
		return false
	}
	return true
}

// claudeMessage takes a message of the model. One comes in several events, each with
// the usage of all of it.
func (h *hearing) claudeMessage(e *claudeEvent) {
	refused := words(e.Error) // what the message says is the program's own then
	h.hint = cmp.Or(refused, h.hint)
	kind := "message"
	if e.Parent != "" {
		kind = "thought" // a subagent's
	}
	for _, b := range blocks(e.Message.Content) {
		switch {
		case b.Type == "text" && refused != "":
			h.complain(b.Text)
		case b.Type == "text":
			h.message(kind, b.Text)
		case b.Type == "thinking":
			h.message("thought", b.Thinking)
		case strings.HasSuffix(b.Type, "tool_use"): // its own, a server's, or of MCP
			h.call(b.ID, b.Name, about(b.Input), b.Input)
		}
	}
	if id := e.Message.ID; id != "" && !h.counted[id] && len(h.counted) < maxCounted {
		h.counted[id] = true
		split := e.Message.Usage.split()
		h.sum = h.sum.Plus(split)
		if e.Parent == "" {
			h.context.Used = split.Input + split.Output
		}
		h.spend(h.sum, 0)
	}
}

func (h *hearing) claudeResults(e *claudeEvent) {
	for _, b := range blocks(e.Message.Content) {
		if !strings.HasSuffix(b.Type, "tool_result") {
			continue
		}
		text, why := core.ClipTo(words(b.Content), core.MaxInput/2), ""
		if b.IsError {
			why = cmp.Or(text, "it failed")
		}
		h.done(b.CallID, map[string]string{"output": text}, why)
	}
}

func (h *hearing) claudeResult(e *claudeEvent) {
	switch {
	case e.Result == "" || e.IsError:
	case h.final == "": // it is all that is printed
		h.message("message", e.Result)
	default:
		h.final = core.ClipTo(e.Result, core.MaxInput)
	}
	h.acts = h.acts || !h.begun
	if e.Subtype == "success" { // else it may be that no conversation was begun
		h.began(e.Session)
	}
	models := e.SinceLast
	if models == nil {
		models = e.Models
	}
	sum, cost := fleet.Split{}, 0.0
	for _, m := range models {
		sum = sum.Plus(claudeUsage{m.Input, m.Written, m.Read, m.Output}.split())
		cost += m.Cost
		h.context.Size = max(h.context.Size, m.Window)
	}
	if len(models) == 0 {
		sum, cost = e.Usage.split(), e.Cost
	}
	h.spend(sum, cost)
	why := ""
	if e.IsError || strings.HasPrefix(e.Subtype, "error") {
		h.hint = strings.Join([]string{h.hint, e.Subtype, http.StatusText(e.APIStatus)}, " ")
		why = cmp.Or(e.Result, words(e.Errors), e.Subtype)
	}
	h.finish(why)
}

// block is a part of a message.
type block struct {
	Type     string   `json:"type"`
	Text     string   `json:"text"`
	Thinking string   `json:"thinking"`
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Input    core.Raw `json:"input"`
	CallID   string   `json:"tool_use_id"`
	Content  core.Raw `json:"content"`
	IsError  bool     `json:"is_error"`
}

// blocks are the parts of a message's content that can be read.
func blocks(content core.Raw) (out []block) {
	var all []core.Raw
	if core.DecodeStored(content, &all) != nil {
		return nil
	}
	for _, raw := range all {
		var b block
		if core.DecodeStored(raw, &b) == nil {
			out = append(out, b)
		}
	}
	return out
}
