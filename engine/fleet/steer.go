package fleet

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// steer tells the agent at work what is meant for its task, if it hears at
// once. That it was told is recorded before.
func (f *Fleet) steer(ctx context.Context, m *member, r *run) error {
	h, is := m.now()
	s, can := h.(Steerer)
	if !can || is != r {
		return nil
	}
	for _, x := range m.look().queue {
		if !x.Steers || !x.waits() {
			continue
		}
		if err := s.Hears(); errors.Is(err, ErrNextPrompt) {
			return nil
		} else if err != nil {
			return fmt.Errorf("tell agent %s message %s: %w", m.name, x.MessageID, err)
		}
		if err := r.tellNow(ctx, s, x.MessageID); err != nil {
			return err
		}
	}
	return nil
}

// tellNow hands one message over, unless the run has begun to end.
func (r *run) tellNow(ctx context.Context, s Steerer, id string) error {
	r.steering.Lock()
	defer r.steering.Unlock()
	x, err := r.tells(ctx, id)
	if err != nil || x == nil {
		return err
	}
	if err := s.Steer(x.Text, x.URI); err != nil {
		return errors.Join(fmt.Errorf("tell agent %s message %s: %w", r.m.name, id, err), r.f.untell(ctx, r.m))
	}
	return nil
}

// next is the message that the agent is told next in its task; nil for none. It is
// recorded as told when this returns.
func (r *run) next(ctx context.Context) (*Message, error) {
	r.steering.Lock()
	defer r.steering.Unlock()
	for _, x := range r.m.look().queue {
		if !x.Steers || !x.waits() {
			continue
		}
		if x, err := r.tells(ctx, x.MessageID); x != nil || err != nil {
			return x, err
		}
	}
	return nil, nil
}

// tells records that a message is told in this run; nil when it can't be any more. r.steering is
// held.
func (r *run) tells(ctx context.Context, id string) (told *Message, err error) {
	if r.ended {
		return nil, nil
	}
	t := &r.job.Task
	err = r.f.opt.Ledger.Update(ctx, r.m.self(), func(tx *audit.Tx) error {
		told = nil
		old, err := r.f.messages.Load(tx, id)
		if err != nil || old == nil || !old.waits() {
			return err
		}
		x := *old
		x.Told, told = t.TaskID, &x
		detail := messageDetail(&x)
		detail["task_id"] = t.TaskID
		return r.f.messages.Save(tx, record.Event{Type: "agent.message_told", Trace: t.TraceID, Detail: detail}, old, &x)
	})
	return told, err
}

// forget removes what was told in a run, which is over. What was told in an attempt that may be
// made again waits for that: it has to be told anew.
func (f *roster) forget(tx *audit.Tx, agent string, out task.Outcome) error {
	queue, err := f.messagesIn(tx, agent)
	if err != nil {
		return err
	}
	again := out.Error != nil && (out.Error.Retryable || out.Error.Code == CodeClosing)
	for _, old := range queue {
		if old.Told == "" {
			continue
		}
		if again {
			x := *old
			x.Told = ""
			err = f.messages.Write(tx, old, &x)
		} else {
			err = f.messages.Leave(tx, nil, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// untell puts back what was told in a run of which nothing is left.
func (f *roster) untell(ctx context.Context, m *member) error {
	return f.opt.Ledger.Update(ctx, m.self(), func(tx *audit.Tx) error { return f.untellIn(tx, m) })
}

func (f *roster) untellIn(tx *audit.Tx, m *member) error {
	queue, err := f.messagesIn(tx, m.name)
	for _, old := range queue {
		if err != nil || old.Told == "" {
			continue
		}
		x := *old
		x.Told = ""
		detail := messageDetail(&x)
		detail["task_id"] = old.Told
		err = f.messages.Save(tx, record.Event{Type: "agent.message_untold", Detail: detail}, old, &x)
	}
	return err
}
