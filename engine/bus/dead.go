package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// The reasons of dead letters.
const (
	ReasonExpired    = "expired"    // not read within its ttl
	ReasonRefused    = "refused"    // by its reader
	ReasonFull       = "full"       // a broadcast that found a mailbox without room
	ReasonUnanswered = "unanswered" // a request that nobody answered within its ttl
)

// DeadLetter is a message that did not get to one of those it was meant for.
type DeadLetter struct {
	MessageID    string    `json:"message_id"`
	Topic        string    `json:"topic,omitempty"`
	SenderID     string    `json:"sender_id"`
	RecipientID  string    `json:"recipient_id,omitempty"` // whose mailbox it was in
	Subscription string    `json:"subscription,omitempty"` // durable subscription that missed it
	MessageType  Type      `json:"message_type"`
	Timestamp    time.Time `json:"timestamp"` // the message's
	Reason       string    `json:"reason"`
	Detail       string    `json:"detail,omitempty"` // what the reader said
	At           time.Time `json:"at"`               // when it died
	TraceID      string    `json:"trace_id"`
	TaskID       string    `json:"task_id,omitempty"`
	ResentAs     string    `json:"resent_as,omitempty"` // message that repeats it
}

// burial makes dead letters of messages that share one reason and one
// consumer, with one event for all.
type burial struct {
	kind           byte
	name           string
	reason, detail string
	ids            []string
}

// add makes a message a dead letter, unless it is one already.
func (g *burial) add(tx *audit.Tx, m *Message) error {
	k := keyWith(m.Seq, g.kind, g.name)
	known, err := tx.Get(bDead, k)
	if err != nil || known != nil {
		return explain("read a dead letter", err)
	}
	d := DeadLetter{
		MessageID: m.MessageID, Topic: m.Topic, SenderID: m.SenderID, RecipientID: m.RecipientID, MessageType: m.MessageType,
		Timestamp: m.Timestamp, Reason: g.reason, Detail: g.detail, At: tx.Now(), TraceID: m.TraceID, TaskID: m.TaskID,
	}
	switch g.kind {
	case toMailbox:
		d.RecipientID = g.name
	case toSubscription, toEvents:
		d.Subscription = g.name
	}
	if err := put(tx, bDead, k, &d); err != nil {
		return err
	}
	if err := counted(tx, g.kind, g.name, m.Seq); err != nil {
		return err
	}
	tx.Add(countDead, 1)
	tx.Add(countLetters, 1)
	tx.Changed("message", m.MessageID, m)
	g.ids = append(g.ids, m.MessageID)
	return nil
}

// record audits what was added.
func (g *burial) record(tx *audit.Tx) error {
	if len(g.ids) == 0 {
		return nil
	}
	subject := map[byte]string{toMailbox: "mailbox", toSubscription: "subscription", toEvents: "subscription", toAnswer: "message"}[g.kind]
	id := g.name
	if id == "" {
		id = g.ids[0]
	}
	_, err := tx.Record(audit.Entry{
		Type: "message.dead", Subject: subject, ID: id,
		Detail: buried{Reason: g.reason, Detail: g.detail, Messages: g.ids},
	})
	return err
}

type buried struct {
	Reason   string   `json:"reason"`
	Detail   string   `json:"detail,omitempty"`
	Messages []string `json:"messages"`
}

// lose makes dead letters of what expired before a durable subscription came
// to it.
func (b *Bus) lose(ctx context.Context, tenant, name string, messages []*Message) error {
	if len(messages) == 0 {
		return nil
	}
	return b.change(ctx, core.Self(tenant, "bus"), "record what expired", func(tx *audit.Tx) error {
		g := burial{kind: toSubscription, name: name, reason: ReasonExpired}
		for _, m := range messages {
			if err := g.add(tx, m); err != nil {
				return err
			}
		}
		return g.record(tx)
	})
}

