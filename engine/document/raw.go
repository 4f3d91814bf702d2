package document

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// number is shown in messages without quotes.
type number string

// Raw is what stands at a place as compact JSON; nil, with the problems
// reported, when it holds something JSON has not.
func (r *Reader) Raw(v Value) core.Raw {
	before := len(r.problems)
	out := r.appendRaw(nil, v)
	if len(r.problems) > before {
		return nil
	}
	return out
}

func (r *Reader) appendRaw(b []byte, v Value) []byte {
	switch v.Kind() {
	case Nothing:
		return append(b, "null"...)
	case Text:
		return r.appendText(b, v, v.node.text)
	case Bool:
		return append(b, strings.ToLower(v.node.text)...)
	case Number:
		if v.node.json == "" {
			r.Bad(v, number(v.node.text), "a finite number")
		}
		return append(b, v.node.json...)
	case List:
		b = append(b, '[')
		for i := range v.node.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.appendRaw(b, v.item(i))
		}
		return append(b, ']')
	case Mapping:
		pairs, _ := r.Pairs(v)
		b = append(b, '{')
		for i, p := range pairs {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(r.appendText(b, p.Value, p.Key), ':')
			b = r.appendRaw(b, p.Value)
		}
		return append(b, '}')
	}
	r.Fail(v, "want a value that JSON has, got %s", v.Kind())
	return b
}

func (r *Reader) appendText(b []byte, v Value, s string) []byte {
	out, err := jsontext.AppendQuote(b, s)
	if err != nil {
		r.Fail(v, "want text in UTF-8")
		return b
	}
	return out
}

// Find goes down to the place that the tokens of a JSON pointer (RFC 6901)
// name; where the tree ends before them, to the last place on the way.
func (v Value) Find(tokens ...string) Value {
	for _, t := range tokens {
		next, ok := v.step(t)
		if !ok {
			return v
		}
		v = next
	}
	return v
}

func (v Value) step(token string) (Value, bool) {
	switch v.Kind() {
	case List:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.node.items) {
			return v.item(i), true
		}
	case Mapping:
		for _, m := range v.node.pairs {
			if m.plain && m.key == token {
				return v.member(m), true
			}
		}
	}
	return v, false
}
