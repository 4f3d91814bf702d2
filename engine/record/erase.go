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

// Eraser erases records of one kind.
type Eraser struct {
	Kind  string // what people and the event call them
	Erase Erase
}

// Erasure is of one record, and of what lies beside it. Nothing is written while
// records are only looked at: what is to be written, Then is told.
type Erasure struct {
	Tx      *audit.Tx
	Of      *Subject
	ID      string // of the record, for the event
	Some    bool   // there is something to erase
	Written bool   // by Then, and not by the kind

	err   error
	waits bool
	rows  [][]byte
	then  []func() error
	after []func() error
}

// Check notes an error, which ends the erasure, and says whether there is none.
func (e *Erasure) Check(err error) bool {
	if e.err == nil {
		e.err = err
	}
	return err == nil
}

// Whose says whose a task is, and whether it is over.
func (e *Erasure) Whose(task string) (whose Whose, over bool) {
	whose, over, err := e.Of.Task(e.Tx, task)
	e.Check(err)
	return whose, over
}

// Wipe puts digests in the place of what *string and *core.Raw hold, unless that
// is nothing, {} or erased. It says whether something was there.
func (e *Erasure) Wipe(members ...any) (some bool) {
	for _, m := range members {
		switch m := m.(type) {
		case *string:
			if erased := core.EraseText(*m); erased != *m {
				*m, some = erased, true
			}
		case *core.Raw:
			if len(*m) > len(`{}`) && !core.IsErased(*m) {
				*m, some = core.Erase(*m), true
			}
		default:
			panic(fmt.Sprintf("record: a %T can't be erased", m))
		}
	}
	e.Some = e.Some || some
	return some
}

// Waits leaves a record as it is, and notes that in words.
func (e *Erasure) Waits(what string) {
	e.waits = true
	e.Of.Leave(what)
}

// Row is one beside the record that holds something to erase, as it was.
func (e *Erasure) Row(data []byte) { e.rows = append(e.rows, bytes.Clone(data)) }

// Then writes what is left of what was erased, within the transaction.
func (e *Erasure) Then(write func() error) { e.then = append(e.then, write) }

// After is done once all is on disk, also where an erasure before did not come
// to it.
func (e *Erasure) After(do func() error) { e.after = append(e.after, do) }

// Sweep erases along a bucket.
type Sweep struct {
	Ledger *audit.Ledger
	Kind   string // see Eraser
	Bucket store.Bucket
	// Erase takes out of a row what is the subject's.
	Erase func(e *Erasure, key, value []byte)
	// Done is called after the last row that a transaction looked at again, with
	// their keys; nil does nothing.
	Done func(tx *audit.Tx, keys [][]byte) error
	// Skip is where to go on instead of the next key, nil for there; nil goes on.
	Skip func(tx *audit.Tx, of *Subject, key []byte) ([]byte, error)
}

// Eraser erases what is Personal in the records of the kind.
func (k *Kind[P]) Eraser(called string) Eraser {
	return Sweep{Ledger: k.Ledger, Kind: called, Bucket: k.Bucket, Erase: func(e *Erasure, key, value []byte) {
		v, err := k.decode(e.Tx.Tenant(), key, value)
		if bad := core.DamagedIn(err); len(bad) > 0 {
			e.Waits(k.Noun + " " + bad[0].Key + " (it can't be read)")
			return
		}
		if !e.Check(err) {
			return
		}
		e.ID = k.ID(v)
		if k.Personal(e, v); e.Written {
			return
		}
		e.Then(func() error {
			old, err := k.decode(e.Tx.Tenant(), key, value)
			if err != nil {
				return err
			}
			if k.Quiet {
				e.Tx.Changed(k.subject(), e.ID)
			}
			return k.Write(e.Tx, old, v)
		})
	}}.Eraser()
}

// Eraser is the sweep as an eraser.
func (w Sweep) Eraser() Eraser { return Eraser{w.Kind, w.slice} }

// How far one slice looks.
const sweepLook = 4096

// slice erases the next slice, as an Erase does.
func (w Sweep) slice(ctx context.Context, by core.Caller, of *Subject, from []byte) (next []byte, n int, err error) {
	var found [][]byte
	var after []func() error
	err = w.Ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		found, after, next, err = w.look(tx, of, from)
		return err
	})
	if err == nil && len(found) > 0 {
		err = w.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
			n, err = w.write(tx, of, found)
			return err
		})
	}
	for i := 0; i < len(after) && err == nil; i++ {
		err = after[i]()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("erase %s of %s: %w", w.Kind, of.Name, err)
	}
	return next, n, nil
}

// write erases rows that were found, unless they left or have nothing any more.
func (w Sweep) write(tx *audit.Tx, of *Subject, found [][]byte) (n int, err error) {
	removed := Removal{Kind: w.Kind}
	for _, key := range found {
		value, err := tx.Get(w.Bucket, key)
		if err != nil {
			return 0, err
		}
		e := Erasure{Tx: tx, Of: of}
		if value = bytes.Clone(value); value != nil {
			w.Erase(&e, key, value)
		}
		if e.err != nil {
			return 0, e.err
		}
		if !e.Some || e.waits {
			continue
		}
		removed.Add(e.ID, append([][]byte{value}, e.rows...)...)
		for _, write := range e.then {
			if err := write(); err != nil {
				return 0, err
			}
		}
	}
	if w.Done != nil {
		if err := w.Done(tx, found); err != nil {
			return 0, err
		}
	}
	return removed.Count, removed.record(tx, audit.Entry{Type: ErasedEvent, Subject: "erasure", ID: of.Name})
}

// look finds the next rows that have something to erase.
func (w Sweep) look(tx *audit.Tx, of *Subject, from []byte) (found [][]byte, after []func() error, next []byte, err error) {
	for seen := 0; ; {
		again := false
		err := tx.Scan(w.Bucket, from, nil, false, func(key, value []byte) (bool, error) {
			if seen++; seen > sweepLook || len(found) == Slice {
				next = bytes.Clone(key)
				return false, nil
			}
			if w.Skip != nil {
				past, err := w.Skip(tx, of, key)
				if from, again = past, past != nil && err == nil; past != nil || err != nil {
					return false, err
				}
			}
			e := Erasure{Tx: tx, Of: of}
			w.Erase(&e, key, value)
			if e.Some && !e.waits {
				found = append(found, bytes.Clone(key))
			}
			after = append(after, e.after...)
			return true, e.err
		})
		if err != nil || !again {
			return found, after, next, err
		}
	}
}
