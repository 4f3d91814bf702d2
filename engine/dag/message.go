package dag

import "swarmdeck/engine/core"

// Message is one message of a conversation, as OpenAI's Responses API has it
// (model 4).
type Message struct {
	ID        string        `json:"id" is:"name"`
	Role      MessageRole   `json:"role" is:"word"`
	Content   []ContentPart `json:"content" is:"list"`
	CreatedAt Time          `json:"created_at" is:"time"`
}

// ContentPart is one part of a message: which fields it has follows from its
// Type.
type ContentPart struct {
	Type string `json:"type" is:"word text, image_url, tool_use, tool_result, reasoning"` // text, image_url, tool_use, tool_result, reasoning

	Text       string   `json:"text,omitempty" erase:"true"`  // text, reasoning
	URL        string   `json:"url,omitempty" erase:"true"`   // image_url
	Detail     string   `json:"detail,omitempty"`             // image_url
	ID         string   `json:"id,omitempty"`                 // tool_use
	Name       string   `json:"name,omitempty"`               // tool_use
	Input      core.Raw `json:"input,omitzero" erase:"true"`  // tool_use, an object
	ToolCallID string   `json:"tool_call_id,omitempty"`       // tool_result
	Output     core.Raw `json:"output,omitzero" erase:"true"` // tool_result
	IsError    *bool    `json:"is_error,omitzero"`            // tool_result
}

// partFields are the fields of each type of part.
func partFields(typ string) []string {
	switch typ {
	case "text", "reasoning":
		return []string{"text"}
	case "image_url":
		return []string{"url", "detail"}
	case "tool_use":
		return []string{"id", "name", "input"}
	case "tool_result":
		return []string{"tool_call_id", "output", "is_error"}
	}
	return nil
}

func (p *ContentPart) check(f *problems) {
	allowed := map[string]bool{}
	for _, name := range partFields(p.Type) {
		allowed[name] = true
	}
	for _, given := range []struct {
		name string
		set  bool
	}{
		{"text", p.Text != ""},
		{"url", p.URL != ""},
		{"detail", p.Detail != ""},
		{"id", p.ID != ""},
		{"name", p.Name != ""},
		{"input", len(p.Input) > 0},
		{"tool_call_id", p.ToolCallID != ""},
		{"output", len(p.Output) > 0},
		{"is_error", p.IsError != nil},
	} {
		if given.set && !allowed[given.name] && len(allowed) > 0 {
			f.add(given.name, "a part of type %s has none", p.Type)
		}
	}
	switch p.Type {
	case "image_url":
		if p.URL == "" { // a data: URL may be as long as the event allows
			f.add("url", "missing")
		}
	case "tool_use":
		f.name("id", p.ID)
		f.name("name", p.Name)
		f.object(true, "input", p.Input)
	case "tool_result":
		f.name("tool_call_id", p.ToolCallID)
		if len(p.Output) == 0 {
			f.add("output", "missing")
		}
	}
}
