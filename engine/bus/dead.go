package bus

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
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
	Seq          uint64    `json:"seq"` // of the message, or of the engine's event
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

const bGrave store.Bucket = "message.grave" // dead letters by consumer

// Dead letters are counted by whether they were sent again.
const (
	countDead = "message.dead"
	unsent    = "unsent"
)

func (d *DeadLetter) key() record.Key {
	kind, name := d.consumer()
	return ofConsumer(d.Seq, kind, name)
}

func (b *Bus) deadKind() record.Table[DeadLetter] {
	return &record.Kind[*DeadLetter]{
		Noun: "dead letter", Bucket: "message.dead", Quiet: true, Ledger: b.ledger,
		ID:    func(d *DeadLetter) string { return d.MessageID },
		Place: (*DeadLetter).key, Personal: eraseRefusal, Fits: (*DeadLetter).fits, Statuses: DeadReasons(),
		Indexes: []record.Index[*DeadLetter]{
			{Bucket: bGrave, Count: string(bGrave), Word: (*DeadLetter).grave},
			{Count: countDead, Word: func(d *DeadLetter) string {
				if d.ResentAs == "" {
					return unsent
				}
				return ""
			}},
		},
	}
}

// consumer is who did not get the message.
func (d *DeadLetter) consumer() (kind byte, name string) {
	switch {
	case d.Reason == ReasonUnanswered:
		return toAnswer, ""
	case d.Subscription == "":
		return toMailbox, d.RecipientID
	case strings.HasPrefix(d.Topic, sysToken+"."):
		return toEvents, d.Subscription
	}
	return toSubscription, d.Subscription
}

// grave is the mailbox or subscription that the letter counts for. Requests
// without an answer are no one's in particular: they go with their messages.
func (d *DeadLetter) grave() string {
	kind, name := d.consumer()
	if kind == toAnswer {
		return ""
	}
	return string(kind) + name
}

// maxLetters is how many dead letters a mailbox or a durable subscription
// keeps, the newest: where nobody reads, every message becomes one. The audit
// log tells of the older ones too.
const maxLetters = 1000

// burial makes dead letters of messages that share one reason and one
// consumer, with one event for all.
type burial struct {
	b              *Bus
	kind           byte
	name           string
	reason, detail string
	ids            []string
}

// add makes a message a dead letter, unless it is one already, and drops the
// oldest of too many.
func (g *burial) add(tx *audit.Tx, m *Message) error {
	letters := g.b.dead
	d := DeadLetter{
		MessageID: m.MessageID, Seq: m.Seq, Topic: m.Topic, SenderID: m.SenderID, RecipientID: m.RecipientID, MessageType: m.MessageType,
		Timestamp: m.Timestamp, Reason: g.reason, Detail: g.detail, At: tx.Now(), TraceID: m.TraceID, TaskID: m.TaskID,
	}
	switch g.kind {
	case toMailbox:
		d.RecipientID = g.name
	case toSubscription, toEvents:
		d.Subscription = g.name
	}
	known, err := letters.At(tx, d.key())
	if err != nil || known != nil {
		return err
	}
	if err := letters.Write(tx, nil, &d); err != nil {
		return err
	}
	if grave := d.grave(); letters.Counted(tx, string(bGrave), grave) > maxLetters {
		var oldest *DeadLetter
		err := letters.Along(tx, bGrave, grave, func(d *DeadLetter) error {
			oldest = d
			return record.ErrStop
		})
		if err != nil {
			return err
		}
		if err := letters.Leave(tx, nil, oldest); err != nil {
			return err
		}
		tx.Add(countDropped+grave, 1)
	}
	tx.Changed("message", m.MessageID)
	g.ids = append(g.ids, m.MessageID)
	return nil
}

// bury adds messages and audits them.
func (g *burial) bury(tx *audit.Tx, messages ...*Message) error {
	for _, m := range messages {
		if err := g.add(tx, m); err != nil {
			return err
		}
	}
	return g.record(tx)
}

