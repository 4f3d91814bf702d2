package audit

import (
	"errors"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Room tells of the space that the store has.
func (l *Ledger) Room() store.Room { return store.RoomOf(l.st) }

// fullError is a refusal of the store for want of space, as doors tell it. It
// is the store's error too.
type fullError struct {
	said  *core.Error
	cause error
}

func (e *fullError) Error() string   { return e.said.Message }
func (e *fullError) Unwrap() []error { return []error{e.said, e.cause} }

// AsFull is an error as doors tell it where it is a refusal of the store for want of space.
func AsFull(err error) error {
	full, ok := errors.AsType[*store.FullError](err)
	if !ok {
		return err
	}
	said := core.Errorf(core.StorageFull, "%s", err.Error()).With("path", full.Path)
	if full.Free >= 0 {
		said = said.With("free_bytes", full.Free)
	}
	return &fullError{said, err}
}
