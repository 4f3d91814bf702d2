package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// MaxQueue is the most messages that may wait for one agent.
const MaxQueue = 50

// Message is what an agent is told as soon as it can be: as its next task, or
// as part of the one that it works on. It is kept until it was handed over, so
// that a crash loses none, and becomes a task in the transaction that removes
// it, so that none is given twice.
type Message struct {
	MessageID string    `json:"message_id"`
	TenantID  string    `json:"tenant_id"`
	Agent     string    `json:"agent"`
	Text      string    `json:"text"`
	URI       string    `json:"uri,omitempty"`
	Steers    bool      `json:"steers,omitzero"` // it is meant for the task that the agent works on
	Place     int       `json:"place"`           // 1 is given first
	Told      string    `json:"told,omitempty"`  // task that it was told in, while that runs
	Held      string    `json:"held,omitempty"`  // why it could not be given: it waits until it is moved
	CreatedAt time.Time `json:"created_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`

	// Who said it. What becomes of it is done in their name.
	By       string         `json:"created_by"`
	ByKind   core.ActorKind `json:"created_kind"`
	ByPerson string         `json:"created_person,omitempty"`
	ByDoor   core.Door      `json:"created_door,omitempty"`
	Parent   string         `json:"parent_task_id,omitempty"` // that an agent worked on who said it
	Session  string         `json:"session_id,omitempty"`     // of the agent then
}

// author is who said it.
func (m *Message) author() core.Caller {
	return core.Caller{Tenant: m.TenantID, Name: m.By, Kind: m.ByKind, Person: m.ByPerson, Door: m.ByDoor}
}

// waits says that it has yet to be handed over.
func (m *Message) waits() bool { return m.Told == "" && m.Held == "" }

const messagePrefix = "qm"

// messagesOf finds messages by their agent.
const messagesOf = "agent.message.of"

func (f *roster) messageKind() record.Table[Message] {
	return &record.Kind[*Message]{
		Noun: "queued message", Subject: "agent_message", Bucket: "agent.message", Ledger: f.opt.Ledger, Follow: f.followMessage,
		ID:  func(m *Message) string { return m.MessageID },
		Key: record.Numbered(messagePrefix), Name: record.NumberedName(messagePrefix),
		Says: "agent place steers told held", Personal: func(e *record.Erasure, m *Message) { m.erase(e) },
		Indexes: []record.Index[*Message]{{Bucket: messagesOf, Word: func(m *Message) string { return m.Agent }}},
	}
}

// followMessage has an agent's member know its queue.
func (f *roster) followMessage(tenant, id string, now *Message) {
	if now != nil {
		if m := f.member(tenant, now.Agent); m != nil {
			m.queued(id, now)
		}
		return
	}
	for _, m := range f.members(tenant) {
		if find(m.look().queue, id) != nil {
			m.queued(id, nil)
			return
		}
	}
}

// queued puts a message into what is known of the queue, or takes it out.
func (m *member) queued(id string, now *Message) {
	m.Change(func() {
		queue := slices.DeleteFunc(slices.Clone(m.queue), func(x *Message) bool { return x.MessageID == id }) // readers share the old one
		if now != nil {
			queue = append(queue, now)
		}
		sortMessages(queue)
		m.queue = queue
	})
	m.ring()
}

// numbered is a queue whose places have no gaps where messages have left.
func numbered(queue []*Message) []*Message {
	queue = slices.Clone(queue)
	for i, x := range queue {
		if x.Place != i+1 {
			c := *x
			c.Place = i + 1
			queue[i] = &c
		}
	}
	return queue
}

func sortMessages(all []*Message) {
	slices.SortFunc(all, func(a, b *Message) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.MessageID, b.MessageID))
	})
}

// messagesIn are an agent's messages, the next first.
func (f *roster) messagesIn(tx *audit.Tx, agent string) (all []*Message, err error) {
	err = f.messages.Along(tx, messagesOf, agent, func(m *Message) error {
		all = append(all, m)
		return nil
	})
	sortMessages(all)
	return all, err
}

// Queue is what waits for an agent, the next first, and what it was told in the
// task that it works on. The records are shared: they must not be modified.
func (f *roster) Queue(ctx context.Context, tenant, name string) ([]*Message, error) {
	m, err := f.find(ctx, reader(tenant), name)
	if err != nil {
		return nil, err
	}
	return numbered(m.look().queue), nil
}

// Queued is Queue without an error: nothing waits for who is no agent.
func (f *roster) Queued(tenant, name string) []*Message {
	if m := f.member(tenant, name); m != nil {
		return numbered(m.look().queue)
	}
	return nil
}

