package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Told is what became of a message.
type Told struct {
	Message
	State  string `json:"state"`             // given: it is the agent's task; told: it was handed over in the task under way; queued
	TaskID string `json:"task_id,omitempty"` // that it became, or in which it was told
	Note   string `json:"note,omitempty"`    // what happens next
}

// States of what an agent is told.
const (
	ToldGiven  = "given"
	ToldNow    = "told"
	ToldQueued = "queued"
)

// Steerer is a Handle of an agent that can be told something while it works.
type Steerer interface {
	// Hears says when it does: nil for at once, ErrNextPrompt, or why not now.
	Hears() error
	// Steer hands a message on at once. It does not block.
	Steer(text, uri string) error
}

// ErrNextPrompt says that an agent hears between its turns: it takes what it is told by
// Prompt.Next, before its task is over.
var ErrNextPrompt = errors.New("it hears with its next prompt")

// Tell gives an idle agent a task. For any other one the message waits: until
// it is idle again, or with now to be told in the task that it works on, if it
// can hear anything then.
func (f *Fleet) Tell(ctx context.Context, by core.Caller, name, text, uri string, now bool) (Told, error) {
	if err := errors.Join(checkMessage(text), checkURI(uri)); err != nil {
		return Told{}, core.AsError(err)
	}
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Told{}, err
	}
	m.poke(by)
	if out, done, err := f.tellIdle(ctx, by, m, text, uri); done || err != nil {
		return out, err
	}
	x, err := f.enqueue(ctx, by, m, text, uri, now)
	if err != nil {
		return Told{}, err
	}
	out := Told{Message: x, State: ToldQueued}
	if now {
		m.await(ctx, steerWait, func() bool {
			y := find(m.queue, x.MessageID)
			return m.gone || m.run == nil || y == nil || y.Told != ""
		})
	}
	if y := find(numbered(m.look().queue), x.MessageID); y != nil {
		out.Message = *y
	}
	if out.TaskID = out.Told; out.Told != "" {
		out.State = ToldNow
	}
	out.Note = f.whenHeard(m, &out)
	return out, nil
}

// steerWait is how long an operation waits to see a message handed over.
const steerWait = 500 * time.Millisecond

func find(queue []*Message, id string) *Message {
	for _, x := range queue {
		if x.MessageID == id {
			return x
		}
	}
	return nil
}

// tellIdle gives the message at once where nothing is before it.
func (f *Fleet) tellIdle(ctx context.Context, by core.Caller, m *member, text, uri string) (out Told, done bool, err error) {
	select {
	case m.offer <- struct{}{}:
		defer m.offered()
	case <-ctx.Done():
		return out, true, ctx.Err()
	}
	if len(m.look().queue) > 0 {
		return out, false, nil
	}
	if err := f.idle(ctx, m); errors.Is(err, core.Kind(core.NotFound)) {
		return out, true, err
	} else if err != nil {
		return out, false, nil
	}
	t, err := f.give(ctx, by, m, text, uri, m.rec.Load().SessionID)
	if err != nil {
		return out, true, err
	}
	return Told{
		Message: Message{TenantID: m.tenant, Agent: m.name, Text: text, URI: uri, By: by.Name, ByKind: by.Kind, CreatedAt: t.CreatedAt},
		State:   ToldGiven, TaskID: t.TaskID, Note: "it is its task",
	}, true, nil
}

// offered ends the hold of who hands the agent a task.
func (m *member) offered() {
	<-m.offer
	m.ring() // its queue may go on
}

