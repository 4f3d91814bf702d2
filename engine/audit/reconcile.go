package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Delta is one difference between the replayed log and the store.
type Delta struct {
	Subject string `json:"subject"`
	ID      string `json:"id"`
	Field   string `json:"field"` // "" when the whole record is absent on one side
	Log     string `json:"log"`   // value by the log, "" when absent
	Store   string `json:"store"` // value in the store, "" when absent
}

// Auditable is a kind of record that reconcile compares. State must encode
// to the same JSON object that the service puts in Entry.State.
type Auditable interface {
	Subject() string
	States(tx store.Tx, each func(id string, state any) error) error
}

// maxDeltas bounds the answer; the last one then counts the rest.
const maxDeltas = 10_000

// Reconcile replays the log, the newest Entry.State of each subject and id and
// the newest digest of each row, and lists every difference from the store: of
// registered kinds in the members of their states, of everything else by bucket
// and key. Subjects of no such kind are left out. It keeps some 60 bytes per
// record and per row in memory, and ends with one read transaction in which the
// store is compared.
func (l *Ledger) Reconcile(ctx context.Context, tenant string) ([]Delta, error) {
	l.mu.Lock()
	kinds := slices.Collect(maps.Values(l.kinds))
	l.mu.Unlock()
	r := &replay{seed: maphash.MakeSeed(), second: maphash.MakeSeed(), newest: map[[2]uint64]fold{}, kinds: map[string]bool{}}
	for _, k := range kinds {
		r.kinds[k.Subject()] = true
	}
	var count uint64
	declared := l.classes.Load()
	l.leaving.RLock() // nothing leaves the log meanwhile
	defer l.leaving.RUnlock()
	first := uint64(1)
	err := l.st.View(ctx, tenant, func(tx store.Tx) error {
		count = uint64(tx.Counter(counter))
		s, err := r.fromBase(tx)
		first += s.Upto
		return err
	})
	if err == nil {
		err = l.walk(ctx, tenant, first, count, func(data []byte) error { r.event(data); return nil })
	}
	if err == nil {
		err = l.st.View(ctx, tenant, func(tx store.Tx) error { return r.compare(ctx, tx, count, declared, kinds) })
	}
	if err != nil {
		return nil, fmt.Errorf("reconcile %s: %w", tenant, err)
	}
	core.Sort(r.deltas, func(a, b Delta) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Field, b.Field))
	})
	if r.more > 0 {
		r.deltas = append(r.deltas, Delta{Field: "…", Log: fmt.Sprintf("%d more differences", r.more)})
	}
	return r.deltas, nil
}

// fold is what the log says last of one record.
type fold struct {
	seq  uint64 // of the event with the state
	sum  uint64 // hash of the state
	gone bool
	seen bool // the store has it
	row  bool
	base bool // said by events that left: no event of the log has it
}

type replay struct {
	seed, second maphash.Seed
	kinds        map[string]bool
	newest       map[[2]uint64]fold
	deltas       []Delta
	more         int
	name         []byte
}

func (r *replay) keyOf(subject, id []byte) [2]uint64 {
	r.name = append(append(append(r.name[:0], subject...), 0), id...)
	return [2]uint64{maphash.Bytes(r.seed, r.name), maphash.Bytes(r.second, r.name)}
}

// event folds one event in. One that can't be read is a difference; verify says
// which it is.
func (r *replay) event(data []byte) {
	if err := r.fold(data); err != nil {
		r.unreadable("event", "", err)
	}
}

// unreadable lists what can't be compared.
func (r *replay) unreadable(subject, id string, err error) {
	r.delta(Delta{Subject: subject, ID: id, Field: "unreadable", Store: core.Clip(err.Error())})
}

func (r *replay) fold(data []byte) error {
	h, err := headOf(data)
	if err != nil {
		return err
	}
	err = rowsIn(data, func(name, sum []byte) {
		if subject, id, ok := stateRow(name); ok {
			if r.kinds[string(subject)] {
				r.newest[r.keyOf(subject, id)] = fold{seq: h.seq, gone: true}
			}
			return
		}
		r.newest[r.keyOf(rowSubject, name)] = fold{seq: h.seq, sum: maphash.Bytes(r.seed, sum), gone: string(sum) == "-", row: true}
	})
	if err != nil {
		return fmt.Errorf("event %d: %w", h.seq, err)
	}
	if !r.kinds[string(h.subject)] {
		return nil
	}
	state, err := h.state()
	if err != nil || state == nil {
		return err
	}
	r.newest[r.keyOf(h.subject, h.subjectID)] = fold{seq: h.seq, sum: maphash.Bytes(r.seed, state), gone: string(state) == "null"}
	return nil
}

