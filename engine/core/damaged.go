package core

import "fmt"

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
