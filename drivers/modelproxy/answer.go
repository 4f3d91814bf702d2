package modelproxy

import (
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Bounds of an answer.
const (
	maxText  = 1 << 20 // bytes of all its parts
	maxParts = 1000
	maxName  = 256     // bytes of a tool's name, and of a call's id
	maxCount = 1 << 40 // tokens; more is no number of them
)

// answer is what a model answered so far.
type answer struct {
	parts   []*part
	size    int
	tokens  *fleet.ModelTokens
	usage   messagesUsage // so far, of the format that tells it in pieces
	finish  string
	fault   string
	message string
	broken  bool // it was cut off
	done    bool // nothing more is to come
}

// part is a part of an answer that grows.
type part struct {
	kind     string // text, reasoning, tool_use
	key      string // by which the stream names it
	id, name string
	text     strings.Builder // of a tool_use its arguments
}

func newAnswer() *answer { return &answer{} }

// part is the part of that kind and key, made if there is none; nil when there
// are too many.
func (a *answer) part(kind, key string) *part {
	for i := len(a.parts) - 1; i >= 0; i-- {
		if p := a.parts[i]; p.kind == kind && p.key == key {
			return p
		}
	}
	if len(a.parts) >= maxParts {
		return nil
	}
	p := &part{kind: kind, key: key}
	a.parts = append(a.parts, p)
	return p
}

// add lets a part grow.
func (a *answer) add(p *part, text string) {
	if p == nil || a.size+len(text) > maxText {
		return
	}
	a.size += len(text)
	p.text.WriteString(text)
}

// say adds to the text, or reasoning, that is named key.
func (a *answer) say(kind, key, text string) {
	if text != "" {
		a.add(a.part(kind, key), text)
	}
}

// use is a call of a tool that is told in one piece.
func (a *answer) use(key, id, name, args string) {
	if p := a.part("tool_use", key); p != nil {
		p.id, p.name = clip(id, maxName), clip(name, maxName)
		a.size -= p.text.Len()
		p.text.Reset()
		a.add(p, args)
	}
}

func (a *answer) fail(code, message string) {
	a.fault, a.message, a.done = clip(code, 100), message, true
}

func (a *answer) cut(code, message string) {
	a.fail(code, message)
	a.broken = true
}

// count takes a figure of tokens; one that can't be is left out.
func (a *answer) count(t fleet.ModelTokens) {
	for _, n := range []int64{t.Prompt, t.Completion, t.Total, t.Cached} {
		if n < 0 || n > maxCount {
			return
		}
	}
	if t.Total == 0 {
		t.Total = t.Prompt + t.Completion
	}
	if t.Total > 0 {
		a.tokens = &t
	}
}

func (a *answer) status() string {
	switch {
	case a.broken:
		return "interrupted"
	case a.fault != "":
		return "error"
	}
	return "ok"
}

func (a *answer) call() fleet.ModelCall {
	m := fleet.ModelMessage{Role: "assistant"}
	for _, p := range a.parts {
		text := p.text.String()
		if p.kind == "tool_use" {
			m.Parts = append(m.Parts, fleet.ModelPart{Type: p.kind, ID: p.id, Name: p.name, Input: arguments(text)})
			continue
		}
		if n := len(m.Parts); n > 0 && m.Parts[n-1].Type == p.kind {
			m.Parts[n-1].Text += text
			continue
		}
		m.Parts = append(m.Parts, fleet.ModelPart{Type: p.kind, Text: text})
	}
	return fleet.ModelCall{Messages: []fleet.ModelMessage{m}, Tokens: a.tokens, Finish: clip(a.finish, 100), Fault: a.fault}
}

// arguments are a call's arguments as an object: what is none is kept as text.
func arguments(text string) core.Raw {
	if text = strings.TrimSpace(text); text == "" {
		return core.Raw("{}")
	}
	if v := core.Raw(text); v.Kind() == '{' && v.IsValid() {
		return v
	}
	return core.MustEncode(map[string]string{"text": text})
}

// errorText is what an answer with an error says, in any of the forms.
func errorText(body []byte, status string) string {
	var in struct {
		Error   core.Raw `json:"error"`
		Message string   `json:"message"`
	}
	data := core.Raw(body)
	if data.Kind() == '[' { // Gemini's streams
		var list []core.Raw
		if core.DecodeStored(data, &list) == nil && len(list) > 0 {
			data = list[0]
		}
	}
	if core.DecodeStored(data, &in) != nil {
		return clip(strings.TrimSpace(status+" "+string(body)), 1024)
	}
	var e struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	if in.Error.Kind() == '"' {
		_ = core.DecodeStored(in.Error, &e.Message)
	} else if len(in.Error) > 0 {
		_ = core.DecodeStored(in.Error, &e)
	}
	for _, text := range []string{e.Message, in.Message, e.Type} {
		if text != "" {
			return clip(text, 1024)
		}
	}
	return status
}
