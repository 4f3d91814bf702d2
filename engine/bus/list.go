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
	want, err := q.compile()
	if err != nil {
		return page, err
	}
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		own := q.Status == Unanswered || q.Status == dead // which have buckets of their own
		if own || q.Status == string(Open) {
			if want.Among, err = live(tx, q.Status); err != nil {
				return err
			}
		}
		if q.Status != "" && !own {
			want.Match = func(m *Message) (bool, error) {
				err := decorate(tx, m)
				return string(m.Status) == q.Status && core.Wants(q.Correlation, m.CorrelationID), err
			}
		}
		if page, err = record.Paged(b.messages.Page(ctx, tx, want)); err != nil {
			return err
		}
		return decorateAll(tx, page.Items)
	})
	return page, audit.Explain("list messages", err)
}

// live are the seqs of the open requests, the dead letters or the unread messages, in order.
func live(tx store.Tx, status string) (seqs []uint64, err error) {
	seqs = []uint64{} // none is not all
	last := func(k record.Parts, _ struct{}) (bool, error) {
		seqs = append(seqs, record.LastSeq(k))
		return true, nil
	}
	switch status {
	case Unanswered:
		err = asks.Each(tx, nil, func(_ record.Parts, a ask) (bool, error) {
			seqs = append(seqs, a.Seq)
			return true, nil
		})
	case dead:
		err = deads.Each(tx, nil, last)
	default:
		err = boxes.Each(tx, nil, last)
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), err
}

// compile checks a query.
func (q *Query) compile() (want record.Query[*Message], err error) {
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
	if q.Topic != "" || q.Correlation != "" {
		want.Match = func(m *Message) (bool, error) { return core.Wants(q.Correlation, m.CorrelationID), nil }
	}
	hints := core.Hints(q.Agent, q.Kind, q.Trace, q.Task, q.Correlation)
	want.Raw = func(data []byte) bool {
		return (q.Topic == "" || pattern.Match(string(topicOf(data)))) &&
			!slices.ContainsFunc(hints, func(h []byte) bool { return !bytes.Contains(data, h) })
	}
	return want, nil
}

// fits is the kind's: what a status asks for is not in a message.
func (m *Message) fits(f core.Filter) bool {
	return f.Session == "" && core.WantsAny(f.Agent, append([]string{m.SenderID, m.RecipientID}, m.Recipients...)...) &&
		core.Wants(f.Kind, string(m.MessageType)) && core.Wants(f.Trace, m.TraceID) && core.Wants(f.Task, m.TaskID) && f.Finds(m.MessageID, m.Topic, m.SenderID, m.RecipientID, m.CorrelationID, string(m.Payload), string(m.MessageType))
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

// Since returns up to n (1-1000) messages after seq whose topic the pattern
// selects, oldest first, and the seq to go on from. An empty pattern selects
// every message, the direct ones too; one that begins with "sys" the engine's
// events, and seq then is one of the audit log.
func (b *Bus) Since(ctx context.Context, tenant, pattern string, seq uint64, n int) ([]Message, uint64, error) {
	p, err := tailPattern(pattern, n)
	if err != nil {
		return nil, seq, err
	}
	var found []*Message
	if p.system() {
		found, seq, err = b.eventsAfter(ctx, tenant, seq, n, func(m *Message) bool { return p.Match(m.Topic) })
	} else {
		found, seq, err = b.topicsAfter(ctx, tenant, seq, n, p, func(*Message) bool { return true })
	}
	if err != nil {
		return nil, seq, audit.Explain("read messages", err)
	}
	return b.values(ctx, tenant, found, seq)
}

const maxTail = 1000

func tailPattern(pattern string, n int) (Pattern, error) {
	if n < 1 || n > maxTail {
		return Pattern{}, core.Invalid("n", n, "1-1000")
	}
	if pattern == "" {
		return Pattern{}, nil
	}
	return ParsePattern(pattern)
}

// Recent returns the newest n (1-1000) messages that a pattern selects, oldest
// first, and the seq from which Since goes on. Of the engine's events it looks
// at the newest 50,000.
func (b *Bus) Recent(ctx context.Context, tenant, pattern string, n int) ([]Message, uint64, error) {
	p, err := tailPattern(pattern, n)
	if err != nil {
		return nil, 0, err
	}
	if p.system() {
		return b.recentEvents(ctx, tenant, p, n)
	}
	var found []*Message
	var newest uint64
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		newest = b.messages.Newest(tx)
		return tx.Scan(messages, nil, nil, true, func(_, v []byte) (bool, error) {
			if !p.empty() && !p.Match(string(topicOf(v))) {
				return true, ctx.Err()
			}
			m, err := decode(v)
			found = append(found, m)
			return len(found) < n, err
		})
	})
	if err != nil {
		return nil, 0, audit.Explain("read the newest messages", err)
	}
	slices.Reverse(found)
	return b.values(ctx, tenant, found, newest)
}

