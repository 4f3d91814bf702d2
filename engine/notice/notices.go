package notice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/store"
)

// Buckets of a tenant.
const (
	bNotice   store.Bucket = "notice"          // name → Notice
	bStanding store.Bucket = "notice.standing" // name → Standing
)

const countNotices = "notice"

// Sender carries a message to where a notice wants it. The error of one that
// did not arrive may wrap a *Failure.
type Sender interface {
	Send(ctx context.Context, n Notice, m Message) error
}

// Failure says more of why a message did not arrive.
type Failure struct {
	Err   error
	After time.Duration // the other side wants to be left alone that long
	Final bool          // the other side will not take this message
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Approvals are the questions that events tell of.
type Approvals interface {
	Approval(ctx context.Context, tenant, id string) (judge.Approval, error)
}

// Options of New.
type Options struct {
	Ledger    *audit.Ledger
	Approvals Approvals
	Sender    Sender // nil sends nothing
	Tenants   func(context.Context) ([]string, error)
	// Watch returns a one-slot bell that rings when something changed, closed
	// when the context ends.
	Watch func(context.Context) <-chan struct{}
}

// Notices keeps the notices of every tenant and, while Run does, sends. It is
// safe for concurrent use.
type Notices struct {
	opt     Options
	ledger  *audit.Ledger
	changed chan struct{} // one slot: a notice came, went or is another

	mu   sync.Mutex
	live map[place]uint64 // how far those are that are being told
}

// New makes the service; Run sends.
func New(opt Options) *Notices {
	return &Notices{opt: opt, ledger: opt.Ledger, changed: make(chan struct{}, 1), live: map[place]uint64{}}
}

// Standing is how far a notice has come, and how it goes.
type Standing struct {
	Cursor      uint64    `json:"cursor"` // everything up to this event was told or concerned it not
	Pending     *Message  `json:"pending,omitempty"`
	Attempts    int       `json:"attempts,omitzero"` // failed ones, of the pending message
	NextAt      time.Time `json:"next_at,omitzero"`  // when it is tried again
	BeganAt     time.Time `json:"began_at,omitzero"` // when it was tried first
	LastError   string    `json:"last_error,omitempty"`
	FailedAt    time.Time `json:"failed_at,omitzero"`
	Failing     bool      `json:"failing,omitzero"` // the newest try failed
	DeliveredAt time.Time `json:"delivered_at,omitzero"`
	Delivered   int64     `json:"delivered"`
	GivenUp     int64     `json:"given_up,omitzero"`
}

// Status is a notice with how it goes.
type Status struct {
	Notice
	Standing
	Lag uint64 `json:"lag"` // events of the log that it has not passed yet
}

// Put makes a notice as it is given and says what that did: created, changed
// or unchanged. A new one tells of what happens from now on.
func (s *Notices) Put(ctx context.Context, by core.Caller, n Notice) (_ Notice, action string, err error) {
	if err := n.Check(); err != nil {
		return n, "", err
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := load(tx, n.Name)
		if err != nil {
			return err
		}
		n.TenantID, n.CreatedAt, n.UpdatedAt, action = tx.Tenant(), tx.Now(), tx.Now(), "created"
		var prev uint64
		switch {
		case old != nil && old.same(&n):
			n, action = *old, "unchanged"
			return nil
		case old != nil:
			n.CreatedAt, prev, action = old.CreatedAt, old.AuditSeq, "changed"
		case tx.Add(countNotices, 1) > maxNotices:
			return core.Errorf(core.Conflict, "name: there are %d notices, the most there may be; remove one first", maxNotices).With("field", "name")
		}
		if n.AuditSeq, err = tx.Record(audit.Entry{Type: "notice." + action, Subject: "notice", ID: n.Name, State: n.state(), Prev: prev}); err != nil {
			return err
		}
		if old == nil {
			if err := put(tx, bStanding, n.Name, Standing{Cursor: n.AuditSeq}); err != nil {
				return err
			}
		}
		tx.OnCommit(s.ring)
		return put(tx, bNotice, n.Name, n)
	})
	if err != nil {
		return n, "", fmt.Errorf("keep notice %s: %w", n.Name, err)
	}
	return n, action, nil
}

// Remove ends a notice, with what it has not told yet.
func (s *Notices) Remove(ctx context.Context, by core.Caller, name string) (gone Notice, err error) {
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := need(tx, name)
		if err != nil {
			return err
		}
		gone = *old
		if _, err := tx.Record(audit.Entry{Type: "notice.removed", Subject: "notice", ID: name, State: audit.Gone, Prev: old.AuditSeq}); err != nil {
			return err
		}
		tx.Add(countNotices, -1)
		tx.OnCommit(s.ring)
		return errors.Join(tx.Delete(bNotice, []byte(name)), tx.Delete(bStanding, []byte(name)))
	})
	return gone, err
}

