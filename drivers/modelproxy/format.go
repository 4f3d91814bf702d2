package modelproxy

import (
	"bytes"
	"net/url"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
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
	return clip(name, 200)
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
func content(v core.Raw, read func(core.Raw) (fleet.ModelPart, bool)) []fleet.ModelPart {
	switch v.Kind() {
	case '"':
		var text string
		if core.DecodeStored(v, &text) == nil {
			return []fleet.ModelPart{{Type: "text", Text: text}}
		}
	case '[':
		var list []core.Raw
		if core.DecodeStored(v, &list) != nil {
			break
		}
		var all []fleet.ModelPart
		for _, item := range list {
			if p, ok := read(item); ok {
				all = append(all, p)
			}
		}
		return all
	case 'n', 0:
		return nil
	}
	return []fleet.ModelPart{{Type: "text", Text: string(v)}}
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
func textPart(v core.Raw) (fleet.ModelPart, bool) {
	var in struct {
		Type     string   `json:"type"`
		Text     string   `json:"text"`
		Refusal  string   `json:"refusal"`
		ImageURL core.Raw `json:"image_url"`
	}
	if core.DecodeStored(v, &in) != nil {
		return fleet.ModelPart{}, false
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
		return fleet.ModelPart{Type: "image_url", URL: link.URL}, link.URL != ""
	case in.Text != "":
		return fleet.ModelPart{Type: "text", Text: in.Text}, true
	case in.Refusal != "":
		return fleet.ModelPart{Type: "text", Text: in.Refusal}, true
	case in.Type == "text" || in.Type == "input_text" || in.Type == "output_text":
		return fleet.ModelPart{}, false // an empty one
	}
	return fleet.ModelPart{Type: "text", Text: string(v)}, true // sounds, files and what else there is
}

// talk gathers a conversation. What one side says in a row is one message, and
// texts in a row are one text: APIs cut them differently on the way in and out.
type talk struct{ all []fleet.ModelMessage }

func (t *talk) say(role string, parts ...fleet.ModelPart) {
	if len(parts) == 0 {
		return
	}
	n := len(t.all)
	if role != "assistant" || n == 0 || t.all[n-1].Role != role {
		t.all = append(t.all, fleet.ModelMessage{Role: role})
		n++
	}
	m := &t.all[n-1]
	for _, p := range parts {
		if k := len(m.Parts); role == "assistant" && p.Type == "text" && k > 0 && m.Parts[k-1].Type == "text" {
			m.Parts[k-1].Text += p.Text
			continue
		}
		m.Parts = append(m.Parts, p)
	}
}

// roleOf is a role in the record's words.
func roleOf(role string) string {
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

// items is how many values JSON has at any depth, counted until there are too
// many, or it is none.
func items(data []byte) int {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for n := 0; ; n++ {
		if dec.StackDepth() > 0 && nameNext(dec) {
			if _, err := dec.ReadToken(); err != nil {
				return n
			}
		}
		t, err := dec.ReadToken()
		if err != nil || n > maxItems {
			return n
		}
		if t.Kind() == '}' || t.Kind() == ']' {
			n--
		}
	}
}
