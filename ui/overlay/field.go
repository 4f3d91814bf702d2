package overlay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// FieldType is what a field of a form takes.
type FieldType string

// The types. Each is entered as itself and given back as JSON.
const (
	StringField  FieldType = "string" // text that begins with " is read as a JSON string, for line breaks and the like
	NumberField  FieldType = "number"
	IntegerField FieldType = "integer"
	BooleanField FieldType = "boolean"
	EnumField    FieldType = "enum" // one of Enum
	JSONField    FieldType = "json" // any JSON value, over several lines
)

// Field is one line of a form.
type Field struct {
	Name     string // the member of the object that the form makes
	Type     FieldType
	Required bool
	Default  core.Raw   // JSON, entered already; nil for none
	Enum     []core.Raw // the choices of an enum, JSON of any type
	// Suggest are likely values of a string field; others may be entered too.
	Suggest     []string
	Description string
	Section     string // a heading above the field; "" is none
	Empty       string // what is meant where nothing is entered, in a few words
	// Dangers say of some choices of an enum what is to be known before they are
	// made, by their text.
	Dangers map[string]string
}

// entry is a field and what was entered.
type entry struct {
	Field
	in      Input    // strings and numbers
	area    area     // JSON
	choices []string // shown for booleans and enums
	values  []core.Raw
	at      int // of the choice, -1 for none
	problem string
}

func newEntry(f Field) *entry {
	e := &entry{Field: f, at: -1}
	e.Name = strings.ToValidUTF8(f.Name, string(term.Replacement))
	switch f.Type {
	case BooleanField:
		e.values = []core.Raw{core.Raw("true"), core.Raw("false")}
	case EnumField:
		e.values = f.Enum
	case StringField, NumberField, IntegerField:
	default:
		e.Type = JSONField
	}
	words := map[string]string{}
	if f.Type == BooleanField {
		words = map[string]string{"true": "yes", "false": "no"}
	}
	for _, v := range e.values {
		text := cmp.Or(words[string(v)], string(v))
		if s, ok := plainString(v); ok && s != "" {
			text = s
		}
		e.choices = append(e.choices, text)
	}
	if len(f.Default) > 0 && !e.preset(f.Default) {
		e.problem = "the default " + term.Cut(string(f.Default), 40) + " is no " + string(f.Type)
	}
	return e
}

// preset enters a JSON value; it tells whether the field can hold it.
func (e *entry) preset(v core.Raw) bool {
	switch e.Type {
	case BooleanField, EnumField:
		want, err := core.Canonical(v)
		e.at = slices.IndexFunc(e.values, func(have core.Raw) bool {
			got, bad := core.Canonical(have)
			return err == nil && bad == nil && bytes.Equal(got, want)
		})
		return e.at >= 0
	case NumberField, IntegerField:
		text := strings.TrimSpace(string(v))
		if _, err := number(text, e.Type == IntegerField); err != nil {
			return false
		}
		e.in.SetValue(text)
	case StringField:
		s, ok := plainString(v)
		if !ok {
			if v.Kind() != '"' {
				return false
			}
			s = string(showable(string(v))[0])
		}
		e.in.SetValue(s)
	default:
		v = v.Clone()
		if v.Indent() != nil {
			return false
		}
		e.area.set(string(v))
	}
	return true
}

// plainString is the string that a JSON value holds when it can be entered
// as it is.
func plainString(v core.Raw) (string, bool) {
	var s string
	if core.Decode(v, &s) != nil || strings.HasPrefix(s, `"`) || s != term.Clean(s) {
		return "", false
	}
	return s, true
}

// chooses tells whether one of a few is chosen, rather than text entered.
func (e *entry) chooses() bool { return e.Type == BooleanField || e.Type == EnumField }

// danger is what is to be known of the choice that was made.
func (e *entry) danger() string { return e.Dangers[e.text()] }

// text is what was entered, as it is shown.
func (e *entry) text() string {
	switch {
	case e.chooses():
		if e.at < 0 {
			return ""
		}
		return e.choices[e.at]
	case e.Type == StringField, e.Type == NumberField, e.Type == IntegerField:
		return e.in.Value()
	}
	return e.area.value()
}

// value is the JSON of what was entered, nil for nothing.
func (e *entry) value() (core.Raw, error) {
	text := e.text()
	if e.Type != StringField {
		text = strings.TrimSpace(text)
	}
	if text == "" {
		if e.Required {
			return nil, errors.New("is required")
		}
		return nil, nil
	}
	switch e.Type {
	case BooleanField, EnumField:
		return e.values[e.at], nil
	case StringField:
		if !strings.HasPrefix(text, `"`) {
			return core.Encode(text)
		}
		if v := core.Raw(text); v.IsValid() && v.Kind() == '"' {
			return v, nil
		}
		return nil, errors.New(`begins with " and is no JSON string; "\"a\"" is "a" with its quotes`)
	case NumberField, IntegerField:
		return number(text, e.Type == IntegerField)
	}
	_, err := core.Canonical([]byte(text))
	return core.Raw(text), err
}

// number reads a JSON number, or one without a fraction.
func number(text string, whole bool) (core.Raw, error) {
	v := core.Raw(text)
	if !v.IsValid() || v.Kind() != '0' {
		return nil, errors.New(term.Cut(strconv.Quote(text), 40) + " is no number")
	}
	if whole && strings.ContainsAny(text, ".eE") {
		return nil, errors.New(term.Cut(text, 40) + " is no whole number")
	}
	_, err := core.Canonical(v)
	return v, err
}

// about says what the field takes, in one line.
func (e *entry) about() string {
	parts := []string{map[FieldType]string{
		StringField: "text", NumberField: "a number", IntegerField: "a whole number",
		BooleanField: "yes or no", EnumField: fmt.Sprintf("one of %d", len(e.choices)),
	}[e.Type]}
	if parts[0] == "" {
		parts[0] = "JSON"
	}
	if e.Required {
		parts = append(parts, "required")
	}
	if len(e.Default) > 0 {
		parts = append(parts, "default "+term.Cut(string(e.Default), 60))
	}
	return e.Name + ": " + strings.Join(parts, ", ")
}
