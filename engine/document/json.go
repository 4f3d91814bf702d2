package document

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// source reads the tokens of a JSON text and knows their lines.
type source struct {
	data []byte
	dec  *jsontext.Decoder
	seen int // bytes whose lines are counted
	line int
}

var errDeep = errors.New("nested too deeply")

func (r *Reader) json(data []byte) *node {
	s := &source{data: data, dec: jsontext.NewDecoder(bytes.NewReader(data)), line: 1}
	root, err := s.value(0)
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) == 0 {
		r.At(1, "file", "empty; want a mapping")
		return nil
	}
	if err == nil {
		s.next()
		if _, err = s.dec.ReadToken(); errors.Is(err, io.EOF) {
			return root
		}
		if err == nil {
			r.At(s.line, "file", "a second document; want one")
			return nil
		}
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errDeep):
		r.At(s.line, "file", errDeep.Error())
		return nil
	case errors.As(err, &syntax):
		s.count(int(syntax.ByteOffset))
		why := strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
		if errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
			why += " " + strconv.Quote(Clip(string(syntax.JSONPointer)))
		}
		r.At(s.line, "file", "not valid JSON: "+firstLine(why))
		return nil
	}
	r.At(s.line, "file", "not valid JSON: "+firstLine(err.Error()))
	return nil
}

// value reads one value.
func (s *source) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	s.next()
	n := &node{line: s.line}
	tok, err := s.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		n.kind = Nothing
	case 't', 'f':
		n.kind, n.text = Bool, tok.String()
	case '"':
		n.kind, n.text = Text, tok.String()
	case '0':
		n.kind, n.text, n.json = Number, tok.String(), tok.String()
		n.num, _ = strconv.ParseFloat(n.text, 64)
	case '[':
		n.kind = List
		for s.dec.PeekKind() != ']' {
			item, err := s.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = s.dec.ReadToken()
	case '{':
		n.kind = Mapping
		for s.dec.PeekKind() != '}' {
			m, err := s.member(depth + 1)
			if err != nil {
				return nil, err
			}
			n.pairs = append(n.pairs, m)
		}
		_, err = s.dec.ReadToken()
	}
	return n, err
}

func (s *source) member(depth int) (member, error) {
	s.next()
	m := member{plain: true, line: s.line}
	tok, err := s.dec.ReadToken()
	if err != nil {
		return m, err
	}
	m.key = tok.String()
	m.value, err = s.value(depth)
	return m, err
}

// next moves to the line of the token to be read.
func (s *source) next() {
	at := int(s.dec.InputOffset())
	for at < len(s.data) && strings.IndexByte(" \t\r\n,:", s.data[at]) >= 0 {
		at++
	}
	s.count(at)
}

func (s *source) count(to int) {
	if to = min(to, len(s.data)); to > s.seen {
		s.line += bytes.Count(s.data[s.seen:to], []byte("\n"))
		s.seen = to
	}
}

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
