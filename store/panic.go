package store

import (
	"fmt"
	"runtime/debug"
)

// guard turns a panic of bbolt, which is how it meets a damaged page, into an
// error. Use it only around calls of bbolt, never around a caller's code.
func guard(err *error, doing string, b Bucket) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s %s: %w: damaged page: %v", doing, b, ErrUnusable, r)
	}
}

// recovered turns a panic of a caller's code into that caller's error.
func recovered(err *error) {
	r := recover()
	if r == nil {
		return
	}
	if fault, ok := r.(interface{ Addr() uintptr }); ok {
		*err = fmt.Errorf("%w: a page can't be read (fault at %#x)", ErrUnusable, fault.Addr())
	} else {
		*err = &PanicError{Value: r, Stack: debug.Stack()}
	}
}

// PanicError is what an Update or View returns when its fn panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("transaction panicked: %v", e.Value) }
