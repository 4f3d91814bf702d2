package bus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// The view leaves out the events that tell of messages, which are on the bus
// themselves, and those of rows alone: a reader's own progress is among them,
// and one that answers every event would never come to an end.
const (
	ownEvents = "message."
	rowEvents = "rows."
)

// derive shows an event of the audit log as a message; nil when it is one of
// the bus's own. Its id follows from the event alone.
func derive(e *audit.Event) *Message {
	topic := sysToken + "." + e.EventType
	if strings.HasPrefix(e.EventType, ownEvents) || strings.HasPrefix(e.EventType, rowEvents) || !wellFormed(topic, false) {
		return nil
	}
	told, err := e.Data()
	if err != nil {
		return nil
	}
	told.Rows = nil // they prove what is stored, and tell a reader nothing
	payload := core.MustEncode(eventPayload{
		EventID: e.EventID, EventType: e.EventType, Actor: e.Actor, ActorKind: e.Kind, Door: e.Door, Event: core.MustEncode(told),
	})
	if len(payload) > MaxPayload {
		payload = core.MustEncode(eventPayload{EventID: e.EventID, EventType: e.EventType, Actor: e.Actor, ActorKind: e.Kind, Door: e.Door})
	}
	return &Message{
		MessageID: core.NewUUID(e.TenantID, e.Seq, seeded(e.EventID)), Topic: topic, TenantID: e.TenantID, Seq: e.Seq,
		SenderID: System, MessageType: Event, Timestamp: e.CreatedAt, TTL: MaxTTL, Priority: DefaultPriority,
		TraceID: e.TraceID, Fate: Fate{Status: Published}, Payload: payload,
	}
}

// eventPayload is the payload of a derived message. What the event says is
// left out when it is larger than a message may be; event_id leads to it.
type eventPayload struct {
	EventID   string         `json:"event_id"`
	EventType string         `json:"event_type"`
	Actor     string         `json:"actor"`
	ActorKind core.ActorKind `json:"actor_kind"`
	Door      core.Door      `json:"door"`
	Event     core.Raw       `json:"event,omitzero"` // {"subject","id","state","detail"}
}

// taskOf is the task that an event is about, "" when it names none.
func taskOf(e *audit.Event) string {
	var p audit.Payload
	if core.DecodeStored(e.Payload, &p) != nil {
		return ""
	}
	id := p.ID
	if p.Subject != "task" {
		id = cmp.Or(taskIn(p.State), taskIn(p.Detail))
	}
	if _, err := core.LocalSeq(core.TaskPrefix, e.TenantID, id); err != nil {
		return ""
	}
	return id
}

func taskIn(part core.Raw) string {
	var names struct {
		Task string `json:"task_id"`
	}
	_ = core.DecodeStored(part, &names) // a part of another shape names none
	return names.Task
}

// seeded is the source of a derived message's id.
func seeded(eventID string) io.Reader {
	sum := sha256.Sum256([]byte("bus " + eventID))
	return bytes.NewReader(sum[:])
}

// eventsAfter returns up to n derived messages after an audit seq that fit,
// and the seq up to which it looked.
func (b *Bus) eventsAfter(ctx context.Context, tenant string, seq uint64, n int, fits func(*Message) bool) ([]*Message, uint64, error) {
	var out []*Message
	for len(out) < n {
		events, err := b.ledger.Since(ctx, tenant, seq, batch)
		if err != nil {
			return nil, seq, err
		}
		for i := range events {
			if len(out) == n {
				return out, seq, nil
			}
			seq = events[i].Seq
			if m := derive(&events[i]); m != nil && fits(m) {
				m.TaskID = taskOf(&events[i])
				out = append(out, m)
			}
		}
		if len(events) < batch {
			break
		}
	}
	return out, seq, nil
}

// event returns the derived message with an id.
func (b *Bus) event(ctx context.Context, tenant string, seq uint64, id string) (*Message, error) {
	if seq > 0 {
		events, err := b.ledger.Since(ctx, tenant, seq-1, 1)
		if err != nil {
			return nil, err
		}
		if len(events) == 1 && events[0].Seq == seq {
			if m := derive(&events[0]); m != nil && m.MessageID == id {
				m.TaskID = taskOf(&events[0])
				return m, nil
			}
		}
	}
	return nil, core.Missing("message", id)
}