// compare folds in what was appended meanwhile and walks the store.
func (r *replay) compare(ctx context.Context, tx store.Tx, after uint64, declared *classes, kinds []Auditable) error {
	err := tx.Scan(Events, key(after+1), nil, false, func(_, data []byte) (bool, error) {
		r.event(data)
		return true, nil
	})
	if err != nil {
		return err
	}
	var derivers []Deriver
	for _, k := range kinds {
		if d, ok := k.(Deriver); ok {
			derivers = append(derivers, d)
		}
		n := 0
		err := k.States(tx, func(id string, state any) error {
			if n++; n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			return r.record(tx, k.Subject(), id, state)
		})
		if damaged := core.DamagedIn(err); len(damaged) > 0 {
			for _, d := range damaged {
				r.unreadable(k.Subject(), d.Key, d)
			}
		} else if err != nil {
			return fmt.Errorf("read the %s records: %w", k.Subject(), err)
		}
	}
	if err := r.rows(ctx, tx, declared, derivers); err != nil {
		return err
	}
	return r.absent(tx)
}

// rowSubject stands for rows beside the subjects of states, of which none is
// like it.
var rowSubject = []byte("\x00row")

// row compares one row, "BUCKET KEY", with the log: the digest of its value.
func (r *replay) row(name, sum []byte) {
	k := r.keyOf(rowSubject, name)
	said, ok := r.newest[k]
	if said.seen = true; ok {
		r.newest[k] = said
	}
	switch {
	case !ok || said.gone:
		r.delta(rowDelta(name, "", string(sum)))
	case maphash.Bytes(r.seed, sum) != said.sum:
		r.delta(rowDelta(name, "another", string(sum)))
	}
}

func rowDelta(name []byte, logged, stored string) Delta {
	bucket, key, _ := strings.Cut(string(name), " ")
	return Delta{Subject: bucket, ID: readable(key), Field: "row", Log: logged, Store: stored}
}

// record compares one record of the store with the log.
func (r *replay) record(tx store.Tx, subject, id string, state any) error {
	stored, ok := state.(core.Raw)
	if !ok {
		encoded, err := core.Encode(state)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", subject, id, err)
		}
		stored = encoded
	}
	k := r.keyOf([]byte(subject), []byte(id))
	said, ok := r.newest[k]
	if !ok || said.gone {
		r.delta(Delta{Subject: subject, ID: id, Store: string(stored)})
		return nil
	}
	said.seen = true
	r.newest[k] = said
	if said.base {
		r.differsFromBase(said, subject, id, stored)
		return nil
	}
	if maphash.Bytes(r.seed, stored) == said.sum {
		return nil
	}
	logged, _, err := stateAt(tx, said.seq)
	if err == nil {
		err = r.fields(subject, id, logged, stored)
	}
	if err != nil {
		r.unreadable(subject, id, err)
	}
	return nil
}

func stateAt(tx store.Tx, seq uint64) (state core.Raw, p Payload, err error) {
	e, err := get(tx, seq)
	if err != nil {
		return nil, p, err
	}
	p, err = e.Data()
	return p.State, p, err
}

// fields lists the members in which two states differ.
func (r *replay) fields(subject, id string, logged, stored core.Raw) error {
	var a, b map[string]core.Raw
	if err := errors.Join(core.DecodeStored(logged, &a), core.DecodeStored(stored, &b)); err != nil {
		return fmt.Errorf("state of %s %s is not a JSON object: %w", subject, id, err)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			a[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !sameJSON(a[name], b[name]) {
			r.delta(Delta{Subject: subject, ID: id, Field: name, Log: string(a[name]), Store: string(b[name])})
		}
	}
	return nil
}

// sameJSON ignores spelling: the order of members, the form of numbers.
func sameJSON(a, b core.Raw) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	x, errX := core.Canonical(a)
	y, errY := core.Canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// absent lists what the log has and the store has not.
func (r *replay) absent(tx store.Tx) error {
	for k, said := range r.newest {
		if said.seen || said.gone || said.base {
			continue
		}
		state, p, err := stateAt(tx, said.seq)
		if err != nil {
			r.unreadable("event", fmt.Sprint(said.seq), err)
			continue
		}
		if said.row {
			r.rowGone(p, k)
			continue
		}
		r.delta(Delta{Subject: p.Subject, ID: p.ID, Log: string(state)})
	}
	return r.absentOfBase(tx)
}

// rowGone names a row that an event tells of and the store has not.
func (r *replay) rowGone(p Payload, k [2]uint64) {
	for _, line := range p.Rows {
		if i := strings.LastIndexByte(line, ' '); i > 0 && r.keyOf(rowSubject, []byte(line[:i])) == k {
			r.delta(rowDelta([]byte(line[:i]), line[i+1:], ""))
			return
		}
	}
}

func (r *replay) delta(d Delta) {
	if len(r.deltas) >= maxDeltas {
		r.more++
		return
	}
	r.deltas = append(r.deltas, d)
}