// Status is one notice and how it goes.
func (s *Notices) Status(ctx context.Context, tenant, name string) (st Status, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		n, err := need(tx, name)
		if err == nil {
			st, err = s.statusOf(tx, n)
		}
		return err
	})
	return st, err
}

// List lists a tenant's notices by name.
func (s *Notices) List(ctx context.Context, tenant string) (all []Status, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return each(tx, func(n *Notice) error {
			st, err := s.statusOf(tx, n)
			all = append(all, st)
			return err
		})
	})
	return all, err
}

// Test sends a message that says it is a test, once, past the rate.
func (s *Notices) Test(ctx context.Context, by core.Caller, name string) (Notice, error) {
	if s.opt.Sender == nil {
		return Notice{}, core.Errorf(core.Unavailable, "notice %s: nothing is sent from here", name)
	}
	var n Notice
	var m Message
	err := s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		found, err := need(tx, name)
		if err != nil {
			return err
		}
		n = *found
		seq, err := tx.Record(audit.Entry{Type: "notice.test", Subject: "notice", ID: name, State: n.state(), Prev: n.AuditSeq})
		if err != nil {
			return err
		}
		n.AuditSeq = seq
		id := core.NewID(core.EventPrefix, tx.Tenant(), seq)
		m = Message{ID: "msg_" + id + "_" + name, At: tx.Now(), Body: core.MustEncode(Body{
			Type: "notice.test", Timestamp: tx.Now(), Text: "a test of notice " + name,
			Data: map[string]string{"tenant_id": tx.Tenant(), "event_id": id, "notice": name, "by": by.Name},
		})}
		return put(tx, bNotice, name, n)
	})
	if err != nil {
		return n, err
	}
	if err := s.opt.Sender.Send(ctx, n, m); err != nil {
		return n, core.Errorf(core.Unavailable, "notice %s: the test did not arrive: %s", name, plain(err.Error()))
	}
	return n, nil
}

func (s *Notices) ring() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Notices) statusOf(tx *audit.Tx, n *Notice) (Status, error) {
	st, err := standing(tx, n.Name)
	newest := uint64(tx.Counter("audit"))
	s.mu.Lock()
	passed := max(st.Cursor, s.live[place{n.TenantID, n.Name}])
	s.mu.Unlock()
	return Status{Notice: *n, Standing: st, Lag: newest - min(newest, passed)}, err
}

// stands notes how far a notice is that is being told, more often than it is
// written down; 0 forgets it.
func (s *Notices) stands(at place, passed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[at] = passed; passed == 0 {
		delete(s.live, at)
	}
}

func put(tx *audit.Tx, b store.Bucket, name string, v any) error {
	data, err := core.Encode(v)
	if err != nil {
		return fmt.Errorf("encode notice %s: %w", name, err)
	}
	return tx.Put(b, []byte(name), data)
}

func load(tx store.Tx, name string) (*Notice, error) {
	if !namePattern().MatchString(name) {
		return nil, nil
	}
	data, err := tx.Get(bNotice, []byte(name))
	if err != nil || data == nil {
		return nil, err
	}
	n := &Notice{}
	if err := core.DecodeStored(data, n); err != nil {
		return nil, fmt.Errorf("decode notice %s: %w", name, err)
	}
	return n, nil
}

func need(tx store.Tx, name string) (*Notice, error) {
	n, err := load(tx, name)
	if err == nil && n == nil {
		err = core.Missing("notice", name)
	}
	return n, err
}

func standing(tx store.Tx, name string) (st Standing, err error) {
	data, err := tx.Get(bStanding, []byte(name))
	if err == nil && data != nil {
		err = core.DecodeStored(data, &st)
	}
	if err != nil {
		return st, fmt.Errorf("read how far notice %s is: %w", name, err)
	}
	return st, nil
}

func each(tx store.Tx, fn func(*Notice) error) error {
	var bad error
	err := tx.Scan(bNotice, nil, nil, false, func(k, v []byte) bool {
		n := &Notice{}
		if bad = core.DecodeStored(v, n); bad == nil {
			bad = fn(n)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}

// Auditables are the records that reconcile compares.
func (s *Notices) Auditables() []audit.Auditable { return []audit.Auditable{audited{}} }

type audited struct{}

func (audited) Subject() string { return "notice" }

func (audited) States(tx store.Tx, fn func(string, any) error) error {
	return each(tx, func(n *Notice) error { return fn(n.Name, n.state()) })
}
