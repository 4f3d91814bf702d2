package bus

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
)

// Type classifies a message (model 3, MessageType).
type Type string

const (
	Event    Type = "event"    // something happened
	Request  Type = "request"  // wants a response; goes to one recipient
	Response Type = "response" // answers an open request
	Error    Type = "error"    // an error notification, or the answer to a request that failed
)

// Types are the types in the model's order.
func Types() []Type { return []Type{Event, Request, Response, Error} }

// Status is what became of a message; ours.
type Status string

// The statuses. Of a broadcast it is open until nobody has it unread any more.
const (
	Published Status = "published" // has a topic: each subscriber reads it for itself
	Open      Status = "open"      // in a mailbox, unread
	Taken     Status = "read"      // read and acknowledged
	Expired   Status = "expired"   // nobody read it within its ttl
	Refused   Status = "refused"   // the mailbox was full
)

// Statuses are the values that a list filters by. "unanswered" are the
// requests that still wait for their answer, and "dead" the dead letters that were
// not sent again.
func Statuses() []string {
	return []string{string(Published), string(Open), string(Taken), string(Expired), string(Refused), Unanswered, dead}
}

const (
	Unanswered = "unanswered"
	dead       = "dead"
)

// Message is one message (model 3). It must not be modified.
type Message struct {
	MessageID     string    `json:"message_id"`
	Topic         string    `json:"topic,omitempty"` // or RecipientID, never both
	TenantID      string    `json:"tenant_id"`
	Seq           uint64    `json:"seq"` // place in the tenant's messages, from 1; ours
	SenderID      string    `json:"sender_id"`
	RecipientID   string    `json:"recipient_id,omitempty"`
	MessageType   Type      `json:"message_type"`
	Timestamp     time.Time `json:"timestamp"`
	TTL           int       `json:"ttl"`      // seconds
	Priority      int       `json:"priority"` // 1 is the highest
	CorrelationID string    `json:"correlation_id,omitempty"`
	TraceID       string    `json:"trace_id"`
	TaskID        string    `json:"task_id,omitempty"`
	ResendOf      string    `json:"resend_of,omitempty"`  // message that this one repeats
	Recipients    []string  `json:"recipients,omitempty"` // whom a broadcast went to
	// The operator who sent it, in whatever name, and who that is to the door.
	SentBy     string `json:"sent_by,omitempty"`
	SentPerson string `json:"sent_person,omitempty"`

	Fate

	Payload core.Raw `json:"payload,omitzero"` // a JSON object, compact
}

// Fate is what became of a message, filled in when it is read.
type Fate struct {
	Status     Status      `json:"status,omitempty"`
	Unanswered bool        `json:"unanswered,omitzero"`   // a request that still waits for its answer
	ResponseID string      `json:"response_id,omitempty"` // of a request: its answer
	Dead       string      `json:"dead,omitempty"`        // why it did not get to one of those it was meant for: expired, refused, unanswered
	ResentAs   string      `json:"resent_as,omitempty"`   // the message that repeats it
	Deliveries []Delivered `json:"deliveries,omitempty"`  // by Get: each mailbox that had it, and each durable subscription that missed or refused it
}

// Delivered is what became of a message for one recipient or subscription.
type Delivered struct {
	RecipientID  string    `json:"recipient_id,omitempty"`
	Subscription string    `json:"subscription,omitempty"`
	Status       Status    `json:"status"`
	At           time.Time `json:"at,omitzero"`
	Reason       string    `json:"reason,omitempty"`
}

// ExpiresAt is when the message's time to live ends.
func (m *Message) ExpiresAt() time.Time { return m.Timestamp.Add(time.Duration(m.TTL) * time.Second) }

// to are those whose mailboxes a message was meant for.
func (m *Message) to() []string {
	switch {
	case m.Topic != "" || m.RecipientID == "":
		return nil
	case m.RecipientID == Broadcast:
		return m.Recipients
	}
	return []string{m.RecipientID}
}

func (m *Message) expired(now time.Time) bool { return !now.Before(m.ExpiresAt()) }

// Bounds and defaults of a message (model 3).
const (
	MaxPayload      = 1 << 20 // bytes of JSON, as of a task's input
	DefaultTTL      = 60      // seconds
	MaxTTL          = 3600    // seconds
	DefaultPriority = 5
	LowestPriority  = 10
)

