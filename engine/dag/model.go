package dag

import (
	"fmt"

	"swarmdeck/engine/core"
)

// ModelRequest tells what a model was asked.
type ModelRequest struct {
	Model     string     `json:"model"`
	Params    core.Raw   `json:"params"` // an object
	InputRefs []InputRef `json:"input_refs"`
	ToolsSpec core.Raw   `json:"tools_spec,omitzero"`
}

func (*ModelRequest) Kind() Kind { return KindModelRequest }

func (b *ModelRequest) check(f *problems) {
	f.name("model", b.Model)
	f.object("params", b.Params)
	if b.InputRefs == nil {
		f.add("input_refs", "missing; a list, which may be empty")
	}
	if f.count("input_refs", len(b.InputRefs), maxRefs) {
		for i, r := range b.InputRefs {
			r.check(f, fmt.Sprintf("input_refs[%d]", i))
		}
	}
	if k := b.ToolsSpec.Kind(); len(b.ToolsSpec) > 0 && k != '{' && k != '[' {
		f.add("tools_spec", "want an object, or a list of tools") // models are given either
	}
}

// ModelResponse tells what a model answered.
type ModelResponse struct {
	RequestID    string  `json:"request_id"` // the request's event_id, or its provider's id
	OutputRef    string  `json:"output_ref"` // of a Message
	Usage        *Usage  `json:"usage,omitzero"`
	FinishReason string  `json:"finish_reason,omitempty"`
	ReasoningRef string  `json:"reasoning_ref,omitempty"` // of a Message
	StreamRef    *ExtRef `json:"stream_ref,omitzero"`

	Status     CallStatus `json:"status,omitempty"` // how the request ended; "" is ok
	Error      *Fault     `json:"error,omitzero"`
	DurationMS int64      `json:"duration_ms,omitzero"` // from the request to the answer's end
}

// Usage counts tokens.
type Usage struct {
	PromptTokens     int64 `json:"prompt_tokens"` // the cached ones too
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	CachedTokens     int64 `json:"cached_tokens,omitzero"` // of the prompt's, read from a cache
}

func (*ModelResponse) Kind() Kind { return KindModelResponse }

func (b *ModelResponse) check(f *problems) {
	f.name("request_id", b.RequestID)
	f.name("output_ref", b.OutputRef)
	f.optional("finish_reason", b.FinishReason)
	f.optional("reasoning_ref", b.ReasoningRef)
	b.StreamRef.check(f, "stream_ref")
	maybe(f, "status", b.Status, callStatuses()...)
	b.Error.check(f, b.Status == CallOK || b.Status == "")
	f.atLeast0("duration_ms", b.DurationMS)
	if u := b.Usage; u != nil {
		f.atLeast0("usage.prompt_tokens", u.PromptTokens)
		f.atLeast0("usage.completion_tokens", u.CompletionTokens)
		f.atLeast0("usage.total_tokens", u.TotalTokens)
		f.atLeast0("usage.cached_tokens", u.CachedTokens)
	}
}

// HistoryAppend tells that a message became part of a conversation.
type HistoryAppend struct {
	List       string `json:"list"` // main, …
	MessageRef string `json:"message_ref"`
}

func (*HistoryAppend) Kind() Kind { return KindHistoryAppend }

func (b *HistoryAppend) check(f *problems) {
	f.name("list", b.List)
	f.name("message_ref", b.MessageRef)
}

// ToolCall tells that a tool was called.
type ToolCall struct {
	Server      string   `json:"server"`
	Tool        string   `json:"tool"`
	CallID      string   `json:"call_id"`
	Args        core.Raw `json:"args"`         // an object
	RequestedBy EventRef `json:"requested_by"` // usually a model_response
}

func (*ToolCall) Kind() Kind { return KindToolCall }

func (b *ToolCall) check(f *problems) {
	f.name("server", b.Server)
	f.name("tool", b.Tool)
	f.name("call_id", b.CallID)
	f.object("args", b.Args)
	b.RequestedBy.check(f, "requested_by")
}

// ToolResult tells what came of a call.
type ToolResult struct {
	CallID string     `json:"call_id"`
	Status CallStatus `json:"status"`
	Result core.Raw   `json:"result"` // an object
	Error  *Fault     `json:"error,omitzero"`
}

func (*ToolResult) Kind() Kind { return KindToolResult }

func (b *ToolResult) check(f *problems) {
	f.name("call_id", b.CallID)
	oneOf(f, "status", b.Status, callStatuses()...)
	f.object("result", b.Result)
	b.Error.check(f, b.Status == CallOK)
}

// MCPResourceUpdated tells that a server announced a changed resource.
type MCPResourceUpdated struct {
	Server  string `json:"server"`
	URI     string `json:"uri"`
	ETag    string `json:"etag,omitempty"`
	Hash    string `json:"hash,omitempty"`
	Summary string `json:"summary,omitempty"`
}

func (*MCPResourceUpdated) Kind() Kind { return KindMCPResourceUpdated }

func (b *MCPResourceUpdated) check(f *problems) {
	f.name("server", b.Server)
	f.text("uri", b.URI, maxURI)
	if b.URI == "" {
		f.add("uri", "missing")
	}
	f.optional("etag", b.ETag)
	f.optional("hash", b.Hash)
}

// MCPListChanged tells that a server announced other resources.
type MCPListChanged struct {
	Server string `json:"server"`
}

func (*MCPListChanged) Kind() Kind { return KindMCPListChanged }

func (b *MCPListChanged) check(f *problems) { f.name("server", b.Server) }
