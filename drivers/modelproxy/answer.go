package modelproxy

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Bounds of an answer.
const (
	maxText   = 1 << 20 // bytes of all its parts
	maxParts  = 1000
	maxPieces = 10_000  // of one that comes as a list of them
	maxName   = 256     // bytes of a tool's name, and of a call's id
	maxCount  = 1 << 40 // tokens; more is no number of them
)

// answer is what a model answered so far.
type answer struct {
	parts   []*part
	named   map[partName]*part // the same
	size    int
	tokens  *fleet.ModelTokens
	usage   messagesUsage // so far, of the format that tells it in pieces
	finish  string
	fault   string
	message string
	broken  bool // it was cut off
	done    bool // nothing more is to come

	note   string // what stands for it when it was not understood
	missed int64  // bytes of pieces that were not
}

// partName tells a part from the others.
type partName struct {
	kind string // text, reasoning, tool_use
	key  string // by which the stream names it
}

// part is a part of an answer that grows.
type part struct {
	partName
	id, name string
	text     strings.Builder // of a tool_use its arguments
}

func newAnswer() *answer { return &answer{named: map[partName]*part{}} }

// part is the part of that kind and key, made if there is none; nil when there
// are too many.
func (a *answer) part(kind, key string) *part {
	name := partName{kind, key}
	p := a.named[name]
	if p == nil && len(a.parts) < maxParts {
		p = &part{partName: name}
		a.parts, a.named[name] = append(a.parts, p), p
	}
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

// miss counts a piece that was passed on and not understood.
func (a *answer) miss(size int) { a.missed += int64(size) }

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
	var parts []fleet.ModelPart
	for _, p := range a.parts {
		one := fleet.ModelPart{Type: p.kind}
		if text := p.text.String(); p.kind == "tool_use" {
			one.ID, one.Name, one.Input = p.id, p.name, arguments(text)
		} else {
			one.Text = text
		}
		parts = append(parts, one)
	}
	parts = join(parts, "text", "reasoning")
	if a.note != "" {
		parts = append(parts, fleet.ModelPart{Type: "text", Text: a.note})
	}
	if a.missed > 0 {
		note := fmt.Sprintf("(%d bytes in pieces that were not understood)", a.missed)
		parts = append(parts, fleet.ModelPart{Type: "text", Text: note})
	}
	m := fleet.ModelMessage{Role: "assistant", Parts: parts}
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
