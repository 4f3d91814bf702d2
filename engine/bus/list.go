package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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
	var none core.Page[Message]
	f, err := q.Check()
	if err != nil {
		return none, err
	}
	q.Filter = f
	fits, err := q.compile()
	if err != nil {
		return none, err
	}
	if q.Status == string(Open) || q.Status == unanswered {
		return b.listLive(ctx, tenant, q, fits)
	}
	var items []Message
	total := 0
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		lo, hi, err := span(tx, q.Filter)
		if err != nil {
			return err
		}
		if fits == nil { // by arithmetic
			total = int(hi - lo)
			hi -= min(hi, uint64(q.Offset()))
			for seq := hi; seq > lo && len(items) < q.Size; seq-- {
				m, err := mustGet(tx, seq-1)
				if err != nil {
					return err
				}
				items = append(items, *m)
			}
			return decorateAll(tx, items)
		}
		var bad error
		seen := 0
		err = tx.Scan(bMessage, key(lo), key(hi), true, func(_, v []byte) bool {
			if seen++; seen%1024 == 0 && ctx.Err() != nil {
				bad = ctx.Err()
				return false
			}
			var m *Message
			if m, bad = fits(tx, v); bad != nil || m == nil {
				return bad == nil
			}
			if total++; total > q.Offset() && len(items) < q.Size {
				items = append(items, *m)
			}
			return true
		})
		if err == nil {
			err = bad
		}
		if err != nil {
			return err
		}
		return decorateAll(tx, items)
	})
	if err != nil {
		return none, explain("list messages", err)
	}
	return core.NewPage(items, q.Filter, total), nil
}

// listLive lists what is open: the unread messages, or the requests without
// an answer, from their own small buckets.
func (b *Bus) listLive(ctx context.Context, tenant string, q Query, fits matcher) (core.Page[Message], error) {
	var items []Message
	total := 0
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		seqs, err := live(tx, q.Status == unanswered)
		if err != nil {
			return err
		}
		for _, seq := range slices.Backward(seqs) {
			data, err := tx.Get(bMessage, key(seq))
			if err != nil {
				return fmt.Errorf("read message %d: %w", seq, err)
			}
			if data == nil {
				return core.Errorf(core.Internal, "message %d is missing", seq)
			}
			m, err := fits(tx, data)
			if err != nil {
				return err
			}
			if m == nil || !within(m.Timestamp, q.Filter) {
				continue
			}
			if total++; total > q.Offset() && len(items) < q.Size {
				items = append(items, *m)
			}
		}
		return decorateAll(tx, items)
	})
	if err != nil {
		return core.Page[Message]{}, explain("list messages", err)
	}
	return core.NewPage(items, q.Filter, total), nil
}

// live are the seqs of the open requests, or of the unread messages, in order.
func live(tx store.Tx, requests bool) ([]uint64, error) {
	var seqs []uint64
	var err error
	if requests {
		err = scan(tx, bAsk, nil, func(_, v []byte) (bool, error) {
			var a ask
			err := core.DecodeStored(v, &a)
			seqs = append(seqs, a.Seq)
			return true, err
		})
	} else {
		err = scan(tx, bBox, nil, func(k, _ []byte) (bool, error) {
			seqs = append(seqs, readKey(k[len(k)-8:]))
			return true, nil
		})
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), err
}

// matcher decodes a record that the query wants; nil for any other.
type matcher func(tx store.Tx, data []byte) (*Message, error)

// compile makes the matcher of a query; nil when only times narrow it.
func (q *Query) compile() (matcher, error) {
	if q.Status != "" && !slices.Contains(Statuses(), q.Status) {
		return nil, core.Invalid("status", q.Status, strings.Join(Statuses(), ", "))
	}
	if q.Kind != "" && !slices.Contains(Types(), Type(q.Kind)) {
		return nil, core.Invalid("kind", q.Kind, "event, request, response, error")
	}
	var pattern Pattern
	if q.Topic != "" {
		var err error
		if pattern, err = ParsePattern(q.Topic); err != nil {
			return nil, err
		}
		if pattern.system() {
			return nil, core.Invalid("topic", q.Topic, "topics of messages; what the engine did is in the audit log, and under Recent, Since and Subscribe")
		}
	}
	byTime := core.Filter{Since: q.Since, Until: q.Until, Page: q.Page, Size: q.Size}
	if q.Topic == "" && q.Correlation == "" && q.Filter == byTime {
		return nil, nil
	}
	var hints [][]byte // what a record that fits must contain as it is
	for _, want := range []string{q.Agent, q.Kind, q.Trace, q.Task, q.Correlation} {
		if want != "" {
			hints = append(hints, core.MustEncode(want))
		}
	}
	return func(tx store.Tx, data []byte) (*Message, error) {
		if q.Topic != "" && !pattern.Match(string(topicOf(data))) || q.Session != "" {
			return nil, nil
		}
		for _, h := range hints {
			if !bytes.Contains(data, h) {
				return nil, nil
			}
		}
		m, err := decode(data)
		if err != nil || !q.fits(m) {
			return nil, err
		}
		if q.Status == "" || q.Status == unanswered { // the latter come from their own bucket
			return m, nil
		}
		if err := decorate(tx, m); err != nil || string(m.Status) != q.Status {
			return nil, err
		}
		return m, nil
	}, nil
}

func (q *Query) fits(m *Message) bool {
	return (q.Agent == "" || q.Agent == m.SenderID || q.Agent == m.RecipientID || slices.Contains(m.Recipients, q.Agent)) &&
		same(q.Kind, string(m.MessageType)) && same(q.Trace, m.TraceID) && same(q.Task, m.TaskID) && same(q.Correlation, m.CorrelationID) &&
		holds(q.Match, m.MessageID, m.Topic, m.SenderID, m.RecipientID, m.CorrelationID, string(m.Payload))
}

func same(want, got string) bool { return want == "" || want == got }

func within(at time.Time, f core.Filter) bool {
	return (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || !at.After(f.Until))
}

func holds(match string, in ...string) bool {
	match = strings.ToLower(match)
	return match == "" || slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), match) })
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

func readKey(k []byte) uint64 { return binary.BigEndian.Uint64(k) }

func mustGet(tx store.Tx, seq uint64) (*Message, error) {
	m, err := get(tx, seq)
	if err == nil && m == nil {
		err = core.Errorf(core.Internal, "message %d is missing", seq)
	}
	return m, err
}

func mustGetHead(tx store.Tx, seq uint64) (*Message, error) {
	m, err := getHead(tx, seq)
	if err == nil && m == nil {
		err = core.Errorf(core.Internal, "message %d is missing", seq)
	}
	return m, err
}

// span is the half-open range of seqs that are kept and within the filter's
// times. Seqs and times grow together.
func span(tx store.Tx, f core.Filter) (lo, hi uint64, err error) {
	floor := uint64(tx.Counter(countFloor))
	n := int(uint64(tx.Counter(countMessages)) - floor)
	find := func(past func(time.Time) bool) uint64 {
		return floor + 1 + uint64(sort.Search(n, func(i int) bool {
			if err != nil {
				return true
			}
			var m *Message
			if m, err = mustGetHead(tx, floor+1+uint64(i)); err != nil {
				return true
			}
			return past(m.Timestamp)
		}))
	}
	lo, hi = floor+1, floor+1+uint64(n)
	if !f.Since.IsZero() {
		lo = find(func(t time.Time) bool { return !t.Before(f.Since) })
	}
	if !f.Until.IsZero() {
		hi = max(lo, find(func(t time.Time) bool { return t.After(f.Until) }))
	}
	return lo, hi, err
}
