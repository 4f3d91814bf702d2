package dag

import "swarmdeck/engine/core"

// ModelRequest tells what a model was asked.
type ModelRequest struct {
	Model     string     `json:"model" is:"name"`
	Params    core.Raw   `json:"params" is:"object" erase:"true"` // an object
	InputRefs []InputRef `json:"input_refs" is:"list"`
	ToolsSpec core.Raw   `json:"tools_spec,omitzero" erase:"true"`
}

func (*ModelRequest) Kind() Kind { return KindModelRequest }

func (b *ModelRequest) check(f *problems) {
	if k := b.ToolsSpec.Kind(); len(b.ToolsSpec) > 0 && k != '{' && k != '[' {
		f.add("tools_spec", "want an object, or a list of tools") // models are given either
	}
}

// ModelResponse tells what a model answered.
type ModelResponse struct {
	RequestID    string  `json:"request_id" is:"name"` // the request's event_id, or its provider's id
	OutputRef    string  `json:"output_ref" is:"name"` // of a Message
	Usage        *Usage  `json:"usage,omitzero"`
	FinishReason string  `json:"finish_reason,omitempty" is:"id"`
	ReasoningRef string  `json:"reasoning_ref,omitempty" is:"id"` // of a Message
	StreamRef    *ExtRef `json:"stream_ref,omitzero"`

	Status     CallStatus `json:"status,omitempty" is:"word?"` // how the request ended; "" is ok
	Error      *Fault     `json:"error,omitzero"`
	DurationMS int64      `json:"duration_ms,omitzero" is:"count"` // from the request to the answer's end
}

// Usage counts tokens.
type Usage struct {
	PromptTokens     int64 `json:"prompt_tokens" is:"count"` // the cached ones too
	CompletionTokens int64 `json:"completion_tokens" is:"count"`
	TotalTokens      int64 `json:"total_tokens" is:"count"`
	CachedTokens     int64 `json:"cached_tokens,omitzero" is:"count"` // of the prompt's, read from a cache
}

func (*ModelResponse) Kind() Kind { return KindModelResponse }

func (b *ModelResponse) check(f *problems) { b.Error.fits(f, b.Status == CallOK || b.Status == "") }

// HistoryAppend tells that a message became part of a conversation.
type HistoryAppend struct {
	List       string `json:"list" is:"name"` // main, …
	MessageRef string `json:"message_ref" is:"name"`
}

func (*HistoryAppend) Kind() Kind { return KindHistoryAppend }

// ToolCall tells that a tool was called.
type ToolCall struct {
	Server      string   `json:"server" is:"name"`
	Tool        string   `json:"tool" is:"name"`
	CallID      string   `json:"call_id" is:"name"`
	Args        core.Raw `json:"args" is:"object" erase:"true"` // an object
	RequestedBy EventRef `json:"requested_by"`                  // usually a model_response
}

func (*ToolCall) Kind() Kind { return KindToolCall }

// ToolResult tells what came of a call.
type ToolResult struct {
	CallID string     `json:"call_id" is:"name"`
	Status CallStatus `json:"status" is:"word"`
	Result core.Raw   `json:"result" is:"object" erase:"true"` // an object
	Error  *Fault     `json:"error,omitzero"`
}

func (*ToolResult) Kind() Kind { return KindToolResult }

func (b *ToolResult) check(f *problems) { b.Error.fits(f, b.Status == CallOK) }

// MCPResourceUpdated tells that a server announced a changed resource.
type MCPResourceUpdated struct {
	Server  string `json:"server" is:"name"`
	URI     string `json:"uri" is:"uri"`
	ETag    string `json:"etag,omitempty" is:"id"`
	Hash    string `json:"hash,omitempty" is:"id"`
	Summary string `json:"summary,omitempty" erase:"true"`
}

func (*MCPResourceUpdated) Kind() Kind { return KindMCPResourceUpdated }

// MCPListChanged tells that a server announced other resources.
type MCPListChanged struct {
	Server string `json:"server" is:"name"`
}

func (*MCPListChanged) Kind() Kind { return KindMCPListChanged }

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
