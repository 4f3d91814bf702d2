package model

import (
	"fmt"
	"reflect"
	"slices"

	"swarmdeck/engine/core"
)

// step is what one entry changed, both ways, so that taking it back and doing
// it again are exact.
type step struct {
	op      Operation
	changes []change
	settled []settling
	before  []Conflict // open before and after
	after   []Conflict
}

// change takes one entity from a state to another; nil is absent.
type change struct {
	id            string
	before, after *item
	wasGone       bool // among the removed, before
}

// subject is what a merge decides about.
type subject struct{ source, entity string }

// settling takes one decision about a source from a state to another.
type settling struct {
	subject

	before, after *string
}

// prepare works out what an entry changes, and refuses it when it is wrong.
func (w *Workspace) prepare(e Entry) (*step, error) {
	if err := e.checkHead(); err != nil {
		return nil, err
	}
	shapes, err := w.checkMaterial(e)
	if err != nil {
		return nil, err
	}
	s := &step{before: w.open, op: Operation{Seq: e.Seq, Method: e.Method, Params: e.Params, AgentID: e.AgentID, At: e.At}}
	touched := make(map[string]*item, len(e.Put)+len(e.Removed))
	place := w.last
	for _, p := range e.Put {
		if err := w.checkEntity(p, e.Record != nil); err != nil {
			return nil, about(p.ID, err)
		}
		if p.Type == Solid && !shapes[p.Shape] && w.shapes[p.Shape].Hash == "" {
			return nil, about(p.ID, core.Errorf(core.InvalidInput, "its shape %s is missing", p.Shape))
		}
		if _, twice := touched[p.ID]; twice {
			return nil, about(p.ID, core.Errorf(core.InvalidInput, "changed twice by one operation"))
		}
		it := &item{Entity: p}
		if old := w.entities[p.ID]; old != nil {
			it.place = old.place
			s.op.Updated = append(s.op.Updated, p.ID)
		} else {
			place++
			it.place = place
			s.op.Added = append(s.op.Added, p.ID)
		}
		touched[p.ID] = it
		s.changes = append(s.changes, w.changeTo(p.ID, it))
	}
	for _, id := range e.Removed {
		if _, twice := touched[id]; twice {
			return nil, about(id, core.Errorf(core.InvalidInput, "changed twice by one operation"))
		}
		if w.entities[id] == nil {
			return nil, core.Missing("entity", id)
		}
		touched[id] = nil
		s.op.Removed = append(s.op.Removed, id)
		s.changes = append(s.changes, w.changeTo(id, nil))
	}
	if n := len(w.order) + len(s.op.Added) - len(s.op.Removed); n > MaxEntities {
		return nil, core.Invalid("entities", n, fmt.Sprintf("at most %d in a workspace", MaxEntities))
	}
	if err := w.checkRefs(touched, s.changes); err != nil {
		return nil, err
	}
	return s, w.decide(s, e)
}

func (w *Workspace) changeTo(id string, it *item) change {
	return change{id: id, before: w.entities[id], after: it, wasGone: w.gone[id]}
}

// checkRefs reports a constraint that would hold what is not there.
func (w *Workspace) checkRefs(touched map[string]*item, changes []change) error {
	for _, c := range changes {
		if c.after == nil {
			for k := range w.refs[c.id] {
				if _, also := touched[k]; !also {
					return core.Errorf(core.Conflict, "entity %s: constraint %s refers to it", c.id, k).With("field", "entity_id")
				}
			}
			continue
		}
		if c.after.Type != Constraint {
			continue
		}
		ids := referred(c.after.Entity)
		if len(ids) == 0 {
			return about(c.id, core.Errorf(core.InvalidInput, "entity_ids: a constraint names the entities that it holds").With("field", "entity_ids"))
		}
		for _, id := range ids {
			if it, also := touched[id]; it == nil && (also || w.entities[id] == nil) {
				return about(c.id, core.Missing("entity", id))
			}
		}
	}
	return nil
}

// decide works out what an entry does to conflicts.
func (w *Workspace) decide(s *step, e Entry) error {
	s.after = w.open
	if len(e.Conflicts)+len(e.Resolved) == 0 {
		return nil
	}
	decided, opened := map[subject]bool{}, map[subject]bool{}
	for _, r := range e.Resolved {
		if err := r.check(w.record.ID); err != nil {
			return err
		}
		key := subject{r.Source, r.EntityID}
		if decided[key] {
			return core.Errorf(core.InvalidInput, "entity %s of %s: decided twice by one operation", r.EntityID, r.Source)
		}
		decided[key] = true
		now := settling{subject: key, after: &r.SourceHash}
		if was, ok := w.settled[r.Source][r.EntityID]; ok {
			now.before = &was
		}
		s.settled = append(s.settled, now)
	}
	for _, c := range e.Conflicts {
		if err := c.check(w.record.ID); err != nil {
			return err
		}
		key := subject{c.Source, c.EntityID}
		if decided[key] {
			return core.Errorf(core.InvalidInput, "entity %s of %s: decided and left open by one operation", c.EntityID, c.Source)
		}
		opened[key] = true
	}
	s.after = nil
	for _, c := range w.open {
		if key := (subject{c.Source, c.EntityID}); !decided[key] && !opened[key] {
			s.after = append(s.after, c)
		}
	}
	s.after = append(s.after, e.Conflicts...)
	return nil
}

