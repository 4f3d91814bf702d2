package op

import (
	"strings"

	"swarmdeck/engine/core"
)

// Param is one parameter of an operation.
type Param struct {
	// Name is that of the flag, and of the field in an error with _ for -.
	Name string
	// About is a line of help with the value's word in backquotes: "why, for
	// `TEXT`". Of an argument it is that word alone: ID.
	About string
	Arg   bool // given by its place, a *string
	Rest  bool // all that follows --, a *[]string
	Need  bool // can't be left out
	// Whole says that a comma is a part of a value of a *[]string, not between two.
	Whole bool
	// Into is where the value goes, and holds the default until then: a *string,
	// *[]string, *bool, *int, *int64, *float64, *time.Duration, *time.Time,
	// *core.Raw (one JSON object) or *Content, which is the caller's input unless
	// a file is named.
	Into any
	Enum []string
	// Valid refuses a value as soon as it is there; nil takes all of its type.
	Valid func() error
	// From names what knows values, for completion: "task", "agent:idle", "file".
	From string
	// Given says that the caller named a value.
	Given bool
}

// Content is what a file holds, or the caller's input.
type Content []byte

// flag makes a parameter that is given by its name.
func flag(into any, name, about string) *Param { return &Param{Name: name, About: about, Into: into} }

// need is a flag that can't be left out.
func need(into any, name, about string) *Param {
	return &Param{Name: name, About: about, Into: into, Need: true}
}

// from says what completes a parameter.
func (p *Param) from(source string) *Param {
	p.From = source
	return p
}

// enum closes the set of a parameter's values.
func (p *Param) enum(values ...string) *Param {
	p.Enum = values
	return p
}

// arg describes the argument of show and change.
func arg(word, source string) Param {
	return Param{Name: strings.ToLower(word), About: word, From: source}
}

// place is an argument.
func place(into any, word, source string) *Param {
	return &Param{Name: strings.ToLower(word), About: word, Arg: true, Need: true, Into: into, From: source}
}

// why is the reason that goes into the record.
func why(into *string) *Param { return flag(into, "reason", "why, for the record") }

// usage is a mistake in a parameter.
func usage(field, format string, args ...any) error {
	return core.Errorf(core.InvalidInput, format, args...).With("field", field)
}
