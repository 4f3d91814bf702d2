package op

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/safeopen"
	"swarmdeck/store"
)

// Told is a result that says itself what came of it.
type Told[T any] struct {
	Record T
	Text   string // for people
}

// String tells it.
func (t Told[T]) String() string { return t.Text }

func (t Told[T]) MarshalJSON() ([]byte, error) { return core.Encode(t.Record) }

// told says of a record what came of it.
func told[T any](record T, text string) Told[T] { return Told[T]{record, text} }

// Either is a result that is one of two things.
type Either[A, B any] struct {
	One   *A
	Other *B
}

// Value is the one that it is.
func (e Either[A, B]) Value() any {
	if e.One != nil {
		return *e.One
	}
	return *e.Other
}

func (e Either[A, B]) MarshalJSON() ([]byte, error) { return core.Encode(e.Value()) }

// one is the first of two, with an error on the way to it.
func one[A, B any](v A, err error) (Either[A, B], error) { return Either[A, B]{One: &v}, err }

// other is the second of two.
func other[A, B any](v B, err error) (Either[A, B], error) { return Either[A, B]{Other: &v}, err }

// Sentence tells in one line what a change came to, from what Run gave back.
// Pausing and stopping are asked for: a screen shows when they are in effect.
func (o *Op) Sentence(out any) string {
	rows, of := face.Rows(out)
	f := FaceOf(of)
	verb := cmp.Or(o.Done, "read") // a list can mark what it shows as read
	switch v, is := out.(fmt.Stringer); {
	case f == nil && is:
		return v.String()
	case f == nil:
		return "done: " + o.Name
	case rows.Len() != 1 && !f.Each:
		return f.Count(rows.Len(), verb)
	}
	all := make([]string, rows.Len())
	for i := range all {
		all[i] = f.Says(face.Row(rows, i), verb, o.Name)
	}
	return strings.Join(all, "; ")
}

// failed is what was found wrong by a call that was well made: the file that it
// names is mistaken, what it looks at is damaged. Nil for nothing.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &Failed{err}
}

// FileFault says why a file that the caller named can't be read or written.
func FileFault(do, field, path string, err error) error {
	say := func(code core.Code, format string, args ...any) error {
		return core.Errorf(code, field+": "+format, args...).With("field", field).With("value", core.Clip(path))
	}
	if err == nil {
		return nil
	}
	code := core.AsError(err).Code
	switch {
	case store.IsFault(err):
		return fmt.Errorf("%s: %w", field, err)
	case safeopen.IsOwn(err):
		return say(core.Denied, "%s is one of the engine's own files", core.Clip(path))
	case code != core.Internal:
		return err
	case errors.Is(err, fs.ErrExist):
		return say(core.Conflict, "%s exists already", core.Clip(path))
	case errors.Is(err, fs.ErrNotExist):
		code = core.NotFound
	case errors.Is(err, fs.ErrPermission):
		code = core.Denied
	}
	var why *fs.PathError
	if errors.As(err, &why) {
		err = why.Err
	}
	return say(code, "can't %s %s: %v", do, core.Clip(path), err)
}
