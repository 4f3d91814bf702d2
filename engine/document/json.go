package document

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
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
