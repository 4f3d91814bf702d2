package bus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
)

// Bounds of a feed's tail: newer messages push older ones out, and a reader
// that is further behind reads from the store.
const (
	tailMessages = 4096
	tailBytes    = 4 << 20 // of payload
)

// feed hands a tenant's new messages to its subscriptions. It keeps the newest
// ones in memory, so that a hundred readers don't read the store a hundred
// times, and wakes the readers from a goroutine of its own, so that their
// number costs the store's writer nothing. Both are only there while somebody
// subscribes.
type feed struct {
	mu     sync.RWMutex
	subs   map[*Subscription]struct{}
	first  uint64 // seq of tail[0]
	tail   []*Message
	bytes  int
	newest uint64 // newest seq seen here; 0 before the first
	system int    // subscriptions to the engine's events
	bell   chan struct{}
}

// message takes in a message that was committed. It runs on the store's
// writer, in the order of the commits.
func (f *feed) message(m *Message) {
	f.mu.Lock()
	f.newest = m.Seq
	if len(f.subs) > 0 {
		if len(f.tail) == 0 {
			f.first = m.Seq
		}
		f.tail = append(f.tail, m)
		if f.bytes += len(m.Payload); len(f.tail) > tailMessages || f.bytes > tailBytes {
			f.trim()
		}
	}
	f.mu.Unlock()
	f.ring()
}

// trim drops the older half of the tail, and more where the payloads are big.
func (f *feed) trim() {
	n := 0
	for size := f.bytes; n < len(f.tail)-1 && (n < len(f.tail)/2 || size > tailBytes/2); n++ {
		size -= len(f.tail[n].Payload)
	}
	for _, m := range f.tail[:n] {
		f.bytes -= len(m.Payload)
	}
	f.first += uint64(n)
	f.tail = append(make([]*Message, 0, tailMessages), f.tail[n:]...)
}

// event says that the engine's log grew.
func (f *feed) event() {
	f.mu.RLock()
	wanted := f.system > 0
	f.mu.RUnlock()
	if wanted {
		f.ring()
	}
}

// ring wakes the subscriptions soon.
func (f *feed) ring() {
	f.mu.RLock() // held for the ring: leave closes the bell
	defer f.mu.RUnlock()
	if f.bell != nil {
		loop.Ring(f.bell)
	}
}

// join adds a subscription; the first one starts the goroutine that wakes
// them, the last one that leaves ends it.
func (f *feed) join(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs == nil {
		f.subs = map[*Subscription]struct{}{}
	}
	f.subs[s] = struct{}{}
	if s.pattern.system() {
		f.system++
	}
	if f.bell == nil {
		f.bell = make(chan struct{}, 1)
		go f.wake(f.bell)
	}
}

func (f *feed) leave(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.subs[s]; !ok {
		return
	}
	delete(f.subs, s)
	if s.pattern.system() {
		f.system--
	}
	if len(f.subs) == 0 {
		close(f.bell)
		f.bell, f.tail, f.bytes = nil, nil, 0
	}
}

func (f *feed) wake(bell <-chan struct{}) {
	var all []*Subscription
	for range bell {
		f.mu.RLock()
		all = slices.AppendSeq(all[:0], maps.Keys(f.subs))
		f.mu.RUnlock()
		for _, s := range all {
			loop.Ring(s.bell)
		}
		clear(all)
	}
}

// after are the messages with seq >= from that fit, at most n, and the seq up to which
// it looked; false when the tail does not reach back that far.
func (f *feed) after(from uint64, n int, fits func(*Message) bool) (found []*Message, upto uint64, ok bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.newest > 0 && from > f.newest {
		return nil, from - 1, true
	}
	if len(f.tail) == 0 || from < f.first {
		return nil, 0, false
	}
	upto = from - 1
	for _, m := range f.tail[from-f.first:] {
		if len(found) >= n {
			break
		}
		upto = m.Seq
		if fits(m) {
			found = append(found, m)
		}
	}
	return found, upto, true
}

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