// do carries out the step of an entry, which has been checked.
func (w *Workspace) do(s *step, e Entry) {
	for _, b := range e.Blobs {
		w.blobs[b.Hash] = b.Data
	}
	for _, sh := range e.Shapes {
		w.shapes[sh.Hash] = sh
	}
	for _, p := range e.Put {
		w.used[p.ID] = true
		if e.Record != nil {
			w.base[p.ID] = p.Base
		}
	}
	w.last += len(s.op.Added)
	w.forward(s)
	w.seq = e.Seq
	w.done = append(w.done, s)
}

func (w *Workspace) forward(s *step) {
	for _, c := range s.changes {
		w.replace(c.before, c.after)
		w.mark(c.id, c.after == nil)
	}
	for _, d := range s.settled {
		w.settle(d.subject, d.after)
	}
	w.open = s.after
}

func (w *Workspace) backward(s *step) {
	for _, c := range slices.Backward(s.changes) {
		w.replace(c.after, c.before)
		w.mark(c.id, c.wasGone)
	}
	for _, d := range s.settled {
		w.settle(d.subject, d.before)
	}
	w.open = s.before
}

func (w *Workspace) mark(id string, gone bool) {
	if w.gone[id] = true; !gone {
		delete(w.gone, id)
	}
}

func (w *Workspace) settle(of subject, hash *string) {
	if hash == nil {
		delete(w.settled[of.source], of.entity)
		return
	}
	if w.settled[of.source] == nil {
		w.settled[of.source] = map[string]string{}
	}
	w.settled[of.source][of.entity] = *hash
}

// about names the entity that an error is about, and keeps what it is.
func about(id string, err error) error {
	e := core.AsError(err)
	return &core.Error{Code: e.Code, Message: "entity " + id + ": " + e.Message, Details: e.Details}
}

// Operation is one operation of a workspace's history.
type Operation struct {
	Seq     int      `json:"seq"`
	Method  string   `json:"method"`
	Params  core.Raw `json:"params,omitzero"`
	AgentID string   `json:"agent_id,omitzero"`
	At      string   `json:"at,omitzero"`
	Added   []string `json:"added,omitzero"` // ids of entities
	Updated []string `json:"updated,omitzero"`
	Removed []string `json:"removed,omitzero"`
	Undone  bool     `json:"undone,omitzero"`
}

// History lists the operations in effect, the newest first, and how many there
// are. With the future it begins with those that were undone and can be done
// again.
func (w *Workspace) History(limit, offset int, includeFuture bool) (page []Operation, total int) {
	future := w.future
	if !includeFuture {
		future = nil
	}
	total = len(future) + len(w.done)
	for i := max(0, offset); i < total && (limit <= 0 || len(page) < limit); i++ {
		if i < len(future) {
			op := future[i].op
			op.Undone = true
			page = append(page, op)
			continue
		}
		page = append(page, w.done[total-1-i].op)
	}
	return page, total
}

// Undo takes back the newest operation in effect. Of the change, who did it
// and how counts.
func (w *Workspace) Undo(c Change) (Entry, error) {
	if len(w.done) < 2 { // the first made the workspace
		return Entry{}, core.Errorf(core.Conflict, "workspace %s: nothing to undo", w.record.ID)
	}
	e := c.entry(w)
	w.done[len(w.done)-1].write(&e, true)
	return e, w.play(e)
}

// Redo does again what was undone last. Nothing can be done again after a new
// operation.
func (w *Workspace) Redo(c Change) (Entry, error) {
	if len(w.future) == 0 {
		return Entry{}, core.Errorf(core.Conflict, "workspace %s: nothing to redo", w.record.ID)
	}
	e := c.entry(w)
	w.future[len(w.future)-1].write(&e, false)
	return e, w.play(e)
}

// replay carries out an entry that undoes or redoes another.
func (w *Workspace) replay(e Entry) error {
	if err := e.checkHead(); err != nil {
		return err
	}
	from, to, name, kept := &w.done, &w.future, "undo", 1 // the first made the workspace
	if e.Redoes != 0 {
		from, to, name, kept = &w.future, &w.done, "redo", 0
	}
	if len(*from) <= kept {
		return core.Errorf(core.Conflict, "nothing to %s", name)
	}
	s := (*from)[len(*from)-1]
	var want Entry
	if s.write(&want, e.Undoes != 0); !e.same(want) {
		return core.Errorf(core.InvalidInput, "it does not %s operation %d", name, s.op.Seq)
	}
	if e.Undoes != 0 {
		w.backward(s)
	} else {
		w.forward(s)
	}
	*from, *to = (*from)[:len(*from)-1], append(*to, s)
	w.seq = e.Seq
	return nil
}

// write writes what taking a step back, or doing it again, changes into an
// entry.
func (s *step) write(e *Entry, back bool) {
	seq := &e.Redoes
	if back {
		seq = &e.Undoes
	}
	*seq = s.op.Seq
	for _, c := range s.changes {
		it := c.after
		if back {
			it = c.before
		}
		if it == nil {
			e.Removed = append(e.Removed, c.id)
		} else {
			e.Put = append(e.Put, it.Entity)
		}
	}
}

// same compares what two entries change and nothing else.
func (e Entry) same(o Entry) bool {
	return e.Undoes == o.Undoes && e.Redoes == o.Redoes && slices.Equal(e.Removed, o.Removed) &&
		slices.EqualFunc(e.Put, o.Put, func(a, b Entity) bool { return reflect.DeepEqual(a, b) }) &&
		len(e.Shapes)+len(e.Blobs)+len(e.Conflicts)+len(e.Resolved) == 0
}
