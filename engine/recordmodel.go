package engine

import (
	"slices"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// modelAsk is what a runtime saw of a request to a model, for the record.
func modelAsk(e fleet.Event) dag.ModelAsk {
	if e.Model == nil {
		return dag.ModelAsk{}
	}
	a := dag.ModelAsk{Model: e.Model.Name, Params: e.Model.Params, Tools: e.Model.Tools}
	for _, m := range e.Model.Messages {
		role := dag.MessageRole(m.Role)
		if !slices.Contains([]dag.MessageRole{dag.RoleSystem, dag.RoleUser, dag.RoleAssistant, dag.RoleTool}, role) {
			role = dag.RoleUser
		}
		a.Messages = append(a.Messages, dag.Spoken{Role: role, Content: parts(m)})
	}
	return a
}

func modelAnswer(e fleet.Event) dag.ModelAnswer {
	a := dag.ModelAnswer{Status: dag.CallStatus(e.Status)}
	switch a.Status {
	case dag.CallOK, dag.CallInterrupted:
	default:
		a.Status = dag.CallError
	}
	c := e.Model
	if c == nil {
		return a
	}
	a.FinishReason = c.Finish
	if a.Status != dag.CallOK {
		a.Error = &dag.Fault{Code: c.Fault, Message: e.Error}
		if a.Error.Code == "" {
			a.Error.Code = string(a.Status)
		}
	}
	if c.Gone {
		a.Reason = dag.ReasonCanceled
	}
	for _, m := range c.Messages {
		a.Content = append(a.Content, parts(m)...)
	}
	if t := c.Tokens; t != nil {
		a.Usage = &dag.Usage{PromptTokens: t.Prompt, CompletionTokens: t.Completion, TotalTokens: t.Total, CachedTokens: t.Cached}
	}
	return a
}

func parts(m fleet.ModelMessage) []dag.ContentPart {
	out := make([]dag.ContentPart, 0, len(m.Parts))
	for _, p := range m.Parts {
		switch p.Type {
		case "image_url":
			out = append(out, dag.ContentPart{Type: p.Type, URL: p.URL})
		case "tool_use":
			out = append(out, dag.ContentPart{Type: p.Type, ID: p.ID, Name: p.Name, Input: p.Input})
		case "tool_result":
			part := dag.ContentPart{Type: p.Type, ToolCallID: p.ID, Output: p.Output}
			if p.IsError {
				part.IsError = &p.IsError
			}
			out = append(out, part)
		case "reasoning":
			out = append(out, dag.ContentPart{Type: p.Type, Text: p.Text})
		default:
			out = append(out, dag.ContentPart{Type: "text", Text: p.Text})
		}
	}
	return out
}
