package cad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// broadcastTopic is where broadcasts can be followed on the bus, beside the
// inboxes of the agents.
const broadcastTopic = "cad.broadcast"

// SendMessage sends a message from one agent to another or to all (controller
// operation send_message). It goes over the bus, and stays in its receiver's
// inbox for good. A broadcast reaches every agent of the tenant that is not
// terminated, but its sender.
func (c *roster) SendMessage(ctx context.Context, by core.Caller, m SendMessage) (AgentMessage, error) {
	if err := m.check(); err != nil {
		return AgentMessage{}, err
	}
	if err := c.correspondents(ctx, by, m); err != nil {
		return AgentMessage{}, err
	}
	var sent AgentMessage
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		sent, err = c.SendIn(tx, m)
		return err
	})
	if err != nil {
		return AgentMessage{}, audit.Explain("send a message", c.foreign(ctx, by, m.To, err))
	}
	return sent, nil
}

// correspondents checks that both sides exist, so that a name of another tenant
// is audited.
func (c *roster) correspondents(ctx context.Context, by core.Caller, m SendMessage) error {
	for _, p := range []struct{ field, id string }{{"from_agent_id", m.From}, {"to_agent_id", m.To}} {
		if p.id == ToAll && p.field == "to_agent_id" {
			continue
		}
		_, err := c.member(ctx, by, p.id)
		switch {
		case errors.Is(err, core.Kind(core.NotFound)):
			return core.Invalid(p.field, p.id, "an agent of this tenant")
		case err != nil:
			return err
		}
	}
	return nil
}

// SendIn is SendMessage inside a transaction: the message exists if and only
// if what else that changes does. A refusal has written nothing.
func (c *roster) SendIn(tx *audit.Tx, m SendMessage) (AgentMessage, error) {
	if err := m.check(); err != nil {
		return AgentMessage{}, err
	}
	tenant := tx.Tenant()
	if tx.By.Kind == core.Agent && tx.By.Name != m.From {
		return AgentMessage{}, core.Errorf(core.Denied, "from_agent_id: %s can't send as %q", tx.By.Name, core.ClipTo(m.From, 64)).With("field", "from_agent_id")
	}
	live := c.Parties()
	if !live.Known(tenant, m.From) {
		return AgentMessage{}, core.Invalid("from_agent_id", m.From, "an agent of this tenant that is not terminated")
	}
	receivers := []string{m.To}
	if m.To == ToAll {
		receivers = slices.DeleteFunc(live.All(tenant), func(id string) bool { return id == m.From })
	} else if !live.Known(tenant, m.To) {
		return AgentMessage{}, core.Invalid("to_agent_id", m.To, "an agent of this tenant that is not terminated")
	}
	carried, err := c.carry(tx, &m)
	if err != nil {
		return AgentMessage{}, err
	}
	content := core.Raw(slices.Clone(m.Content))
	if err := content.Compact(); err != nil {
		return AgentMessage{}, core.Errorf(core.InvalidInput, "content: not valid JSON: %v", err).With("field", "content")
	}
	sent := AgentMessage{
		MessageID: carried.MessageID, FromAgentID: m.From, ToAgentID: m.To, MessageType: m.Type, Content: content,
		Timestamp: seconds(carried.Timestamp), TraceID: carried.TraceID, TaskID: m.Task, CorrelationID: carried.CorrelationID,
	}
	if m.To == ToAll {
		sent.Receivers = receivers
	}
	if err := messages.Put(tx, record.Seq(carried.Seq), sent); err != nil {
		return AgentMessage{}, err
	}
	for _, id := range receivers {
		tx.Add(countInbox(id), 1)
		at := record.Text(id).Seq(carried.Seq)
		if err := errors.Join(inbox.Put(tx, at, ""), unread.Put(tx, at, struct{}{})); err != nil {
			return AgentMessage{}, err
		}
	}
	tx.Changed("cad.message", sent.MessageID)
	return sent, nil
}