// record audits what was added.
func (g *burial) record(tx *audit.Tx) error {
	if len(g.ids) == 0 {
		return nil
	}
	subject := map[byte]string{toMailbox: "mailbox", toSubscription: "subscription", toEvents: "subscription", toAnswer: "message"}[g.kind]
	detail := map[string]any{"reason": g.reason, "messages": g.ids}
	if g.detail != "" {
		detail["detail_sha256"] = core.SHA256(g.detail)
	}
	_, err := tx.Record(audit.Entry{Type: "message.dead", Subject: subject, ID: cmp.Or(g.name, g.ids[0]), Detail: detail})
	return err
}

// lose makes dead letters of what expired before a durable subscription came
// to it.
func (b *Bus) lose(ctx context.Context, tenant, name string, messages []*Message) error {
	if len(messages) == 0 {
		return nil
	}
	return b.change(ctx, core.Self(tenant, "bus"), "record what expired", func(tx *audit.Tx) error {
		g := burial{b: b, kind: toSubscription, name: name, reason: ReasonExpired}
		return g.bury(tx, messages...)
	})
}

// Dead lists the dead letters, those of the newest message first. f.Status is
// a reason, f.Agent a sender, recipient or subscription, f.Kind a type; Match
// looks into ids, topic, names and detail. With f.Status "resent" it lists
// only what was sent again; without, also that.
func (b *Bus) Dead(ctx context.Context, tenant string, f core.Filter) (core.Page[DeadLetter], error) {
	page, err := record.Paged(b.dead.Find(ctx, tenant, record.Query[*DeadLetter]{Filter: f}))
	return page, explain("list the dead letters", err)
}

// DeadReasons are the values that Dead filters by.
func DeadReasons() []string {
	return []string{ReasonExpired, ReasonRefused, ReasonFull, ReasonUnanswered, resent}
}

const resent = "resent"

func (d *DeadLetter) fits(f core.Filter) bool {
	return (f.Status == "" || f.Status == d.Reason || f.Status == resent && d.ResentAs != "") &&
		core.WantsAny(f.Agent, d.SenderID, d.RecipientID, d.Subscription) &&
		core.Wants(f.Kind, string(d.MessageType)) && core.Wants(f.Trace, d.TraceID) && core.Wants(f.Task, d.TaskID) && f.Session == "" &&
		f.Within(d.At) && f.Finds(d.MessageID, d.Topic, d.SenderID, d.RecipientID, d.Subscription, d.Detail, d.Reason)
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
	if core.IsErased(m.Payload) {
		return Message{}, core.Errorf(core.Conflict, "message_id: the payload of %s was erased", id).With("field", "message_id")
	}
	s := Send{
		Topic: m.Topic, Recipient: m.RecipientID, Sender: m.SenderID, Type: m.MessageType, Payload: m.Payload,
		TTL: m.TTL, Priority: m.Priority, CorrelationID: m.CorrelationID, Trace: m.TraceID, Task: m.TaskID,
	}
	if m.MessageType == Request {
		s.CorrelationID = ""
	}
	return b.accept(ctx, by, &draft{Send: s, resendOf: m})
}

// markResent notes in the dead letters of a message by which it was repeated.
func (b *Bus) markResent(tx *audit.Tx, old, repeat *Message) error {
	letters, err := b.lettersOf(tx, old.Seq)
	for _, was := range letters {
		d := *was
		d.ResentAs = repeat.MessageID
		err = errors.Join(err, b.dead.Write(tx, was, &d))
	}
	return err
}

// removeLetters removes the dead letters of a message.
func (b *Bus) removeLetters(tx *audit.Tx, seq uint64) error {
	letters, err := b.lettersOf(tx, seq)
	for _, d := range letters {
		err = errors.Join(err, b.dead.Leave(tx, nil, d))
		if dropped := countDropped + d.grave(); b.dead.Counted(tx, string(bGrave), d.grave()) == 0 {
			tx.Add(dropped, -tx.Counter(dropped))
		}
	}
	return err
}

// lettersOf are the dead letters of a message. Those of an event of the engine
// are not: its seq is one of the audit log.
func (b *Bus) lettersOf(tx *audit.Tx, seq uint64) (letters []*DeadLetter, err error) {
	err = b.dead.Under(tx, record.Seq(seq), func(d *DeadLetter) error {
		if kind, _ := d.consumer(); kind != toEvents {
			letters = append(letters, d)
		}
		return nil
	})
	return letters, err
}
