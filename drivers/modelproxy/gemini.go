package modelproxy

import (
	"cmp"
	"strconv"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// Gemini's generateContent.

type geminiPart struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"`
	Call    *struct {
		ID   string   `json:"id"`
		Name string   `json:"name"`
		Args core.Raw `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string   `json:"id"`
		Name     string   `json:"name"`
		Response core.Raw `json:"response"`
	} `json:"functionResponse"`
	Inline *struct {
		Kind string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
	File *struct {
		URI string `json:"fileUri"`
	} `json:"fileData"`
}

type geminiContent struct {
	Role  string     `json:"role"`
	Parts []core.Raw `json:"parts"`
}

// part reads a part; calls without an id, as most are, go by their name.
func (geminiContent) part(raw core.Raw) (dag.ContentPart, bool) {
	var p geminiPart
	if core.DecodeStored(raw, &p) != nil {
		return dag.ContentPart{}, false
	}
	switch {
	case p.Call != nil:
		return dag.ContentPart{Type: "tool_use", ID: cmp.Or(p.Call.ID, p.Call.Name), Name: p.Call.Name, Input: arguments(string(compact(p.Call.Args)))}, true
	case p.Response != nil:
		return dag.ContentPart{Type: "tool_result", ToolCallID: cmp.Or(p.Response.ID, p.Response.Name), Output: compact(p.Response.Response)}, true
	case p.Inline != nil:
		return dag.ContentPart{Type: "image_url", URL: "data:" + p.Inline.Kind + ";base64," + p.Inline.Data}, true
	case p.File != nil:
		return dag.ContentPart{Type: "image_url", URL: p.File.URI}, p.File.URI != ""
	case p.Thought:
		return dag.ContentPart{Type: "reasoning", Text: p.Text}, p.Text != ""
	case p.Text != "":
		return dag.ContentPart{Type: "text", Text: p.Text}, true
	case len(raw) > 2 && string(raw) != `{"text":""}`:
		return dag.ContentPart{Type: "text", Text: string(raw)}, true
	}
	return dag.ContentPart{}, false
}

// parts are those that say something.
func (c geminiContent) parts() (all []dag.ContentPart) {
	for _, raw := range c.Parts {
		if p, ok := c.part(raw); ok {
			all = append(all, p)
		}
	}
	return all
}

func askGemini(path string, body []byte) (fleet.ModelCall, error) {
	var in struct {
		System   geminiContent   `json:"systemInstruction"`
		Contents []geminiContent `json:"contents"`
		Tools    core.Raw        `json:"tools"`
	}
	if err := core.DecodeStored(body, &in); err != nil {
		return fleet.ModelCall{}, err
	}
	var t talk
	for i, c := range append([]geminiContent{in.System}, in.Contents...) {
		role := roleOf(c.Role)
		if i == 0 {
			role = "system"
		}
		t.say(role, c.parts()...)
	}
	return fleet.ModelCall{
		Name: modelIn(path), Messages: t.messages(), Tools: in.Tools, Params: settings(body, "model", "systemInstruction", "contents", "tools"),
	}, nil
}

func geminiEvent(a *answer, _ string, data []byte) { geminiWhole(a, data) }

// geminiWhole takes an answer, a piece of one in a stream, or the list of the
// pieces, which is how a stream comes that was not asked for as events.
func geminiWhole(a *answer, data []byte) {
	if core.Raw(data).Kind() == '[' {
		var list []core.Raw
		if core.DecodeStored(data, &list) == nil {
			for i, one := range list {
				if i < maxPieces {
					geminiWhole(a, one)
				} else {
					a.miss(len(one))
				}
			}
		}
		return
	}
	var in struct {
		Candidates []struct {
			Index   int           `json:"index"`
			Content geminiContent `json:"content"`
			Finish  string        `json:"finishReason"`
		} `json:"candidates"`
		Feedback struct {
			Blocked string `json:"blockReason"`
		} `json:"promptFeedback"`
		Usage *struct {
			Prompt   int64 `json:"promptTokenCount"`
			Tools    int64 `json:"toolUsePromptTokenCount"`
			Answer   int64 `json:"candidatesTokenCount"`
			Thoughts int64 `json:"thoughtsTokenCount"`
			Total    int64 `json:"totalTokenCount"`
			Cached   int64 `json:"cachedContentTokenCount"`
		} `json:"usageMetadata"`
		Error core.Raw `json:"error"`
	}
	if core.DecodeStored(data, &in) != nil {
		return
	}
	if a.refused(in.Error, data) {
		return
	}
	for _, c := range in.Candidates {
		if c.Index != 0 {
			continue
		}
		for _, p := range c.Content.parts() {
			if p.Type == "tool_use" {
				a.use(strconv.Itoa(len(a.parts)), p.ID, p.Name, string(p.Input))
				continue
			}
			key := ""
			if n := len(a.parts); n > 0 && (a.parts[n-1].kind == "tool_use" || a.parts[n-1].kind == "image_url") {
				key = strconv.Itoa(n) // what comes after a call or an image is another part
			} else if n > 0 {
				key = a.parts[n-1].key
			}
			a.say(p.Type, key, p.Text+p.URL)
		}
		if c.Finish != "" {
			a.finish = c.Finish
		}
	}
	if in.Feedback.Blocked != "" {
		a.finish = "blocked: " + in.Feedback.Blocked
	}
	if u := in.Usage; u != nil {
		a.count(dag.Usage{PromptTokens: u.Prompt + u.Tools, CompletionTokens: u.Answer + u.Thoughts, TotalTokens: u.Total, CachedTokens: u.Cached})
	}
}
