package modelproxy

import (
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// Chat completions, as OpenAI has them and many others too.

type chatCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    core.Raw   `json:"content"`
	Refusal    string     `json:"refusal"`
	Reasoning  string     `json:"reasoning_content"`
	ToolCalls  []chatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

func askChat(_ string, body []byte) (fleet.ModelCall, error) {
	var in struct {
		Model    string        `json:"model"`
		Messages []chatMessage `json:"messages"`
		Tools    core.Raw      `json:"tools"`
	}
	if err := core.DecodeStored(body, &in); err != nil {
		return fleet.ModelCall{}, err
	}
	var t talk
	for _, m := range in.Messages {
		role := roleOf(m.Role)
		if role == "tool" {
			t.say(role, dag.ContentPart{Type: "tool_result", ToolCallID: m.ToolCallID, Output: quoted(plain(m.Content))})
			continue
		}
		parts := content(m.Content, textPart)
		for _, c := range m.ToolCalls {
			parts = append(parts, dag.ContentPart{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: arguments(c.Function.Arguments)})
		}
		t.say(role, parts...)
	}
	return fleet.ModelCall{Name: in.Model, Messages: t.messages(), Tools: in.Tools, Params: settings(body, "model", "messages", "tools")}, nil
}

type chatAnswer struct {
	Choices []struct {
		Index   int         `json:"index"`
		Delta   chatMessage `json:"delta"`
		Message chatMessage `json:"message"`
		Finish  string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error core.Raw `json:"error"`
}

func chatEvent(a *answer, _ string, data []byte) {
	if strings.TrimSpace(string(data)) == "[DONE]" {
		a.done = true
		return
	}
	chatWhole(a, data)
}

func chatWhole(a *answer, data []byte) {
	var in chatAnswer
	if core.DecodeStored(data, &in) != nil {
		return
	}
	if a.refused(in.Error, data) {
		return
	}
	for _, c := range in.Choices {
		if c.Index != 0 {
			continue // others are other answers to the same
		}
		for _, m := range []chatMessage{c.Delta, c.Message} {
			a.say("reasoning", "", m.Reasoning)
			a.say("text", "", plain(m.Content)+m.Refusal)
			for i, call := range m.ToolCalls {
				key := strconv.Itoa(max(call.Index, i))
				p := a.part("tool_use", key)
				if p != nil && call.ID != "" {
					p.id = core.ClipTo(call.ID, maxName)
				}
				if p != nil && len(p.name) < maxName {
					p.name = core.ClipTo(p.name+call.Function.Name, maxName)
				}
				a.add(p, call.Function.Arguments)
			}
		}
		if c.Finish != "" {
			a.finish = c.Finish
		}
	}
	if u := in.Usage; u != nil {
		a.count(dag.Usage{PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Total, CachedTokens: u.Details.Cached})
	}
}
