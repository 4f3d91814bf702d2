// Package mapping fills the results of earlier steps into the parameters of
// later ones: ${step.field} or ${step.list[0]} in a text of a JSON document
// stands for a value of a scope. What is filled in is never read as a
// reference itself.
package mapping

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

// Use is a reference, or a text that is none, at its place in a document.
type Use struct {
	Field string
	Ref   *Reference
	Err   error
}

// Uses lists the references of a document; field names it in what they say.
func Uses(params core.Raw, field string) []Use {
	var list []Use
	if len(params) == 0 {
		return nil
	}
	err := EachText(params, func(dec *jsontext.Decoder, name bool, text string) error {
		at := field + Place(dec.StackPointer())
		pieces, err := Parse(text)
		if name {
			if err != nil || References(pieces) {
				list = append(list, Use{Field: at, Err: core.Errorf(core.InvalidInput, "%q: references stand in values, not in names", document.Clip(text))})
			}
			return nil
		}
		if err != nil {
			list = append(list, Use{Field: at, Err: err})
		}
		for _, p := range pieces {
			if p.Ref != nil {
				list = append(list, Use{Field: at, Ref: p.Ref})
			}
		}
		return nil
	})
	if err != nil {
		list = append(list, Use{Field: field, Err: core.Errorf(core.InvalidInput, "not valid JSON: %v", err)})
	}
	return list
}

// Fill resolves the references in the texts of params, a JSON object. scope
// holds a JSON value for each root. A text that is exactly one reference
// becomes the value, with its type; in any other it is spliced in: a text as it
// is, any other value as JSON.
func Fill(params core.Raw, scope map[string]core.Raw) (core.Raw, error) {
	if len(params) == 0 {
		return core.Raw(`{}`), nil
	}
	out := bounded{left: core.MaxInput}
	enc := jsontext.NewEncoder(&out)
	dec := jsontext.NewDecoder(bytes.NewBuffer(params))
	for {
		name := atName(dec)
		tok, err := dec.ReadToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, core.Errorf(core.InvalidInput, "params: not valid JSON: %v", err)
		}
		if tok.Kind() != '"' || name || !strings.Contains(tok.String(), "${") {
			err = enc.WriteToken(tok)
		} else {
			var value core.Raw
			if value, err = fillText(tok.String(), scope); err != nil {
				return nil, InField("params"+Place(dec.StackPointer()), err)
			}
			err = enc.WriteValue(value)
		}
		if err != nil {
			return nil, tooLarge(err)
		}
	}
	filled := core.Raw(bytes.TrimSpace(out.data))
	return filled, core.CheckObject("params", filled, core.MaxInput)
}

// fillText is the JSON value that a text with references stands for.
func fillText(text string, scope map[string]core.Raw) (core.Raw, error) {
	pieces, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if len(pieces) == 1 && pieces[0].Ref != nil {
		return pieces[0].Ref.Find(scope)
	}
	s, err := Splice(pieces, scope)
	if err != nil {
		return nil, err
	}
	return core.Encode(s)
}

// Splice is a text with its references filled in.
func Splice(pieces []Piece, scope map[string]core.Raw) (string, error) {
	out := bounded{left: core.MaxInput}
	for _, p := range pieces {
		text := p.Literal
		if p.Ref != nil {
			value, err := p.Ref.Find(scope)
			if err != nil {
				return "", err
			}
			if text, err = asText(value); err != nil {
				return "", err
			}
		}
		if _, err := out.Write([]byte(text)); err != nil {
			return "", tooLarge(err)
		}
	}
	return string(out.data), nil
}

// InField puts the field that an error is about before it.
func InField(field string, err error) error {
	return core.Errorf(core.InvalidInput, "%s: %s", field, err.Error()).With("field", field)
}
