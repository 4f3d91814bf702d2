package record

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// ErasedEvent is recorded for each slice of records whose content is erased.
const ErasedEvent = "subject.erased"

// Whose says whose a task is.
type Whose uint8

// Whose a task is.
const (
	NotTheirs Whose = iota
	Theirs          // they asked for it, or it was run for such a task
	RanByThem       // others asked for it: what came of it is theirs
)

// Subject is a person or agent whose content is being erased. It is of one
// erasure, and not for use by several goroutines.
type Subject struct {
	Name string // of an operator or agent, or the door's identity of a person
	// Task says whose a task is, and whether it is over. One that is not here
	// is nobody's.
	Task func(tx *audit.Tx, id string) (whose Whose, over bool, err error)
	// Said are the reasons that they gave about tasks, by the task: what came of
	// one repeats them.
	Said map[string][]string
	Left []string // what is not over, or can't be read, in words; at most 100
	More int      // that had no room in Left
}

// Is says whether the subject is the one of that name or, under another, that
// person.
func (s *Subject) Is(name, person string) bool {
	return s.Name == name || person != "" && s.Name == person
}

// SaidIn says whether a text about a task repeats a reason of theirs.
func (s *Subject) SaidIn(task, text string) bool {
	const telling = 8 // bytes; shorter ones stand in other texts by chance
	return slices.ContainsFunc(s.Said[task], func(reason string) bool {
		return text == reason || strings.HasSuffix(text, ": "+reason) || len(reason) >= telling && strings.Contains(text, reason)
	})
}

const maxLeft = 100

// Leave notes something that could not be erased, once.
func (s *Subject) Leave(what string) {
	switch {
	case slices.Contains(s.Left, what):
	case len(s.Left) < maxLeft:
		s.Left = append(s.Left, what)
	default:
		s.More++
	}
}

// Erase removes a slice of what a subject said from records of some kind, from
// a key on. It returns where to look next, nil when it is through, and how many
// records it erased. What is erased already it passes over: an erasure that was
// ended is finished by another.
type Erase func(ctx context.Context, by core.Caller, of *Subject, from []byte) (next []byte, n int, err error)

// Erasure gathers what one event says of records that are erased together.
type Erasure struct {
	removed Removal
}

// Add takes a record in, with the rows that held the content.
func (e *Erasure) Add(id string, rows ...[]byte) { e.removed.Add(id, rows...) }

// Sweep erases along a bucket.
type Sweep struct {
	Ledger *audit.Ledger
	Kind   string // of the records, for the event
	Bucket store.Bucket
	// Erase looks at a row and says whether it has something to erase. With an
	// erasure it does so, and adds what was there. A row that it can't read it
	// leaves.
	Erase func(tx *audit.Tx, e *Erasure, key, value []byte) (some bool, err error)
	// Done is called after the last row that a transaction erased; nil does nothing.
	Done func(tx *audit.Tx) error
	// Skip is where to go on instead of the next key, nil for there; nil goes on.
	Skip func(tx *audit.Tx, key []byte) ([]byte, error)
}

// Erase erases a slice of the records of a kind, as an Erase does. take takes
// out of a record what is the subject's, and says whether there was something;
// e is nil where it is only asked. kind is what the event calls the records.
func (k *Kind[P]) Erase(ctx context.Context, by core.Caller, of *Subject, from []byte, kind string, take func(tx *audit.Tx, e *Erasure, v P) (some bool, err error)) (next []byte, n int, err error) {
	return k.Sweep(of, kind, func(tx *audit.Tx, e *Erasure, key, value []byte, v P) (bool, error) {
		some, err := take(tx, e, v)
		if err != nil || !some || e == nil {
			return some, err
		}
		e.Add(k.ID(v), value)
		old, err := k.decode(tx.Tenant(), key, value)
		if err != nil {
			return true, err
		}
		return true, k.Write(tx, old, v)
	}).Slice(ctx, by, of, from)
}

// Sweep is a sweep along the records of a kind whose erase writes them itself.
func (k *Kind[P]) Sweep(of *Subject, kind string, erase func(tx *audit.Tx, e *Erasure, key, value []byte, v P) (some bool, err error)) Sweep {
	return Sweep{Ledger: k.Ledger, Kind: kind, Bucket: k.Bucket, Erase: func(tx *audit.Tx, e *Erasure, key, value []byte) (bool, error) {
		v, err := k.decode(tx.Tenant(), key, bytes.Clone(value))
		if bad := core.DamagedIn(err); len(bad) > 0 {
			of.Leave(k.Noun + " " + bad[0].Key + " (it can't be read)")
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return erase(tx, e, key, value, v)
	}}
}

// How far one slice looks.
const sweepLook = 4096

// Slice erases the next slice, as an Erase does.
func (w Sweep) Slice(ctx context.Context, by core.Caller, of *Subject, from []byte) (next []byte, n int, err error) {
	var found [][]byte
	err = w.Ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		found, next, err = w.look(tx, from)
		return err
	})
	if err != nil || len(found) == 0 {
		return next, 0, err
	}
	err = w.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		e := Erasure{Removal{Kind: w.Kind}}
		for _, key := range found {
			value, err := tx.Get(w.Bucket, key)
			if err != nil {
				return err
			}
			if value == nil { // it left
				continue
			}
			if _, err := w.Erase(tx, &e, key, bytes.Clone(value)); err != nil {
				return err
			}
		}
		if w.Done != nil {
			if err := w.Done(tx); err != nil {
				return err
			}
		}
		n = e.removed.Count
		return e.removed.record(tx, audit.Entry{Type: ErasedEvent, Subject: "erasure", ID: of.Name})
	})
	if err != nil {
		return nil, 0, fmt.Errorf("erase %s of %s: %w", w.Kind, of.Name, err)
	}
	return next, n, nil
}

// look finds the next rows that have something to erase.
func (w Sweep) look(tx *audit.Tx, from []byte) (found [][]byte, next []byte, err error) {
	for seen := 0; ; {
		again := false
		err := tx.Scan(w.Bucket, from, nil, false, func(key, value []byte) (bool, error) {
			if seen++; seen > sweepLook || len(found) == Slice {
				next = bytes.Clone(key)
				return false, nil
			}
			if w.Skip != nil {
				past, err := w.Skip(tx, key)
				if from, again = past, past != nil && err == nil; past != nil || err != nil {
					return false, err
				}
			}
			some, err := w.Erase(tx, nil, key, value)
			if some {
				found = append(found, bytes.Clone(key))
			}
			return true, err
		})
		if err != nil || !again {
			return found, next, err
		}
	}
}