// countInbox names the counter of an agent's messages.
func countInbox(agent string) string { return "cad.inbox." + agent }

// carry hands a message to the bus. What answers a request closes it there; a
// second answer, or one that comes too late for the bus, is an event.
func (c *roster) carry(tx *audit.Tx, m *SendMessage) (bus.Message, error) {
	s := bus.Send{
		Recipient: m.To, Sender: m.From, Type: bus.Event, TTL: bus.MaxTTL, Trace: m.Trace, Task: m.Task,
		Payload: core.MustEncode(SendMessage{From: m.From, To: m.To, Type: m.Type, Content: m.Content}),
	}
	switch {
	case m.To == ToAll:
		s.Recipient, s.Topic = "", broadcastTopic
		if m.Type == ErrorNote {
			s.Type = bus.Error
		}
	case m.Type == Request:
		s.Type = bus.Request
	case m.Type == ErrorNote:
		s.Type = bus.Error
	case m.Type == Response:
		request, err := answered(tx, m)
		if err != nil {
			return bus.Message{}, err
		}
		s.Type, s.CorrelationID, s.Trace = bus.Response, request.CorrelationID, cmp.Or(s.Trace, request.TraceID)
		made, err := c.opt.Bus.AcceptIn(tx, s)
		if err == nil || !errors.Is(err, core.Kind(core.Conflict)) && !errors.Is(err, core.Kind(core.InvalidInput)) && !errors.Is(err, core.Kind(core.NotFound)) {
			return made, err
		}
		s.Type, s.CorrelationID = bus.Event, ""
	}
	return c.opt.Bus.AcceptIn(tx, s)
}

// answered is the request that a response names.
func answered(tx store.Tx, m *SendMessage) (AgentMessage, error) {
	id := textOf(m.Content, "request_id")
	var request AgentMessage
	seq, err := core.LocalUUID("content.request_id", tx.Tenant(), id)
	there := false
	if err == nil {
		request, there, err = messages.Get(tx, record.Seq(seq))
	}
	switch {
	case errors.Is(err, core.ErrForeign) || err != nil && !errors.Is(err, core.Kind(core.InvalidInput)):
		return request, err
	case err != nil || !there || request.MessageID != id || request.MessageType != Request || request.ToAgentID != m.From || request.FromAgentID != m.To:
		return request, core.Invalid("content.request_id", id, fmt.Sprintf("the message_id of a request from %s to %s", m.To, m.From))
	}
	return request, nil
}

// Messages lists what an agent was sent, newest first (controller operation
// get_messages). Status is read or unread, Kind a type of message, Agent a
// sender; a page that nothing narrows has its total from a counter. Marking them
// read is ReadMessages' business.
func (c *roster) Messages(ctx context.Context, tenant, agent string, f core.Filter) (core.Page[AgentMessage], error) {
	f, err := f.Check()
	err = cmp.Or(err, oneOf("status", f.Status, []string{"read", "unread"}), oneOf("kind", f.Kind, MessageTypes()))
	if err == nil {
		_, err = c.member(ctx, reader(tenant), agent)
	}
	if err != nil {
		return core.Page[AgentMessage]{}, err
	}
	g := core.Gather[AgentMessage]{Filter: f}
	plain := !f.Narrows()
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		take := func(seq uint64, read bool) (more bool, err error) {
			if plain && !g.Shows() {
				g.Total++
				return true, nil
			}
			m, err := c.delivered(tx, agent, seq, read)
			if err == nil && m.fits(f) {
				g.Add(m)
			}
			return !plain || len(g.Items) < f.Size, err
		}
		if f.Status == "unread" {
			return unread.Within(tx, record.Text(agent), nil, nil, true, func(k record.Parts, _ record.Found[struct{}]) (bool, error) {
				return take(k.Seq(), false)
			})
		}
		err := inbox.Within(tx, record.Text(agent), nil, nil, true, func(k record.Parts, readAt record.Found[string]) (bool, error) {
			return take(k.Seq(), len(readAt.Data) > 0)
		})
		if plain {
			g.Total = int(tx.Counter(countInbox(agent)))
		}
		return err
	})
	return g.Result(), audit.Explain("read the messages of "+agent, err)
}