// Dead lists the dead letters, those of the newest message first. f.Status is
// a reason, f.Agent a sender, recipient or subscription, f.Kind a type; Match
// looks into ids, topic, names and detail. With f.Status "resent" it lists
// only what was sent again; without, also that.
func (b *Bus) Dead(ctx context.Context, tenant string, f core.Filter) (core.Page[DeadLetter], error) {
	var none core.Page[DeadLetter]
	f, err := f.Check()
	if err != nil {
		return none, err
	}
	if !slices.Contains(append(DeadReasons(), ""), f.Status) {
		return none, core.Invalid("status", f.Status, strings.Join(DeadReasons(), ", "))
	}
	var items []DeadLetter
	total, narrows := 0, f.Narrows()
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		seen := 0
		var bad error
		err := tx.Scan(bDead, nil, nil, true, func(_, v []byte) bool {
			seen++
			if !narrows && seen <= f.Offset() {
				return true
			}
			if seen%1024 == 0 && ctx.Err() != nil {
				bad = ctx.Err()
				return false
			}
			var d DeadLetter
			if bad = core.DecodeStored(v, &d); bad != nil {
				return false
			}
			if !d.fits(f) {
				return true
			}
			if total++; (total > f.Offset() || !narrows) && len(items) < f.Size {
				items = append(items, d)
			}
			return narrows || len(items) < f.Size
		})
		if !narrows {
			total = int(tx.Counter(countLetters))
		}
		if err == nil {
			err = bad
		}
		return err
	})
	if err != nil {
		return none, explain("list the dead letters", err)
	}
	return core.NewPage(items, f, total), nil
}

// DeadReasons are the values that Dead filters by.
func DeadReasons() []string {
	return []string{ReasonExpired, ReasonRefused, ReasonFull, ReasonUnanswered, resent}
}

const resent = "resent"

func (d *DeadLetter) fits(f core.Filter) bool {
	return (f.Status == "" || f.Status == d.Reason || f.Status == resent && d.ResentAs != "") &&
		(f.Agent == "" || f.Agent == d.SenderID || f.Agent == d.RecipientID || f.Agent == d.Subscription) &&
		same(f.Kind, string(d.MessageType)) && same(f.Trace, d.TraceID) && same(f.Task, d.TaskID) && f.Session == "" &&
		within(d.At, f) && holds(f.Match, d.MessageID, d.Topic, d.SenderID, d.RecipientID, d.Subscription, d.Detail)
}

// Resend accepts a message again, as a new one of the same content: to all
// the subscribers of its topic, or to its recipient. A request begins a new
// conversation. The dead letters of the old message say so.
func (b *Bus) Resend(ctx context.Context, by core.Caller, id string) (Message, error) {
	m, err := b.find(ctx, by, id)
	if err != nil {
		return Message{}, err
	}
	if m.Status == Open {
		return Message{}, core.Errorf(core.Conflict, "message_id: %s is still unread", id).With("field", "message_id")
	}
	s := Send{
		Topic: m.Topic, Recipient: m.RecipientID, Sender: m.SenderID, Type: m.MessageType, Payload: m.Payload,
		TTL: m.TTL, Priority: m.Priority, CorrelationID: m.CorrelationID, Trace: m.TraceID, Task: m.TaskID,
	}
	if m.MessageType == Request {
		s.CorrelationID = ""
	}
	d, err := s.check()
	if err != nil {
		return Message{}, err
	}
	d.resendOf = m
	return b.accept(ctx, by, d)
}

// markResent notes in the dead letters of a message by which it was repeated.
func markResent(tx *audit.Tx, old, repeat *Message) error {
	keys, err := lettersOf(tx, old.Seq)
	if err != nil {
		return fmt.Errorf("read the dead letters of %s: %w", old.MessageID, err)
	}
	for _, k := range keys {
		var d DeadLetter
		if _, err := fetch(tx, bDead, k, &d); err != nil {
			return err
		}
		if d.ResentAs == "" {
			tx.Add(countDead, -1)
		}
		d.ResentAs = repeat.MessageID
		if err := put(tx, bDead, k, &d); err != nil {
			return err
		}
	}
	return nil
}
