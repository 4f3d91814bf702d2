package dag

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// Bounds of what a recorder puts into one event, so that the event as a whole
// keeps its own. Each counts bytes, of which JSON may make twice as many.
const (
	maxValue    = MaxEvent / 4 // of a call's arguments, of a result, of what was said
	maxReason   = 64 << 10     // of why something is so
	excerptSize = 4 << 10      // is left of a part that is too long

	maxNested = core.MaxDepth - 8 // levels of a value; the event has more around it
)

// fit makes an id out of a text from outside.
func fit(s string) string {
	s = strings.Map(func(c rune) rune {
		if hidden(c) {
			return '\ufffd'
		}
		return c
	}, strings.ToValidUTF8(s, "\ufffd"))
	if len(s) > maxID {
		s = strings.ToValidUTF8(s[:maxID], "")
	}
	return s
}

// fitFault is what went wrong, as the record can carry it; nothing did when
// the status is ok.
func fitFault(f *Fault, status CallStatus) *Fault {
	if f == nil || status == CallOK {
		return nil
	}
	return &Fault{Code: cmp.Or(fit(f.Code), string(status)), Message: clip(f.Message, maxReason)}
}

// clip is a text as it is, or as much of it as fits, and the digest of the
// whole.
func clip(text string, most int) string { return shortened(text, most, most) }

// excerpt is a text as it is, or its beginning and digest if it is too long.
func excerpt(text string, most int) string {
	return shortened(text, max(most, excerptSize), excerptSize)
}

func shortened(text string, most, left int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if within(text, most) == len(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s… (%d bytes, sha256 %s)", text[:within(text, left)], len(text), hex.EncodeToString(sum[:]))
}

// within is how many bytes of a text fit into a bound.
func within(text string, most int) int {
	if len(text) <= most && (len(text) <= most/3 || quoted(text) <= 2*most) {
		return len(text)
	}
	size := 0
	for i, c := range text {
		n := utf8.RuneLen(c)
		if size += quoted(text[i : i+n]); size > 2*most || i+n > most {
			return i
		}
	}
	return len(text)
}

// quoted is how many bytes JSON makes of a text: at most six of each.
func quoted(text string) int {
	size := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\b', c == '\f', c == '\n', c == '\r', c == '\t':
			size++
		case c < ' ':
			size += 5
		}
	}
	return size
}

// carried is a JSON value in its canonical form, if an event can carry it; its
// integers from 2^53 on as strings.
func carried(v core.Raw, most int) (core.Raw, bool) {
	v = core.QuoteLarge(v)
	if len(v) > most || core.Depth(v) > maxNested || !v.IsValid() || core.CheckExact(v) != nil {
		return nil, false
	}
	canon, err := core.Canonical(v) // which may write numbers longer
	return canon, err == nil && len(canon) <= 2*most
}

// survives is a JSON object that the record can carry: what is none, or would
// not survive, is kept as text under a name.
func survives(v core.Raw, most int) core.Raw {
	if len(v) == 0 {
		return core.Raw("{}")
	}
	if canon, ok := carried(v, most); ok && canon.Kind() == '{' {
		return canon
	}
	return core.MustEncode(map[string]string{"text": clip(string(v), most)})
}

// outputOf is a tool's output as a model was told it: any JSON, as far as it
// survives.
func outputOf(v core.Raw, most int) core.Raw {
	if canon, ok := carried(v, most); ok {
		return canon
	}
	return survives(v, most)
}

// toolsSpec is what a model was given for tools: an object or a list.
func toolsSpec(v core.Raw) core.Raw {
	if len(v) == 0 {
		return nil
	}
	if canon, ok := carried(v, maxSpec); ok && canon.Kind() == '[' {
		return canon
	}
	return survives(v, maxSpec)
}

// fitParts makes parts fit for the record. What is over most bytes in all is
// cut to an excerpt with the digest of the whole; parts that are too many even
// so are told of by one in their place.
func fitParts(parts []ContentPart, most int) []ContentPart {
	out := make([]ContentPart, 0, min(len(parts), maxRefs))
	left, room := most, 2*most+2*maxSpoken // of bytes, and of JSON
	for i, p := range parts {
		p.fit(left)
		size := len(p.Text) + len(p.URL) + len(p.Input) + len(p.Output)
		if room -= p.size(); room < 0 || i == maxRefs-1 && len(parts) > maxRefs {
			return append(out, leftOver(parts[i:]))
		}
		left = max(0, left-size)
		out = append(out, p)
	}
	return out
}

// fit makes a part fit for the record, without JSON that none of its type has.
func (p *ContentPart) fit(most int) {
	input, output := p.Input, p.Output
	p.Input, p.Output = nil, nil
	p.ID, p.Name, p.ToolCallID, p.Detail = fit(p.ID), fit(p.Name), fit(p.ToolCallID), fit(p.Detail)
	p.Text, p.URL = excerpt(p.Text, most), excerpt(p.URL, most)
	switch p.Type {
	case "tool_use":
		if p.Name == "" {
			p.Name = "tool"
		}
		if p.ID == "" {
			p.ID = p.Name
		}
		p.Input = bounded(input, most, survives)
	case "tool_result":
		if p.ToolCallID == "" {
			p.ToolCallID = "tool"
		}
		p.Output = bounded(output, most, outputOf)
	}
}

// size is about how many bytes of JSON a part that fits comes to, and at
// least as many as it does.
func (p *ContentPart) size() int {
	size := 160 + len(p.Input) + len(p.Output)
	for _, text := range []string{p.Text, p.URL, p.Detail, p.ID, p.Name, p.ToolCallID} {
		size += quoted(text)
	}
	return size
}

// bounded is a value made fit, or its beginning and digest as text if it is
// too long.
func bounded(v core.Raw, most int, fits func(core.Raw, int) core.Raw) core.Raw {
	if most = max(most, excerptSize); len(v) <= most {
		return fits(v, most)
	}
	return core.MustEncode(map[string]string{"text": excerpt(string(v), most)})
}

// leftOver stands in for parts: how many, and the digest of all they hold.
func leftOver(parts []ContentPart) ContentPart {
	h, size := sha256.New(), 0
	for _, p := range parts {
		for _, text := range []string{p.Type, p.Text, p.URL, p.Detail, p.ID, p.Name, string(p.Input), p.ToolCallID, string(p.Output)} {
			h.Write([]byte(text))
			h.Write([]byte{0})
			size += len(text)
		}
	}
	return ContentPart{Type: "text", Text: fmt.Sprintf("… (%d more parts, %d bytes, sha256 %x)", len(parts), size, h.Sum(nil))}
}
