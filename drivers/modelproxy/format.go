package modelproxy

import (
	"bytes"
	"net/url"
	"path"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// format is how one kind of API writes requests and answers.
type format struct {
	ask   func(path string, body []byte) (fleet.ModelCall, error)
	event func(a *answer, name string, data []byte) // of a stream
	whole func(a *answer, data []byte)              // an answer that is none
}

// served is what an API that it is sent to takes an escaped path for.
func served(escaped string) string {
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		plain = escaped
	}
	return path.Clean(plain)
}

// formatOf tells the format by the path that is served.
func formatOf(path string) (format, bool) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return format{askChat, chatEvent, chatWhole}, true
	case strings.HasSuffix(path, "/responses"):
		return format{askResponses, responsesEvent, responsesWhole}, true
	case strings.HasSuffix(path, "/messages"):
		return format{askMessages, messagesEvent, messagesWhole}, true
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return format{askGemini, geminiEvent, geminiWhole}, true
	}
	return format{}, false
}

// modelIn is the model that a path names, as generateContent's does.
func modelIn(path string) string {
	_, name, ok := strings.Cut(path, "/models/")
	if !ok {
		return "unknown"
	}
	name, _, _ = strings.Cut(name, ":")
	return core.ClipTo(name, 200)
}

// settings are the members of a request that no other name covers.
func settings(body []byte, but ...string) core.Raw {
	var all map[string]core.Raw
	if core.DecodeStored(body, &all) != nil {
		return nil
	}
	for _, name := range but {
		delete(all, name)
	}
	data, err := core.Encode(all)
	if err != nil {
		return nil
	}
	return data
}

// content is a text, or a list of parts.
func content(v core.Raw, read func(core.Raw) (dag.ContentPart, bool)) []dag.ContentPart {
	switch v.Kind() {
	case '"':
		var text string
		if core.DecodeStored(v, &text) == nil {
			return []dag.ContentPart{{Type: "text", Text: text}}
		}
	case '[':
		var list []core.Raw
		if core.DecodeStored(v, &list) != nil {
			break
		}
		var all []dag.ContentPart
		for _, item := range list {
			if p, ok := read(item); ok {
				all = append(all, p)
			}
		}
		return all
	case 'n', 0:
		return nil
	}
	return []dag.ContentPart{{Type: "text", Text: string(v)}}
}

// plain is a content's text alone.
func plain(v core.Raw) string {
	var b strings.Builder
	for _, p := range content(v, textPart) {
		b.WriteString(p.Text)
	}
	return b.String()
}

// textPart reads a part that has a text, whatever its type is called.
func textPart(v core.Raw) (dag.ContentPart, bool) {
	var in struct {
		Type     string   `json:"type"`
		Text     string   `json:"text"`
		Refusal  string   `json:"refusal"`
		ImageURL core.Raw `json:"image_url"`
	}
	if core.DecodeStored(v, &in) != nil {
		return dag.ContentPart{}, false
	}
	switch {
	case len(in.ImageURL) > 0:
		link := struct {
			URL string `json:"url"`
		}{}
		if in.ImageURL.Kind() == '"' {
			_ = core.DecodeStored(in.ImageURL, &link.URL)
		} else {
			_ = core.DecodeStored(in.ImageURL, &link)
		}
		return dag.ContentPart{Type: "image_url", URL: link.URL}, link.URL != ""
	case in.Text != "":
		return dag.ContentPart{Type: "text", Text: in.Text}, true
	case in.Refusal != "":
		return dag.ContentPart{Type: "text", Text: in.Refusal}, true
	case in.Type == "text" || in.Type == "input_text" || in.Type == "output_text":
		return dag.ContentPart{}, false // an empty one
	}
	return dag.ContentPart{Type: "text", Text: string(v)}, true // sounds, files and what else there is
}

// talk gathers a conversation. What one side says in a row is one message, and
// texts in a row are one text: APIs cut them differently on the way in and out.
// Results of tools, which a user's message may bring along, are a message of theirs
// before it.
type talk struct{ all []dag.Spoken }

func (t *talk) say(role dag.MessageRole, parts ...dag.ContentPart) {
	isResult := func(p dag.ContentPart) bool { return p.Type == "tool_result" }
	if role != "tool" {
		t.say("tool", core.Where(parts, isResult)...)
		parts = slices.DeleteFunc(parts, isResult)
	}
	if len(parts) == 0 {
		return
	}
	n := len(t.all)
	if role != "assistant" || n == 0 || t.all[n-1].Role != role {
		t.all = append(t.all, dag.Spoken{Role: role})
		n++
	}
	t.all[n-1].Content = append(t.all[n-1].Content, parts...)
}

func (t *talk) messages() []dag.Spoken {
	for i := range t.all {
		if m := &t.all[i]; m.Role == "assistant" {
			m.Content = join(m.Content, "text")
		}
	}
	return t.all
}

// join makes one part of those of these kinds that follow another of their kind.
func join(parts []dag.ContentPart, kinds ...string) []dag.ContentPart {
	var out []dag.ContentPart
	for n := 0; len(parts) > 0; parts = parts[n:] {
		one := parts[0]
		n = 1
		if slices.Contains(kinds, one.Type) {
			for n < len(parts) && parts[n].Type == one.Type {
				n++
			}
		}
		if n > 1 {
			var b strings.Builder
			for _, p := range parts[:n] {
				b.WriteString(p.Text)
			}
			one.Text = b.String()
		}
		out = append(out, one)
	}
	return out
}

// roleOf is a role in the record's words.
func roleOf(role string) dag.MessageRole {
	switch role {
	case "system", "developer":
		return "system"
	case "assistant", "model":
		return "assistant"
	case "tool", "function":
		return "tool"
	}
	return "user"
}

// quoted is a text as JSON.
func quoted(text string) core.Raw { return core.MustEncode(strings.ToValidUTF8(text, "\ufffd")) }

// compact is JSON without white space; a text when it is none.
func compact(v core.Raw) core.Raw {
	out := core.Raw(bytes.Clone(v))
	if len(out) == 0 {
		return core.Raw("null")
	}
	if out.Compact() != nil {
		return quoted(string(v))
	}
	return out
}
