package modelproxy

import (
	"cmp"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// OpenAI's responses.

type responsesItem struct {
	Type      string   `json:"type"`
	ID        string   `json:"id"`
	Role      string   `json:"role"`
	Content   core.Raw `json:"content"`
	CallID    string   `json:"call_id"`
	Name      string   `json:"name"`
	Arguments string   `json:"arguments"`
	Input     string   `json:"input"`
	Action    core.Raw `json:"action"`
	Output    core.Raw `json:"output"`
	Summary   core.Raw `json:"summary"`
}

// part is an item that is no message and no result.
func (i *responsesItem) part(raw core.Raw) dag.ContentPart {
	switch i.Type {
	case "function_call":
		return dag.ContentPart{Type: "tool_use", ID: i.CallID, Name: i.Name, Input: arguments(i.Arguments)}
	case "custom_tool_call":
		return dag.ContentPart{Type: "tool_use", ID: i.CallID, Name: i.Name, Input: core.MustEncode(map[string]string{"input": i.Input})}
	case "reasoning":
		return dag.ContentPart{Type: "reasoning", Text: plain(i.Summary) + plain(i.Content)}
	}
	if strings.HasSuffix(i.Type, "_call") {
		return dag.ContentPart{Type: "tool_use", ID: cmp.Or(i.CallID, i.ID), Name: strings.TrimSuffix(i.Type, "_call"), Input: arguments(string(compact(i.Action)))}
	}
	return dag.ContentPart{Type: "text", Text: string(raw)}
}

func askResponses(_ string, body []byte) (fleet.ModelCall, error) {
	var in struct {
		Model        string   `json:"model"`
		Instructions string   `json:"instructions"`
		Input        core.Raw `json:"input"`
		Tools        core.Raw `json:"tools"`
	}
	if err := core.DecodeStored(body, &in); err != nil {
		return fleet.ModelCall{}, err
	}
	var t talk
	if in.Instructions != "" {
		t.say("system", dag.ContentPart{Type: "text", Text: in.Instructions})
	}
	var items []core.Raw
	if in.Input.Kind() == '[' {
		if err := core.DecodeStored(in.Input, &items); err != nil {
			return fleet.ModelCall{}, err
		}
	} else {
		t.say("user", content(in.Input, textPart)...)
	}
	for _, raw := range items {
		var i responsesItem
		if core.DecodeStored(raw, &i) != nil {
			t.say("user", dag.ContentPart{Type: "text", Text: string(raw)})
			continue
		}
		switch {
		case i.Type == "message" || i.Type == "" && i.Role != "":
			t.say(roleOf(i.Role), content(i.Content, textPart)...)
		case strings.HasSuffix(i.Type, "_call_output"):
			t.say("tool", dag.ContentPart{Type: "tool_result", ToolCallID: i.CallID, Output: compact(i.Output)})
		case i.Type == "reasoning":
			if p := i.part(raw); p.Text != "" { // else it is sealed: nobody but its provider can read it
				t.say("assistant", p)
			}
		default:
			t.say("assistant", i.part(raw))
		}
	}
	return fleet.ModelCall{
		Name: in.Model, Messages: t.messages(), Tools: in.Tools, Params: settings(body, "model", "instructions", "input", "tools"),
	}, nil
}

type responsesAnswer struct {
	Status string     `json:"status"`
	Output []core.Raw `json:"output"`
	Usage  *struct {
		Input   int64 `json:"input_tokens"`
		Output  int64 `json:"output_tokens"`
		Total   int64 `json:"total_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func responsesEvent(a *answer, _ string, data []byte) {
	var in struct {
		Type     string   `json:"type"`
		Index    int      `json:"output_index"`
		Delta    core.Raw `json:"delta"`
		Item     core.Raw `json:"item"`
		Response core.Raw `json:"response"`
		Code     string   `json:"code"`
		Message  string   `json:"message"`
	}
	if core.DecodeStored(data, &in) != nil {
		return
	}
	key := strconv.Itoa(in.Index)
	switch in.Type {
	case "response.output_text.delta", "response.refusal.delta":
		a.say("text", key, plain(in.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.say("reasoning", key, plain(in.Delta))
	case "response.output_item.done":
		responsesItemDone(a, key, in.Item)
	case "response.completed", "response.incomplete", "response.failed", "response.done":
		responsesWhole(a, in.Response)
		a.done = true
	case "error":
		a.fail("model_error", core.ClipTo(strings.TrimSpace(in.Code+" "+in.Message), 1024))
	}
}

// responsesItemDone takes a whole item, in the place of its pieces.
func responsesItemDone(a *answer, key string, raw core.Raw) {
	var i responsesItem
	if core.DecodeStored(raw, &i) != nil {
		return
	}
	kind, text := "text", plain(i.Content)
	if i.Type != "message" {
		p := i.part(raw)
		if p.Type == "tool_use" {
			a.use(key, p.ID, p.Name, string(p.Input))
			return
		}
		kind, text = p.Type, p.Text
	}
	if p := a.part(kind, key); p == nil || p.size == 0 {
		a.add(p, text)
	}
}

func responsesWhole(a *answer, data []byte) {
	var in responsesAnswer
	if core.DecodeStored(data, &in) != nil {
		return
	}
	for n, raw := range in.Output {
		responsesItemDone(a, strconv.Itoa(n), raw)
	}
	a.finish = in.Status
	if in.Incomplete != nil && in.Incomplete.Reason != "" {
		a.finish = in.Incomplete.Reason
	}
	if u := in.Usage; u != nil {
		a.count(dag.Usage{PromptTokens: u.Input, CompletionTokens: u.Output, TotalTokens: u.Total, CachedTokens: u.Details.Cached})
	}
	if in.Error != nil && in.Error.Code+in.Error.Message != "" {
		a.fail("model_error", core.ClipTo(strings.TrimSpace(in.Error.Code+" "+in.Error.Message), 1024))
	}
}
