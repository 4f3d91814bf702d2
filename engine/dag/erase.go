package dag

import (
	"bytes"
	"errors"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Erasers erase what the events of the subject's tasks, and of an agent of that
// name, hold. Each stays in the record under its id, with its place, its references
// and its edges.
func (d *DAG) Erasers() []record.Eraser {
	return []record.Eraser{record.Sweep{
		Ledger: d.ledger, Kind: "events", Bucket: store.Bucket(stored), Erase: eraseEvent,
		Done: func(tx *audit.Tx, keys [][]byte) error { return reader{tx}.cutAgain(tx, keys) },
	}.Eraser()}
}

func eraseEvent(e *record.Erasure, key, value []byte) {
	if len(key) != 8 {
		return
	}
	w, err := asRow(record.LastSeq(key), value)
	var event Event
	if err == nil {
		event, err = w.folded()
	}
	if err != nil {
		e.Waits("an event of the record that can't be read")
		return
	}
	if e.ID = event.EventID; event.Erased != nil {
		return
	}
	task, err := reader{e.Tx}.taskOf(&event)
	e.Check(err)
	whose, over := e.Whose(task)
	if !over || whose != record.Theirs && event.AgentID != e.Of.Name && !repeats(e.Of.Said[task], w.raw) {
		return
	}
	rec, err := w.recorded()
	if !e.Check(err) {
		return
	}
	wipe(e, reflect.ValueOf(rec.Event.Body))
	for _, n := range rec.Event.Nodes {
		wipe(e, reflect.ValueOf(n.Body))
	}
	e.Then(func() error {
		e.Tx.Changed("dag", event.EventID)
		left, err := rec.Event.erased()
		return errors.Join(err, stored.Put(e.Tx, key, append(bytes.Clone(value[:recordHead]), left...)))
	})
}

// cutAgain writes the pieces of blocks without what was erased.
func (r reader) cutAgain(tx *audit.Tx, keys [][]byte) error {
	cut := uint64(r.Counter(countBlocks))
	for _, key := range keys {
		n, _ := blockOf(record.LastSeq(key))
		if n == cut || n >= uint64(r.Counter(countBlocks)) {
			continue
		}
		cut = n
		b, err := r.readBlock(n)
		if len(core.DamagedIn(err)) > 0 {
			err = pieces.Put(tx.Derived(), record.Seq(n), nil)
		} else if err == nil {
			err = pieces.Put(tx.Derived(), record.Seq(n), b.pieces)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repeats says whether an event has one of some texts in it.
func repeats(texts []string, event core.Raw) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		quoted, err := jsontext.AppendQuote(nil, text)
		return err == nil && bytes.Contains(event, quoted)
	})
}

// taskOf is the task that an event is about, or its run; "" for none.
func (r reader) taskOf(e *Event) (string, error) {
	if e.TaskID != "" || e.RunID == "" {
		return e.TaskID, nil
	}
	_, h, err := r.run(e.RunID)
	return h.TaskID, err
}

// erased is the canonical JSON of an event that has no content any more.
func (e *Event) erased() (core.Raw, error) {
	head := e.Head
	head.EventID, head.Erased = "", &core.Erased{SHA256: e.EventID, Bytes: int64(len(e.raw))}
	data, err := encode(head, e.Body)
	if err != nil {
		return nil, err
	}
	return core.Canonical(data)
}

// wipe erases what the tags of members say is content: of a struct, and of those in it.
func wipe(e *record.Erasure, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			wipe(e, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			wipe(e, v.Index(i))
		}
	case reflect.Struct:
		for _, m := range membersOf(v.Type()) {
			if at := v.Field(m.index); m.erase {
				e.Wipe(at.Addr().Interface())
			} else if m.nested {
				wipe(e, at)
			}
		}
	}
}

// ErasedID is the id of an event whose content was erased, as its JSON says it;
// "" for any other.
func ErasedID(data core.Raw) string {
	var head struct {
		Erased core.Erased `json:"erased"`
	}
	if core.DecodeStored(data, &head) != nil || !IsEventID(head.Erased.SHA256) {
		return ""
	}
	return head.Erased.SHA256
}