// Send is a message to be accepted. Zero fields take their defaults.
type Send struct {
	Topic         string   `json:"topic,omitempty"`                                                // to subscribers, or
	Recipient     string   `json:"recipient_id,omitempty"`                                         // to an agent, Controller, System or Broadcast
	Sender        string   `json:"sender_id,omitempty"`                                            // "" is System, or the agent who calls
	Type          Type     `json:"message_type,omitempty" allow:"event, request, response, error"` // "" is Event
	Payload       core.Raw `json:"payload"`                                                        // a JSON object of at most MaxPayload bytes
	TTL           int      `json:"ttl,omitzero" allow:"1-3600 seconds"`
	Priority      int      `json:"priority,omitzero" allow:"1-10, 1 is read first"`
	CorrelationID string   `json:"correlation_id,omitempty"` // version 4 UUID; a request gets one
	Trace         string   `json:"trace_id,omitempty"`       // "" takes a fresh one
	Task          string   `json:"task_id,omitempty"`        // task that it belongs to
}

var bounded = bound.For[Send]()

// draft is a Send on its way: once checked it is well formed and has its
// defaults. What depends on the tenant's state is checked when it is accepted.
type draft struct {
	Send
	digest   string // sha256 of the payload, hex
	reply    bool   // is meant to close a conversation, nothing else
	resendOf *Message
	accepted func(*Message) // told inside the transaction, before anybody sees the message
}

// check reports the first thing wrong with a message by itself (model 3,
// Message Validation). It does what is costly, so that the transaction has
// little left to do.
func (d *draft) check() error {
	d.Type, d.TTL, d.Priority = cmp.Or(d.Type, Event), cmp.Or(d.TTL, DefaultTTL), cmp.Or(d.Priority, DefaultPriority)
	if err := bounded(&d.Send); err != nil {
		return err
	}
	if err := d.address(); err != nil {
		return err
	}
	switch {
	case d.CorrelationID != "" && !core.IsUUID(d.CorrelationID):
		return core.Invalid("correlation_id", d.CorrelationID, "a version 4 UUID in lower case")
	case d.Type == Response && d.CorrelationID == "":
		return core.Errorf(core.InvalidInput, "correlation_id: a response needs that of its request").With("field", "correlation_id")
	}
	if d.Trace != "" {
		if err := core.CheckTrace(d.Trace); err != nil {
			return err
		}
	}
	if err := core.CheckObject("payload", d.Payload, MaxPayload); err != nil {
		return err
	}
	d.Payload = bytes.Clone(d.Payload)
	if err := d.Payload.Compact(); err != nil {
		return core.Errorf(core.InvalidInput, "payload: not valid JSON: %v", err).With("field", "payload")
	}
	sum := sha256.Sum256(d.Payload)
	d.digest = hex.EncodeToString(sum[:])
	return nil
}

// address checks where a message goes and what kind may go there.
func (d *draft) address() error {
	switch {
	case d.Topic == "" && d.Recipient == "":
		return core.Errorf(core.InvalidInput, "topic or recipient_id: a message needs one of them").With("field", "topic")
	case d.Topic != "" && d.Recipient != "":
		return core.Errorf(core.InvalidInput, "topic and recipient_id: a message has only one of them").With("field", "recipient_id")
	case d.Type == Request && (d.Topic != "" || d.Recipient == Broadcast):
		return core.Errorf(core.InvalidInput, "recipient_id: a request goes to one recipient, who answers it").With("field", "recipient_id")
	case d.Type == Response && (d.Topic != "" || d.Recipient == Broadcast):
		return core.Errorf(core.InvalidInput, "recipient_id: a response goes to the sender of its request").With("field", "recipient_id")
	case d.Topic != "":
		return checkPublish(d.Topic)
	}
	return nil
}

// parties checks that sender and recipient exist. Who sent a message that is
// sent again may be gone by now.
func (b *Bus) parties(tenant string, d *draft) error {
	dir := b.opt.Directory
	if d.Sender != System && d.resendOf == nil && !dir.Known(tenant, d.Sender) {
		return b.stranger(tenant, "sender_id", d.Sender, `"system" or an agent of this tenant`)
	}
	if d.Recipient != "" && d.Recipient != System && d.Recipient != Controller && d.Recipient != Broadcast && !dir.Known(tenant, d.Recipient) {
		return b.stranger(tenant, "recipient_id", d.Recipient, "an agent of this tenant, controller, system, broadcast")
	}
	if d.Task != "" {
		if _, err := core.LocalSeq(core.TaskPrefix, tenant, d.Task); err != nil {
			return err
		}
	}
	return nil
}

// stranger tells a name of another tenant from one that nobody has.
func (b *Bus) stranger(tenant, field, id, allowed string) error {
	dir, ok := b.opt.Directory.(foreigners)
	elsewhere := ok && dir.Elsewhere(tenant, id)
	if core.IsUUID(id) && !elsewhere {
		_, err := core.LocalUUID(field, tenant, id)
		elsewhere = err != nil
	}
	if elsewhere {
		return fmt.Errorf("%s %s: %w", field, id, core.ErrForeign)
	}
	return core.Invalid(field, id, allowed)
}
