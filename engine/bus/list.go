package bus

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Query narrows a list of messages. Of the filter, Status is one of Statuses,
// Kind a type, Agent a sender or recipient, and Match looks into ids, topic,
// names and payload.
type Query struct {
	core.Filter
	Topic       string // a pattern
	Correlation string // one conversation
}

// Get returns one message with what became of it in each mailbox.
func (b *Bus) Get(ctx context.Context, tenant, id string) (Message, error) {
	m, err := b.find(ctx, core.Self(tenant, "reader"), id)
	if err != nil {
		return Message{}, err
	}
	return *m, nil
}

// List lists the messages that are kept, newest first. The engine's own events
// are not among them. A page without a filter, or with times alone, costs the
// same however many messages there are.
func (b *Bus) List(ctx context.Context, tenant string, q Query) (core.Page[Message], error) {
	var page core.Page[Message]
	f, err := q.Check()
	if err != nil {
		return page, err
	}
	q.Filter = f
	want, err := q.compile()
	if err != nil {
		return page, err
	}
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		if q.Status == string(Open) || q.Status == unanswered {
			if want.Among, err = live(tx, q.Status); err != nil {
				return err
			}
		}
		if fits := want.Match; fits != nil {
			want.Match = func(m *Message) (bool, error) {
				if ok, _ := fits(m); !ok || q.Status == "" || q.Status == unanswered { // the latter come from their own bucket
					return ok, nil
				}
				err := decorate(tx, m)
				return string(m.Status) == q.Status, err
			}
		}
		if page, err = b.messages.Page(ctx, tx, want); err != nil {
			return err
		}
		return decorateAll(tx, page.Items)
	})
	return page, explain("list messages", err)
}

// live are the seqs of the open requests, or of the unread messages, in order.
func live(tx store.Tx, status string) (seqs []uint64, err error) {
	seqs = []uint64{} // none is not all
	if status == unanswered {
		err = asks.Each(tx, nil, func(_ record.Parts, a ask) (bool, error) {
			seqs = append(seqs, a.Seq)
			return true, nil
		})
	} else {
		err = boxes.Each(tx, nil, func(k record.Parts, _ struct{}) (bool, error) {
			seqs = append(seqs, record.LastSeq(k))
			return true, nil
		})
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), err
}

// compile checks a query. Without a Match only times narrow it.
func (q *Query) compile() (want record.Query[Message], err error) {
	want.Filter = q.Filter
	if q.Status != "" && !slices.Contains(Statuses(), q.Status) {
		return want, core.Invalid("status", q.Status, strings.Join(Statuses(), ", "))
	}
	if q.Kind != "" && !slices.Contains(Types(), Type(q.Kind)) {
		return want, core.Invalid("kind", q.Kind, "event, request, response, error")
	}
	var pattern Pattern
	if q.Topic != "" {
		if pattern, err = ParsePattern(q.Topic); err != nil {
			return want, err
		}
		if pattern.system() {
			return want, core.Invalid("topic", q.Topic, "topics of messages; what the engine did is in the audit log, and under Recent, Since and Subscribe")
		}
	}
	byTime := core.Filter{Since: q.Since, Until: q.Until, Page: q.Page, Size: q.Size}
	if q.Topic == "" && q.Correlation == "" && q.Filter == byTime {
		return want, nil
	}
	var hints [][]byte // what a record that fits must contain as it is
	for _, word := range []string{q.Agent, q.Kind, q.Trace, q.Task, q.Correlation} {
		if word != "" {
			hints = append(hints, core.MustEncode(word))
		}
	}
	want.Raw = func(data []byte) bool {
		return q.Session == "" && (q.Topic == "" || pattern.Match(string(topicOf(data)))) &&
			!slices.ContainsFunc(hints, func(h []byte) bool { return !bytes.Contains(data, h) })
	}
	want.Match = func(m *Message) (bool, error) { return q.fits(m), nil }
	return want, nil
}

func (q *Query) fits(m *Message) bool {
	return (q.Agent == "" || q.Agent == m.SenderID || q.Agent == m.RecipientID || slices.Contains(m.Recipients, q.Agent)) &&
		core.Wants(q.Kind, string(m.MessageType)) && core.Wants(q.Trace, m.TraceID) && core.Wants(q.Task, m.TaskID) &&
		core.Wants(q.Correlation, m.CorrelationID) && q.Finds(m.MessageID, m.Topic, m.SenderID, m.RecipientID, m.CorrelationID, string(m.Payload))
}

func decorateAll(tx store.Tx, items []Message) error {
	for i := range items {
		if err := decorate(tx, &items[i]); err != nil {
			return err
		}
		items[i].Deliveries = nil
	}
	return nil
}
