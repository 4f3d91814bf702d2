package modelproxy

import (
	"cmp"
	"strconv"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// Anthropic's messages.

type messagesBlock struct {
	Type      string   `json:"type"`
	Text      string   `json:"text"`
	Thinking  string   `json:"thinking"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Input     core.Raw `json:"input"`
	ToolUseID string   `json:"tool_use_id"`
	Content   core.Raw `json:"content"`
	IsError   bool     `json:"is_error"`
	Source    struct {
		Type string `json:"type"`
		Kind string `json:"media_type"`
		Data string `json:"data"`
		URL  string `json:"url"`
	} `json:"source"`
}

func messagesPart(raw core.Raw) (dag.ContentPart, bool) {
	var b messagesBlock
	if core.DecodeStored(raw, &b) != nil {
		return dag.ContentPart{}, false
	}
	switch b.Type {
	case "text":
		return dag.ContentPart{Type: "text", Text: b.Text}, b.Text != ""
	case "thinking":
		return dag.ContentPart{Type: "reasoning", Text: b.Thinking}, b.Thinking != ""
	case "tool_use", "server_tool_use":
		return dag.ContentPart{Type: "tool_use", ID: b.ID, Name: b.Name, Input: arguments(string(compact(b.Input)))}, true
	case "tool_result":
		p := dag.ContentPart{Type: "tool_result", ToolCallID: b.ToolUseID, Output: compact(b.Content)}
		if b.IsError {
			p.IsError = &b.IsError
		}
		return p, true
	case "image":
		if b.Source.URL != "" {
			return dag.ContentPart{Type: "image_url", URL: b.Source.URL}, true
		}
		return dag.ContentPart{Type: "image_url", URL: "data:" + b.Source.Kind + ";base64," + b.Source.Data}, true
	case "redacted_thinking":
		return dag.ContentPart{}, false // sealed
	}
	return dag.ContentPart{Type: "text", Text: string(raw)}, true
}

func askMessages(_ string, body []byte) (fleet.ModelCall, error) {
	var in struct {
		Model    string   `json:"model"`
		System   core.Raw `json:"system"`
		Tools    core.Raw `json:"tools"`
		Messages []struct {
			Role    string   `json:"role"`
			Content core.Raw `json:"content"`
		} `json:"messages"`
	}
	if err := core.DecodeStored(body, &in); err != nil {
		return fleet.ModelCall{}, err
	}
	var t talk
	t.say("system", content(in.System, messagesPart)...)
	for _, m := range in.Messages {
		t.say(roleOf(m.Role), content(m.Content, messagesPart)...)
	}
	return fleet.ModelCall{Name: in.Model, Messages: t.messages(), Tools: in.Tools, Params: settings(body, "model", "system", "messages", "tools")}, nil
}

type messagesUsage struct {
	Input   *int64 `json:"input_tokens"`
	Output  *int64 `json:"output_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
}

// over is what both say, the newer where it does.
func (u messagesUsage) over(old messagesUsage) messagesUsage {
	return messagesUsage{cmp.Or(u.Input, old.Input), cmp.Or(u.Output, old.Output), cmp.Or(u.Read, old.Read), cmp.Or(u.Written, old.Written)}
}

// tokens counts what was read from a cache, and what was written to one, as
// part of the prompt, which the API does not.
func (u messagesUsage) tokens() dag.Usage {
	n := func(p *int64) int64 { return *cmp.Or(p, new(int64)) }
	return dag.Usage{PromptTokens: n(u.Input) + n(u.Read) + n(u.Written), CompletionTokens: n(u.Output), CachedTokens: n(u.Read)}
}

func messagesEvent(a *answer, _ string, data []byte) {
	var in struct {
		Type    string   `json:"type"`
		Index   int      `json:"index"`
		Block   core.Raw `json:"content_block"`
		Message struct {
			Usage messagesUsage `json:"usage"`
		} `json:"message"`
		Delta struct {
			Text       string `json:"text"`
			Thinking   string `json:"thinking"`
			JSON       string `json:"partial_json"`
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage messagesUsage `json:"usage"`
	}
	if core.DecodeStored(data, &in) != nil {
		return
	}
	key := strconv.Itoa(in.Index)
	switch in.Type {
	case "message_start":
		a.spent(in.Message.Usage)
	case "content_block_start":
		var b messagesBlock
		if core.DecodeStored(in.Block, &b) == nil && (b.Type == "tool_use" || b.Type == "server_tool_use") {
			a.use(key, b.ID, b.Name, "") // its input comes in pieces
		} else {
			a.say("text", key, b.Text)
		}
	case "content_block_delta":
		a.say("text", key, in.Delta.Text)
		a.say("reasoning", key, in.Delta.Thinking)
		a.say("tool_use", key, in.Delta.JSON)
	case "message_delta":
		a.finish = in.Delta.StopReason
		a.spent(in.Usage)
	case "message_stop":
		a.done = true
	case "error":
		a.fail("model_error", errorText(data, "the model's API told of an error"))
	}
}

func messagesWhole(a *answer, data []byte) {
	var in struct {
		Content    core.Raw      `json:"content"`
		StopReason string        `json:"stop_reason"`
		Usage      messagesUsage `json:"usage"`
	}
	if core.DecodeStored(data, &in) != nil {
		return
	}
	for i, p := range content(in.Content, messagesPart) {
		if p.Type == "tool_use" {
			a.use(strconv.Itoa(i), p.ID, p.Name, string(p.Input))
		} else {
			a.say(p.Type, strconv.Itoa(i), p.Text+p.URL)
		}
	}
	a.finish = in.StopReason
	a.spent(in.Usage)
}

// spent takes the figures of usage, of which later events tell some anew.
func (a *answer) spent(u messagesUsage) {
	a.usage = u.over(a.usage)
	a.count(a.usage.tokens())
}
