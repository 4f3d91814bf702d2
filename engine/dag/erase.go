package dag

import (
	"bytes"
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// EraseEvents is a record.Erase: what the events of the subject's tasks, and of
// an agent of that name, hold. Each stays in the record under its id, with its
// place, its references and its edges.
func (d *DAG) EraseEvents(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	var blocks []uint64 // whose pieces tell of what was erased
	return record.Sweep{
		Ledger: d.ledger, Kind: "events", Bucket: store.Bucket(stored),
		Done: func(tx *audit.Tx) error { return reader{tx}.cutAgain(tx, slices.Compact(blocks)) },
		Erase: func(tx *audit.Tx, e *record.Erasure, k, value []byte) (bool, error) {
			if len(k) != 8 {
				return false, nil
			}
			w, err := asRow(record.LastSeq(k), value)
			var event Event
			if err == nil {
				event, err = w.folded()
			}
			if err != nil {
				of.Leave("an event of the record that can't be read")
				return false, nil
			}
			if event.Erased != nil {
				return false, nil
			}
			task, err := reader{tx}.taskOf(&event)
			if err != nil {
				return false, err
			}
			whose, over, err := of.Task(tx, task)
			theirs := whose == record.Theirs || event.AgentID == of.Name
			if err != nil || !over || !theirs && !repeats(of.Said[task], w.raw) {
				return false, err
			}
			rec, err := w.recorded()
			if err != nil {
				return false, err
			}
			left, some, err := rec.Event.erase()
			if err != nil || !some || e == nil {
				return some, err
			}
			e.Add(event.EventID, value)
			tx.Changed("dag", event.EventID)
			block, _ := blockOf(record.LastSeq(k))
			blocks = append(blocks, block)
			return true, stored.Put(tx, bytes.Clone(k), append(bytes.Clone(value[:recordHead]), left...))
		},
	}.Slice(ctx, by, of, from)
}

// cutAgain writes the pieces of blocks without what was erased.
func (r reader) cutAgain(tx *audit.Tx, blocks []uint64) error {
	for _, n := range blocks {
		if n >= uint64(r.Counter(countBlocks)) {
			return nil
		}
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

// erase is the canonical JSON of an event without its content; false when it
// has none.
func (e *Event) erase() (core.Raw, bool, error) {
	c := eraser{}
	c.body(e.Body)
	for _, n := range e.Nodes {
		c.node(n.Body)
	}
	if !c.some {
		return nil, false, nil
	}
	head := e.Head
	head.EventID, head.Erased = "", &core.Erased{SHA256: e.EventID, Bytes: int64(len(e.raw))}
	rest, err := core.Encode(e.Body)
	if err != nil {
		return nil, false, err
	}
	data, err := core.Encode(struct {
		Head `json:",embed"`
		Body core.Raw `json:",embed"`
	}{head, rest})
	if err != nil {
		return nil, false, err
	}
	left, err := core.Canonical(data)
	return left, true, err
}

// eraser takes content out of an event that is nobody else's.
type eraser struct{ some bool }

func (c *eraser) text(s *string) {
	if *s != "" {
		*s, c.some = core.EraseText(*s), true
	}
}

// value takes out what is more than {} or [].
func (c *eraser) value(v *core.Raw) {
	if len(*v) > len(`{}`) {
		*v, c.some = core.Erase(*v), true
	}
}

func (c *eraser) fault(f *Fault) {
	if f != nil {
		c.text(&f.Message)
		c.value(&f.Details)
	}
}

func (c *eraser) body(body Body) {
	switch b := body.(type) {
	case *ModelRequest:
		c.value(&b.Params)
		c.value(&b.ToolsSpec)
	case *ModelResponse:
		c.fault(b.Error)
	case *ToolCall:
		c.value(&b.Args)
	case *ToolResult:
		c.value(&b.Result)
		c.fault(b.Error)
	case *MCPResourceUpdated:
		c.text(&b.Summary)
	case *PolicyActivated:
		c.text(&b.Notes)
	case *Substitution:
		c.text(&b.Reason)
	case *SnapshotCreated:
		c.fault(b.Error)
	case *RestoreAttempted:
		c.fault(b.Error)
	}
}

func (c *eraser) node(body NodeBody) {
	switch b := body.(type) {
	case *Message:
		for i := range b.Content {
			p := &b.Content[i]
			c.text(&p.Text)
			c.text(&p.URL)
			c.value(&p.Input)
			c.value(&p.Output)
		}
	case *Subagent:
		c.value(&b.Constraints)
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
