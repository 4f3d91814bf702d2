package notice

import (
	"context"
	"errors"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// How messages are sent.
const (
	stale      = time.Hour       // older events are told in a summary only
	firstRest  = 2 * time.Second // after a failed try; doubled each time
	longRest   = 5 * time.Minute
	longAfter  = time.Hour      // the longest that the other side may ask for
	finalTries = 5              // of a message that the other side will not take
	giveUp     = 24 * time.Hour // a message that never arrived stands in the way no longer
	saveEvery  = 1000           // events passed over, after which that is saved
	readAhead  = 100
	lookEvery  = 200 * time.Millisecond // at most that often one reads the log
	longLook   = 10_000                 // events looked at, after which there are more
)

// courier tells what one notice wants told, one message after the other. Each
// message is on disk before it is sent for the first time, so that after a
// kill it is sent again as the same.
type courier struct {
	loop.Courier[Notice, Standing]
	s        *Notices
	n        Notice
	types    map[string]bool
	patterns []bus.Pattern
	trouble  bool // agents' statuses are wanted when they are trouble

	at   uint64 // read up to here
	held digest // read, not yet told
	sent []time.Time
}

func (s *Notices) courier(n Notice) *courier {
	c := &courier{s: s, n: n, types: map[string]bool{}, Courier: loop.Courier[Notice, Standing]{
		Ledger: s.ledger, Kind: s.kind, Rows: standings, By: core.Self(n.TenantID, "notice"), ID: n.Name,
		Same: func(now *Notice) bool { return now.CreatedAt.Equal(n.CreatedAt) },
	}}
	for _, e := range n.Events {
		for _, t := range words[e] {
			c.types[t] = true
		}
		c.trouble = c.trouble || e == "stuck"
		if p, err := patternOf(e); err == nil {
			c.patterns = append(c.patterns, p)
		}
	}
	return c
}

func (c *courier) run(ctx context.Context) error {
	err := c.Load(ctx)
	if err != nil {
		return err
	}
	c.at = c.St.Cursor
	if c.St.Pending != nil {
		c.at = max(c.at, c.St.Pending.Upto)
	}
	defer c.s.stands(c.place(), 0)
	bell := c.s.opt.Watch(ctx)
	for ctx.Err() == nil {
		c.s.stands(c.place(), c.passed())
		if c.St.Pending != nil {
			if err := c.send(ctx); err != nil {
				return err
			}
			continue
		}
		m, wait, err := c.next(ctx)
		if err != nil {
			return err
		}
		if m != nil {
			if err := c.save(ctx, func(st *Standing) { st.Pending, st.Attempts, st.BeganAt, st.NextAt = m, 0, c.now(), time.Time{} }); err != nil {
				return err
			}
			continue
		}
		c.rest(ctx, bell, wait)
	}
	if c.held.empty() && c.St.Pending == nil && c.at > c.St.Cursor {
		// What was passed over need not be looked at again.
		err = c.save(context.WithoutCancel(ctx), func(*Standing) {})
	}
	return errors.Join(ctx.Err(), err)
}

// rest waits for the bell, or until wait is over; both no sooner than a moment.
func (c *courier) rest(ctx context.Context, bell <-chan struct{}, wait time.Duration) {
	if loop.Wait(ctx, bell, max(wait, lookEvery)) { // many changes are one look
		loop.Wait(ctx, nil, lookEvery)
	}
}

func (c *courier) place() place { return place{c.n.TenantID, c.n.Name} }

// passed is the newest event up to which nothing is left to tell.
func (c *courier) passed() uint64 {
	if c.St.Pending != nil || !c.held.empty() {
		return c.St.Cursor
	}
	return c.at
}

func (c *courier) now() time.Time { return c.s.ledger.Clock().Now() }

// next reads on to what is to be told next. Nil means that there is nothing
// now: wait says for how long at most.
func (c *courier) next(ctx context.Context) (_ *Message, wait time.Duration, err error) {
	for ctx.Err() == nil {
		from := c.at
		events, upto, err := c.s.ledger.Pick(ctx, c.n.TenantID, c.at, readAhead, c.wants)
		if err != nil {
			return nil, 0, err
		}
		for i := range events {
			e := &events[i]
			p, a, ok := c.read(ctx, e)
			if ok && c.now().Sub(e.CreatedAt) < stale && c.free() == 0 {
				if !c.held.empty() { // first what came before
					return c.told(c.held.message(c.at)), 0, nil
				}
				c.at = e.Seq
				return c.told(about(&c.n, e, p, a)), 0, nil
			}
			if ok {
				c.held.add(&c.n, e, p, a)
			}
			c.at = e.Seq
		}
		c.at = max(c.at, upto)
		if c.held.empty() && c.at-c.St.Cursor >= saveEvery {
			if err := c.save(ctx, func(*Standing) {}); err != nil {
				return nil, 0, err
			}
		}
		if len(events) == readAhead || upto-from >= longLook {
			continue
		}
		if c.held.empty() {
			return nil, time.Hour, nil
		}
		if wait := c.free(); wait > 0 {
			return nil, wait, nil
		}
		return c.told(c.held.message(c.at)), 0, nil
	}
	return nil, 0, ctx.Err()
}

// wants says whether an event of a type may concern the notice.
func (c *courier) wants(eventType []byte) bool {
	return c.types[string(eventType)] || len(c.patterns) > 0 && c.asked(string(eventType))
}

// read takes an event apart; false when it is not for this notice after all.
func (c *courier) read(ctx context.Context, e *audit.Event) (*audit.Payload, *judge.Approval, bool) {
	p, err := e.Data()
	if err != nil || p.Subject == "notice" && p.ID == c.n.Name { // never of itself: that would have no end
		return nil, nil, false
	}
	if e.EventType == "agent.status" && c.trouble && !c.asked(e.EventType) {
		var d struct {
			To    string `json:"to"`
			Since string `json:"since"` // of a trouble that was told before
		}
		_ = core.DecodeStored(p.Detail, &d) // one without is no trouble
		var st struct {
			Stopped bool `json:"stopped"`
		}
		_ = core.DecodeStored(p.State, &st)
		if st.Stopped || d.Since != "" || d.To != "failed" && d.To != "offline" {
			return nil, nil, false
		}
	}
	if p.Subject != "approval" {
		return &p, nil, true
	}
	a, err := c.s.opt.Approvals.Approval(ctx, c.n.TenantID, p.ID)
	if err != nil { // one that can't be read is told as an event
		return &p, nil, true
	}
	return &p, &a, c.n.MinRisk == "" || a.Risk.AtLeast(c.n.MinRisk)
}

// asked says whether a pattern names a type, whatever the words say.
func (c *courier) asked(eventType string) bool {
	return slices.ContainsFunc(c.patterns, func(p bus.Pattern) bool { return p.Match("sys." + eventType) })
}

// free is how long until the rate lets one more message out, 0 when it does now.
func (c *courier) free() time.Duration {
	if len(c.sent) < c.n.Rate {
		return 0
	}
	return max(0, time.Minute-c.now().Sub(c.sent[len(c.sent)-c.n.Rate]))
}

func (c *courier) told(m Message) *Message {
	c.sent = append(c.sent, c.now())
	if over := len(c.sent) - c.n.Rate; over > 0 {
		c.sent = slices.Delete(c.sent, 0, over)
	}
	return &m
}

// send tries the pending message once, when its time has come.
func (c *courier) send(ctx context.Context) error {
	loop.Wait(ctx, nil, max(0, min(c.St.NextAt.Sub(c.now()), longAfter)))
	if ctx.Err() != nil {
		return nil
	}
	m := *c.St.Pending
	err := c.s.opt.Sender.Send(ctx, c.n, m)
	switch {
	case err == nil:
		return c.arrived(ctx, m)
	case ctx.Err() != nil:
		return nil // it is sent again by whoever comes next
	}
	return c.failed(ctx, m, err)
}

func (c *courier) arrived(ctx context.Context, m Message) error {
	e := record.Event{Detail: map[string]any{"message_id": m.ID}}
	if c.St.Failing {
		e.Type = "notice.recovered"
	}
	// Kept though the engine ends just now: it would be sent twice.
	return c.keep(context.WithoutCancel(ctx), e, func(st *Standing) {
		st.Cursor, st.Pending, st.Attempts, st.NextAt, st.Failing = m.Upto, nil, 0, time.Time{}, false
		st.DeliveredAt = c.now()
		st.Delivered++
	})
}

// failed notes a failed try and when the next one is.
func (c *courier) failed(ctx context.Context, m Message, err error) error {
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Err: err}
	}
	now, tries, why := c.now(), c.St.Attempts+1, plain(err.Error())
	rest := max(core.Backoff(c.St.Attempts, firstRest, longRest), min(f.After, longAfter))
	detail := map[string]any{"message_id": m.ID, "error": why}
	e := record.Event{Detail: detail}
	if !c.St.Failing {
		e.Type = "notice.failing"
	}
	over := f.Final && tries >= finalTries || now.Sub(c.St.BeganAt) >= giveUp
	if over {
		e.Type = "notice.given_up"
		detail["attempts"] = tries
	}
	return c.keep(ctx, e, func(st *Standing) {
		st.Attempts, st.NextAt, st.LastError, st.FailedAt, st.Failing = tries, now.Add(rest), why, now, true
		if over {
			st.Cursor, st.Pending, st.Attempts, st.NextAt = m.Upto, nil, 0, time.Time{}
			st.GivenUp++
		}
	})
}

// save keeps how far it is.
func (c *courier) save(ctx context.Context, change func(*Standing)) error {
	return c.keep(ctx, record.Event{}, change)
}

// keep is Keep; what was passed over need not be looked at again.
func (c *courier) keep(ctx context.Context, e record.Event, change func(*Standing)) error {
	return c.Keep(ctx, e, func(next *Standing) {
		if change(next); c.held.empty() && next.Pending == nil {
			next.Cursor = max(next.Cursor, c.at)
		}
	})
}
