package bus

import (
	"time"

	"swarmdeck/engine/core"
)

// Type classifies a message (seed 3, MessageType).
type Type string

// The types.
const (
	Event    Type = "event"    // something happened
	Request  Type = "request"  // wants a response; goes to one recipient
	Response Type = "response" // answers an open request
	Error    Type = "error"    // an error notification, or the answer to a request that failed
)

// Types are the types in the seed's order.
func Types() []Type { return []Type{Event, Request, Response, Error} }

// Status is what became of a message; ours.
type Status string

// The statuses. Of a broadcast it is open until nobody has it unread any more.
const (
	Published Status = "published" // has a topic: each subscriber reads it for itself
	Open      Status = "open"      // in a mailbox, unread
	Taken     Status = "read"      // read and acknowledged
	Expired   Status = "expired"   // nobody read it within its ttl
	Refused   Status = "refused"   // its reader refused it
)

// Statuses are the values that a list filters by. "unanswered" are the
// requests that still wait for their answer.
func Statuses() []string {
	return []string{string(Published), string(Open), string(Taken), string(Expired), string(Refused), unanswered}
}

const unanswered = "unanswered"

// Message is one message (seed 3). It must not be modified.
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

	// What became of it, filled in when it is read.
	Status     Status      `json:"status,omitempty"`
	Unanswered bool        `json:"unanswered,omitzero"`   // a request that still waits for its answer
	ResponseID string      `json:"response_id,omitempty"` // of a request: its answer
	Deliveries []Delivered `json:"deliveries,omitempty"`  // by Get: each mailbox that had it

	Payload core.Raw `json:"payload,omitzero"` // a JSON object, compact
}

// Delivered is what became of a message in one mailbox.
type Delivered struct {
	RecipientID string    `json:"recipient_id"`
	Status      Status    `json:"status"`
	At          time.Time `json:"at,omitzero"`
	Reason      string    `json:"reason,omitempty"`
}

// ExpiresAt is when the message's time to live ends.
func (m *Message) ExpiresAt() time.Time { return m.Timestamp.Add(time.Duration(m.TTL) * time.Second) }

// to are those whose mailboxes a message was meant for.
func (m *Message) to() []string {
	switch m.RecipientID {
	case "":
		return nil
	case Broadcast:
		return m.Recipients
	}
	return []string{m.RecipientID}
}

func (m *Message) expired(now time.Time) bool { return !now.Before(m.ExpiresAt()) }

// Bounds and defaults of a message (seed 3).
const (
	MaxPayload      = 256 << 10 // bytes of JSON
	DefaultTTL      = 60        // seconds
	MaxTTL          = 3600      // seconds
	DefaultPriority = 5
	LowestPriority  = 10
)

// Send is a message to be accepted. Zero fields take their defaults.
type Send struct {
	Topic         string   `json:"topic,omitempty"`          // to subscribers, or
	Recipient     string   `json:"recipient_id,omitempty"`   // to an agent, Controller, System or Broadcast
	Sender        string   `json:"sender_id,omitempty"`      // "" is System, or the agent who calls
	Type          Type     `json:"message_type,omitempty"`   // "" is Event
	Payload       core.Raw `json:"payload"`                  // a JSON object of at most MaxPayload bytes
	TTL           int      `json:"ttl,omitzero"`             // 1-3600 s
	Priority      int      `json:"priority,omitzero"`        // 1-10
	CorrelationID string   `json:"correlation_id,omitempty"` // version 4 UUID; a request gets one
	Trace         string   `json:"trace_id,omitempty"`       // "" takes a fresh one
	Task          string   `json:"task_id,omitempty"`        // task that it belongs to
}

// ParseSend reads a message to be accepted from JSON with the seed's names.
// Fields that the bus fills in itself are refused like any unknown one.
func ParseSend(data []byte) (Send, error) {
	if err := core.CheckObject("message", data, MaxPayload+4096); err != nil {
		return Send{}, err
	}
	var s Send
	if err := core.Decode(data, &s); err != nil {
		return Send{}, err
	}
	_, err := s.check()
	return s, err
}