// enqueue keeps a message for an agent.
func (f *roster) enqueue(ctx context.Context, by core.Caller, m *member, text, uri string, steers bool) (out Message, err error) {
	a := m.rec.Load()
	parent := ""
	if giver := f.member(by.Tenant, by.Name); by.Kind == core.Agent && giver != nil {
		parent = giver.rec.Load().TaskID
	}
	err = f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		there, err := f.agents.Load(tx, m.name)
		if err != nil {
			return err
		}
		if there == nil {
			return core.Missing("agent", m.name)
		}
		queue, err := f.messagesIn(tx, m.name)
		if err != nil {
			return err
		}
		if len(queue) >= MaxQueue {
			return core.Errorf(core.Conflict, "agent %s has %d messages waiting; allowed: at most %d", m.name, len(queue), MaxQueue).
				With("field", "agent").With("value", m.name)
		}
		out = Message{
			MessageID: core.NewID(messagePrefix, tx.Tenant(), f.messages.Next(tx)),
			Agent:     m.name, Text: text, URI: uri, Steers: steers, Place: 1,
			By: by.Name, ByKind: by.Kind, ByPerson: by.Person, ByDoor: by.Door, Parent: parent, Session: a.SessionID,
		}
		at := len(queue)
		if steers { // before all that can wait for its own turn
			if at = slices.IndexFunc(queue, func(x *Message) bool { return !x.Steers }); at < 0 {
				at = len(queue)
			}
		}
		if err := f.place(tx, slices.Insert(queue, at, &out), &out); err != nil {
			return err
		}
		return f.messages.Save(tx, record.Event{Type: "agent.message_queued", Detail: messageDetail(&out)}, nil, &out)
	})
	return out, err
}

// place numbers a queue from 1 on and writes those whose number is another now,
// all but one, which its own event writes.
func (f *roster) place(tx *audit.Tx, queue []*Message, but *Message) error {
	for i, x := range queue {
		if x.Place == i+1 {
			continue
		}
		if x == but {
			x.Place = i + 1
			continue
		}
		c := *x
		c.Place = i + 1
		if err := f.messages.Write(tx, x, &c); err != nil {
			return err
		}
	}
	return nil
}

// messageDetail is what events say of a message; its text is in the record alone.
func messageDetail(m *Message) map[string]any {
	return map[string]any{"agent": m.Agent, "bytes": len(m.Text), "steers": m.Steers}
}

// Withdraw takes a message out of its queue before it is given. It returns the message.
func (f *roster) Withdraw(ctx context.Context, by core.Caller, name, id string) (gone Message, err error) {
	if _, err := f.find(ctx, by, name); err != nil {
		return gone, err
	}
	err = f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		x, err := f.waiting(tx, name, id)
		if err != nil {
			return err
		}
		gone = *x
		return f.messages.Remove(tx, record.Event{Type: "agent.message_withdrawn", Detail: messageDetail(x)}, x)
	})
	return gone, err
}

// Reorder gives a message another place in its queue, 1 the next to be given; one past the
// end is the last. One that was held is tried again.
func (f *roster) Reorder(ctx context.Context, by core.Caller, name, id string, place int) (out Message, err error) {
	if place < 1 || place > MaxQueue {
		return out, core.Invalid("place", place, fmt.Sprintf("1-%d", MaxQueue))
	}
	if _, err := f.find(ctx, by, name); err != nil {
		return out, err
	}
	err = f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		x, err := f.waiting(tx, name, id)
		if err != nil {
			return err
		}
		queue, err := f.messagesIn(tx, name)
		if err != nil {
			return err
		}
		queue = slices.DeleteFunc(queue, func(y *Message) bool { return y.MessageID == id || y.Told != "" })
		out = *x
		out.Held = ""
		if err := f.place(tx, slices.Insert(queue, min(place-1, len(queue)), &out), &out); err != nil {
			return err
		}
		return f.messages.Save(tx, record.Event{Type: "agent.message_moved", Detail: messageDetail(&out)}, x, &out)
	})
	return out, err
}

// waiting is a message of an agent that was not handed over.
func (f *roster) waiting(tx *audit.Tx, name, id string) (*Message, error) {
	x, err := f.messages.Load(tx, id)
	if err != nil {
		return nil, err
	}
	if x == nil || x.Agent != name {
		return nil, core.Missing("queued message", id)
	}
	if x.Told != "" {
		return nil, core.Errorf(core.Conflict, "message %s was told to agent %s already, in task %s", id, name, x.Told).With("field", "message").With("value", id)
	}
	return x, nil
}

// dropMessages removes what waits for an agent that is deleted, with it.
func (f *roster) dropMessages(tx *audit.Tx, name string) error {
	queue, err := f.messagesIn(tx, name)
	for _, x := range queue {
		err = errors.Join(err, f.messages.Remove(tx, record.Event{Type: "agent.message_dropped", Detail: messageDetail(x)}, x))
	}
	return err
}

func (m *Message) erase(e *record.Erasure) {
	if e.Of.Is(m.By, m.ByPerson) || m.Agent == e.Of.Name {
		e.Waits("message " + m.MessageID + " (it waits to be given: agent withdraw " + m.Agent + " " + m.MessageID + ")")
	}
}
