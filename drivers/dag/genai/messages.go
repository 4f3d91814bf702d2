package genai

import (
	"cmp"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// maxMessages bounds the messages of one span that are read.
const maxMessages = 4000

// message is one of gen_ai.input.messages or gen_ai.output.messages, and what is
// like it: content may be a text, or be parts.
type message struct {
	Role    string   `json:"role"`
	Parts   core.Raw `json:"parts"`
	Content core.Raw `json:"content"`
}

// part is one of a message. What is said of it has several names.
type part struct {
	Type      string   `json:"type"`
	Content   core.Raw `json:"content"`
	Text      core.Raw `json:"text"`
	URI       string   `json:"uri"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Arguments core.Raw `json:"arguments"`
	Response  core.Raw `json:"response"`
	Result    core.Raw `json:"result"`
}

// messages reads a list of messages; what is none is passed over.
func messages(v value) (all []dag.Spoken) {
	var list []message
	raw := v.raw()
	if raw.Kind() == '{' {
		raw = append(append(core.Raw("["), raw...), ']')
	}
	if raw.Kind() != '[' || core.DecodeStored(raw, &list) != nil {
		return nil
	}
	for _, m := range list[:min(len(list), maxMessages)] {
		body := m.Parts
		if len(body) == 0 {
			body = m.Content
		}
		if content := parts(body); len(content) > 0 {
			all = append(all, dag.Spoken{Role: role(m.Role), Content: content})
		}
	}
	return all
}

// instructions are the parts of a system message.
func instructions(v value) []dag.Spoken {
	if content := parts(v.raw()); len(content) > 0 {
		return []dag.Spoken{{Role: dag.RoleSystem, Content: content}}
	}
	return nil
}

// numbered reads messages that are attributes each: prefix N .role and .content.
func numbered(s *span, prefix string) (all []dag.Spoken) {
	for i := range maxMessages {
		at := fmt.Sprint(prefix, i)
		who, said := s.text(at+".role"), s.text(at+".content")
		if who == "" && said == "" {
			break
		}
		if said != "" {
			all = append(all, dag.Spoken{Role: role(cmp.Or(who, "assistant")), Content: []dag.ContentPart{{Type: "text", Text: said}}})
		}
	}
	return all
}

func role(name string) dag.MessageRole {
	switch name {
	case "system", "developer":
		return dag.RoleSystem
	case "assistant", "model":
		return dag.RoleAssistant
	case "tool":
		return dag.RoleTool
	}
	return dag.RoleUser
}

// parts reads what a message says: a text, or a list of parts.
func parts(raw core.Raw) (all []dag.ContentPart) {
	switch raw.Kind() {
	case '"':
		return []dag.ContentPart{{Type: "text", Text: textOf(raw)}}
	case '[':
	default:
		return nil
	}
	var list []core.Raw
	if core.DecodeStored(raw, &list) != nil {
		return nil
	}
	for _, one := range list[:min(len(list), maxMessages)] {
		var p part
		if core.DecodeStored(one, &p) != nil {
			all = append(all, dag.ContentPart{Type: "text", Text: textOf(one)})
			continue
		}
		all = append(all, p.read(one))
	}
	return all
}

func (p *part) read(whole core.Raw) dag.ContentPart {
	said := textOf(p.Content) + textOf(p.Text)
	switch p.Type {
	case "text":
		return dag.ContentPart{Type: "text", Text: said}
	case "reasoning", "thinking":
		return dag.ContentPart{Type: "reasoning", Text: said}
	case "uri":
		if p.URI != "" {
			return dag.ContentPart{Type: "image_url", URL: p.URI}
		}
	case "tool_call":
		args := p.Arguments
		if args.Kind() == '"' { // JSON in a text
			args = core.Raw(textOf(args))
		}
		return dag.ContentPart{Type: "tool_use", ID: p.ID, Name: p.Name, Input: args}
	case "tool_call_response":
		out := p.Response
		if len(out) == 0 {
			out = p.Result
		}
		if len(out) == 0 {
			out = core.Raw("null")
		}
		return dag.ContentPart{Type: "tool_result", ToolCallID: p.ID, Output: out}
	}
	return dag.ContentPart{Type: "text", Text: string(whole)}
}

// textOf is a JSON text, or other JSON as it is written.
func textOf(raw core.Raw) string {
	var text string
	if raw.Kind() == '"' && core.DecodeStored(raw, &text) == nil {
		return text
	}
	return string(raw)
}