// whenHeard says what happens with a message that was queued.
func (f *Fleet) whenHeard(m *member, t *Told) string {
	now, a := m.look(), m.rec.Load()
	if t.State == ToldNow {
		return "it was handed over; what becomes of it is the agent's to say"
	}
	after := "it is given as a task when the agent is idle again"
	if t.Steers && now.run != nil {
		s, can := now.handle.(Steerer)
		switch {
		case !can:
			return "agents of runtime " + a.Runtime + " hear nothing while they work: " + after + ", before all others"
		case errors.Is(s.Hears(), ErrNextPrompt):
			return "the agent hears between its turns: it is its very next prompt, in the same task; agent cancel interrupts what it does now"
		}
		return "it is handed over as soon as the agent hears it"
	}
	if a.Status != Busy && a.Status != Idle {
		return "the agent is " + string(a.Status) + ": " + after
	}
	return after
}

// deliver hands on what waits for an agent: to the run under way what is meant
// for it, else the next message as a task. An error means: try again later.
func (f *Fleet) deliver(ctx context.Context, m *member) error {
	now := m.look()
	if len(now.queue) == 0 {
		return nil
	}
	if now.run != nil {
		return f.steer(ctx, m, now.run)
	}
	for _, x := range now.queue {
		if x.Told != "" {
			return f.untell(ctx, m) // its run is gone, and has not said so
		}
	}
	select {
	case m.offer <- struct{}{}:
		defer func() { <-m.offer }()
	default:
		return nil // who has it rings
	}
	if free, _ := m.free(); !free || f.idle(ctx, m) != nil {
		return nil
	}
	// An attempt that has just ended may be made again. Either may become the other between two looks.
	for _, s := range []task.Status{task.Queued, task.Running, task.Queued} {
		first, err := f.opt.Tasks.List(ctx, m.tenant, core.Filter{Agent: m.name, Status: string(s), Size: 1})
		if err != nil || len(first.Items) > 0 {
			return err // its end rings
		}
	}
	for _, x := range m.look().queue {
		if x.waits() {
			return f.giveMessage(ctx, m, x)
		}
	}
	return nil
}

// errWithdrawn ends the giving of a message that is no longer there.
var errWithdrawn = errors.New("the message was withdrawn")

// giveMessage makes a message the agent's task and takes it out of the queue, both in
// one transaction. One that is refused stays in the queue, with the reason, and
// the next is given.
func (f *Fleet) giveMessage(ctx context.Context, m *member, x *Message) error {
	t, err := f.opt.Swarm.Dispatch(ctx, x.author(), swarm.Dispatch{
		Kind: KindPrompt, Agent: m.name, Session: x.Session, Parent: x.Parent,
		Input: core.MustEncode(prompt{Agent: m.name, Message: x.Text, URI: x.URI}),
		Also: func(tx *audit.Tx, t *task.Task) error {
			old, err := f.messages.Load(tx, x.MessageID)
			if err != nil {
				return err
			}
			if old == nil || !old.waits() {
				return errWithdrawn
			}
			detail := messageDetail(old)
			detail["task_id"] = t.TaskID
			return f.messages.Remove(tx, record.Event{Type: "agent.message_given", Trace: t.TraceID, Detail: detail}, old)
		},
	})
	switch {
	case errors.Is(err, errWithdrawn):
		return nil
	case err == nil:
		m.Change(func() { m.assigned = t.TaskID })
		return nil
	}
	switch core.AsError(err).Code {
	case core.InvalidInput, core.Conflict, core.NotFound, core.Denied:
		return f.withhold(ctx, m, x.MessageID, err)
	}
	return fmt.Errorf("give agent %s message %s: %w", m.name, x.MessageID, err)
}

// withhold keeps a message that can't be given from holding the others up.
func (f *roster) withhold(ctx context.Context, m *member, id string, cause error) error {
	return f.opt.Ledger.Update(ctx, m.self(), func(tx *audit.Tx) error {
		old, err := f.messages.Load(tx, id)
		if err != nil || old == nil || !old.waits() {
			return err
		}
		x := *old
		x.Held = core.ClipTo(core.AsError(cause).Message, maxReason)
		detail := messageDetail(&x)
		detail["reason"] = x.Held
		return f.messages.Save(tx, record.Event{Type: "agent.message_held", Detail: detail}, old, &x)
	})
}