// maxLookBack is how many of the engine's events Recent looks at: their log is
// never cut off.
const maxLookBack = 50_000

// recentEvents looks back through the audit log in growing steps.
func (b *Bus) recentEvents(ctx context.Context, tenant string, p Pattern, n int) ([]Message, uint64, error) {
	var newest uint64
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		newest = tx.Next() - 1
		return nil
	})
	if err != nil {
		return nil, 0, audit.Explain("read the newest events", err)
	}
	fits := func(m *Message) bool { return p.Match(m.Topic) }
	var out []Message
	oldest := newest - min(newest, maxLookBack)
	for upto, step := newest, uint64(n); upto > oldest && len(out) < n; step *= 2 {
		from := upto - min(upto-oldest, step)
		found, _, err := b.eventsAfter(ctx, tenant, from, int(upto-from), fits)
		if err != nil {
			return nil, 0, audit.Explain("read the newest events", err)
		}
		var older []Message
		for _, m := range found {
			if m.Seq <= upto {
				older = append(older, *m)
			}
		}
		out = append(older, out...)
		upto = from
	}
	return out[max(0, len(out)-n):], newest, nil
}

// values are messages with what became of them.
func (b *Bus) values(ctx context.Context, tenant string, found []*Message, seq uint64) ([]Message, uint64, error) {
	out := core.Map(found, func(m *Message) Message { return *m })
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error { return decorateAll(tx, out) })
	return out, seq, audit.Explain("read what became of messages", err)
}

// walkSlice is how many records one read transaction looks at.
const walkSlice = 5000

// walk visits the records of messages after seq whose topic p selects, every
// one when p is empty, and returns the seq up to which it looked: at some
// thousands at most. It tells topics without decoding.
func (b *Bus) walk(ctx context.Context, tenant string, seq uint64, p Pattern, visit func(data []byte) (more bool, err error)) (uint64, error) {
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		seen := 0
		return tx.Scan(messages, record.Seq(seq+1), nil, false, func(k, v []byte) (more bool, err error) {
			seq, more = record.LastSeq(k), true
			if p.empty() || p.Match(string(topicOf(v))) {
				more, err = visit(v)
			}
			seen++
			return more && seen < walkSlice, err
		})
	})
	return seq, err
}

// topicsAfter returns up to n (1 or more) messages that walk visits and that
// fit, and the seq up to which it looked.
func (b *Bus) topicsAfter(ctx context.Context, tenant string, seq uint64, n int, p Pattern, fits func(*Message) bool) ([]*Message, uint64, error) {
	var out []*Message
	upto, err := b.walk(ctx, tenant, seq, p, func(data []byte) (bool, error) {
		m, err := decode(data)
		if err == nil && fits(m) {
			out = append(out, m)
		}
		return len(out) < n, err
	})
	return out, upto, err
}

// countAfter counts the messages after seq whose topic and type fit, undecoded,
// and returns the seq up to which it looked.
func (b *Bus) countAfter(ctx context.Context, tenant string, seq uint64, p Pattern, typ Type) (n int, upto uint64, err error) {
	of := []byte(`"message_type":"` + string(typ) + `"`)
	upto, err = b.walk(ctx, tenant, seq, p, func(data []byte) (bool, error) {
		if typ == "" || bytes.Contains(headOf(data), of) {
			n++
		}
		return true, nil
	})
	return n, upto, err
}
