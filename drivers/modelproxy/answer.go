package modelproxy

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// Bounds of an answer.
const (
	maxText   = 1 << 20 // bytes of all its parts
	beginning = 4 << 10 // bytes of a part that makes it more
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
	tokens  *dag.Usage
	usage   messagesUsage // so far, of the format that tells it in pieces
	finish  string
	fault   string
	message string
	broken  bool // it was cut off
	done    bool // nothing more is to come
	calls   bool // a call in it is whole: an agent may begin it

	secrets *strings.Replacer
	note    string // what stands for it when it was not understood
	missed  int64  // bytes of it that nothing was kept of
	blind   bool   // the last piece was among them
}

// partName tells a part from the others.
type partName struct {
	kind string // text, reasoning, tool_use, image_url
	key  string // by which the stream names it
}

// part is a part of an answer that grows.
type part struct {
	partName
	id, name string
	text     strings.Builder // of a tool_use its arguments, of an image its URL
	size     int             // bytes of all of it
	sum      hash.Hash       // of all of it, where the text is its beginning
}

// said is what a part says: its beginning, size and digest if it is too long.
func (p *part) said(secrets *strings.Replacer) string {
	text := p.text.String()
	if p.sum == nil {
		return text
	}
	text = blotted(text, secrets)
	return fmt.Sprintf("%s… (%d bytes, sha256 %x)", strings.ToValidUTF8(text[:min(len(text), beginning)], ""), p.size, p.sum.Sum(nil))
}

func newAnswer() *answer { return &answer{named: map[partName]*part{}} }

// part is the part of that kind and key, made if there is none; nil, to which
// nothing can be added, when there are too many.
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
	if p == nil {
		a.missed += int64(len(text))
		return
	}
	p.size += len(text)
	switch {
	case p.sum != nil:
	case a.size+len(text) <= maxText:
		a.size += len(text)
		p.text.WriteString(text)
		return
	default:
		a.cutOff(p, text)
	}
	_, _ = io.WriteString(p.sum, text)
}

// cutOff keeps no more than the beginning of a part that text makes too long,
// and a little after it: a credential may go across the cut.
func (a *answer) cutOff(p *part, text string) {
	all := p.text.String()
	p.sum = sha256.New()
	_, _ = io.WriteString(p.sum, all)
	a.size -= len(all)
	most := min(2*beginning, maxText-a.size)
	p.text.Reset()
	p.text.WriteString(all[:min(len(all), most)])
	p.text.WriteString(text[:min(len(text), most-p.text.Len())])
	a.size += p.text.Len()
}

// say adds to the text, or reasoning, that is named key.
func (a *answer) say(kind, key, text string) {
	if text != "" {
		a.add(a.part(kind, key), text)
	}
}

// use is a call of a tool that is told in one piece.
func (a *answer) use(key, id, name, args string) {
	p := a.part("tool_use", key)
	if p != nil {
		a.size -= p.text.Len()
		*p = part{partName: p.partName, id: core.ClipTo(id, maxName), name: core.ClipTo(name, maxName)}
	}
	a.add(p, args)
	a.calls = true
}

// miss counts a piece that was passed on and not understood.
func (a *answer) miss(size int) {
	a.missed += int64(size)
	a.blind = true
}

// silent reports whether nothing is known of it.
func (a *answer) silent() bool {
	return len(a.parts) == 0 && a.missed == 0 && a.tokens == nil && a.finish == "" && a.fault == ""
}

func (a *answer) fail(code, message string) {
	a.fault, a.message, a.done = core.ClipTo(code, 100), message, true
}

// refused takes an answer whose member error says that it is one.
func (a *answer) refused(member core.Raw, data []byte) bool {
	if len(member) == 0 || member.Kind() == 'n' {
		return false
	}
	a.fail("model_error", errorText(data, "the model's API told of an error"))
	return true
}

// count takes a figure of tokens; one that can't be is left out.
func (a *answer) count(t dag.Usage) {
	if all := []int64{t.PromptTokens, t.CompletionTokens, t.TotalTokens, t.CachedTokens}; slices.Min(all) < 0 || slices.Max(all) > maxCount {
		return
	}
	t.TotalTokens = cmp.Or(t.TotalTokens, t.PromptTokens+t.CompletionTokens)
	if t.TotalTokens > 0 {
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
	var parts, row []dag.ContentPart
	for _, p := range a.parts {
		one, text := dag.ContentPart{Type: p.kind}, p.said(a.secrets)
		switch p.kind {
		case "tool_use":
			one.ID, one.Name, one.Input = p.id, p.name, arguments(text)
		case "image_url":
			one.URL = text
		default:
			one.Text = text
		}
		if p.sum == nil {
			row = append(row, one)
			continue
		}
		parts = append(append(parts, join(row, "text", "reasoning")...), one) // its size is of it alone
		row = nil
	}
	parts = append(parts, join(row, "text", "reasoning")...)
	if a.note != "" {
		parts = append(parts, dag.ContentPart{Type: "text", Text: a.note})
	}
	if a.missed > 0 {
		parts = append(parts, dag.ContentPart{Type: "text", Text: fmt.Sprintf("(%d bytes more are not kept)", a.missed)})
	}
	m := dag.Spoken{Role: "assistant", Content: parts}
	return fleet.ModelCall{Messages: []dag.Spoken{m}, Tokens: a.tokens, Finish: core.ClipTo(a.finish, 100), Fault: a.fault}
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
		return core.ClipTo(strings.TrimSpace(status+" "+string(body)), 1024)
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
	return core.ClipTo(cmp.Or(e.Message, in.Message, e.Type, status), 1024)
}