func (m *AgentMessage) fits(f core.Filter) bool {
	if f.Status == "read" && !m.Read || f.Status == "unread" && m.Read {
		return false
	}
	return core.Wants(f.Kind, string(m.MessageType)) && core.Wants(f.Agent, m.FromAgentID) && core.Wants(f.Task, m.TaskID) && core.Wants(f.Trace, m.TraceID) &&
		f.Within(m.Timestamp.Time()) && f.Finds(m.MessageID, m.FromAgentID, string(m.Content))
}

// delivered is a message of an agent's inbox. What was read out of the mailbox
// on the bus is read.
func (c *roster) delivered(tx store.Tx, agent string, seq uint64, read bool) (AgentMessage, error) {
	m, there, err := messages.Get(tx, record.Seq(seq))
	if err == nil && !there {
		err = core.Errorf(core.Internal, "message %d is in the inbox of %s but missing", seq, agent)
	}
	m.Read = read
	if err == nil && !m.Read && m.ToAgentID != ToAll {
		m.Read, err = c.opt.Bus.TakenIn(tx, m.MessageID, agent)
	}
	return m, err
}

// ReadMessages gives an agent up to n (1-100) messages that it has not read,
// the oldest first, and marks them read. An agent reads its own alone.
func (c *roster) ReadMessages(ctx context.Context, by core.Caller, agent string, n int) ([]AgentMessage, error) {
	if n < 1 || n > core.MaxPageSize {
		return nil, core.Invalid("n", n, "1-100")
	}
	if by.Kind == core.Agent && by.Name != agent {
		return nil, core.Errorf(core.Denied, "agent_id: %s can't read the messages of %q", by.Name, core.ClipTo(agent, 64)).With("field", "agent_id")
	}
	if _, err := c.member(ctx, by, agent); err != nil {
		return nil, err
	}
	var taken []AgentMessage
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		taken, err = c.readIn(tx, agent, n)
		return err
	})
	return taken, audit.Explain("read the messages of "+agent, err)
}

func (c *roster) readIn(tx *audit.Tx, agent string, n int) ([]AgentMessage, error) {
	var fresh []AgentMessage
	var seqs []uint64 // of them, and of those read on the bus
	err := unread.Each(tx, record.Text(agent), func(k record.Parts, _ struct{}) (bool, error) {
		seq := k.Seq()
		m, err := c.delivered(tx, agent, seq, false)
		if err != nil {
			return false, err
		}
		seqs = append(seqs, seq)
		if !m.Read {
			m.Read = true
			fresh = append(fresh, m)
		}
		return len(fresh) < n && len(seqs) < 10*n, nil
	})
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	at, err := tx.Now().MarshalText()
	if err != nil {
		return nil, fmt.Errorf("encode the time: %w", err)
	}
	for _, seq := range seqs {
		key := record.Text(agent).Seq(seq)
		if err := errors.Join(inbox.Put(tx, key, string(at)), unread.Delete(tx, key)); err != nil {
			return nil, err
		}
	}
	for _, m := range fresh {
		if m.ToAgentID != ToAll {
			if err := c.opt.Bus.TakeIn(tx, m.MessageID, agent); err != nil {
				return nil, err
			}
		}
	}
	ids := namesOf(fresh, func(m AgentMessage) string { return m.MessageID })
	tx.Changed("cad.message", agent)
	_, err = tx.Record(audit.Entry{Type: "cad.messages.read", Subject: "cad.inbox", ID: agent, Detail: map[string]any{"messages": ids}})
	return fresh, err
}
