package core

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the machine-readable class of an error, as printed by -o json.
type Code string

// The codes of the command language.
const (
	InvalidInput Code = "INVALID_INPUT"
	NotFound     Code = "NOT_FOUND"
	Conflict     Code = "CONFLICT"
	Denied       Code = "DENIED"
	Unavailable  Code = "UNAVAILABLE"
	StorageFull  Code = "STORAGE_FULL"
	Internal     Code = "INTERNAL_ERROR"
)

// Error is a refusal that a user can act on. Details name the field, the
// value and what is allowed where that applies.
type Error struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, core.Kind(code)) hold for every error of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}

// Kind returns a target for errors.Is that matches any Error with this code.
func Kind(c Code) error { return &Error{Code: c} }

// Invalid reports a bad value: which field, what was given, what is allowed.
func Invalid(field string, value any, allowed string) *Error {
	return &Error{
		Code:    InvalidInput,
		Message: fmt.Sprintf("%s: %s is not allowed; allowed: %s", field, quote(value), allowed),
		Details: map[string]any{"field": field, "value": Clip(fmt.Sprint(value)), "allowed": allowed},
	}
}

// Missing reports a record that does not exist in the tenant.
func Missing(kind, id string) *Error {
	return &Error{
		Code:    NotFound,
		Message: fmt.Sprintf("%s %s: not found", kind, quote(id)),
		Details: map[string]any{"field": kind, "value": Clip(id)},
	}
}

// Errorf builds an Error of the given code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds one detail and returns the error, for chaining at the place where
// it is made.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// AsError finds the Error inside err, or wraps err as an internal one.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		if err.Error() == e.Message {
			return e
		}
		return &Error{Code: e.Code, Message: err.Error(), Details: e.Details}
	}
	return &Error{Code: Internal, Message: err.Error()}
}

func quote(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", Clip(s))
	}
	return Clip(fmt.Sprint(v))
}

// Clip keeps error messages readable when a value is huge.
func Clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Damaged is a record that can't be read, or says what can't be.
type Damaged struct {
	Noun string // "session"
	Key  string // its id, or where it is kept
	Err  error  // why
}

func (d *Damaged) Error() string { return fmt.Sprintf("decode %s %s: %v", d.Noun, quote(d.Key), d.Err) }

// Unwrap is why.
func (d *Damaged) Unwrap() error { return d.Err }

// DamagedIn finds each Damaged in an error, joined ones too.
func DamagedIn(err error) (all []*Damaged) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
	case *Damaged:
		return []*Damaged{e}
	case interface{ Unwrap() error }:
		return DamagedIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, DamagedIn(one)...)
		}
	}
	return all
}
