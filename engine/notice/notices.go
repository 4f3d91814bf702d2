package notice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

const standings record.Rows[Standing] = "notice.standing" // by name

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
	Watch  func(context.Context) <-chan struct{}
	Health *health.Troubles
}

type place struct{ tenant, name string }

// Notices keeps the notices of every tenant and, while Run does, sends. It is
// safe for concurrent use.
type Notices struct {
	opt    Options
	ledger *audit.Ledger
	kind   record.Table[Notice]
	crew   loop.Crew[Notice]

	mu   sync.Mutex
	live map[place]uint64 // how far those are that are being told
}

// New makes the service; Run sends.
func New(opt Options) *Notices {
	s := &Notices{opt: opt, ledger: opt.Ledger, live: map[place]uint64{}}
	s.kind = &record.Kind[*Notice]{
		Noun: "notice", Bucket: "notice", Limit: maxNotices, Ledger: opt.Ledger, Follow: s.crew.Follow,
		ID:    func(n *Notice) string { return n.Name },
		Whole: true,
	}
	s.crew = loop.Crew[Notice]{
		Component: "notices", Kind: s.kind, Health: opt.Health, Tenants: opt.Tenants,
		Changed: make(chan struct{}, 1),
	}
	if opt.Sender != nil {
		s.crew.Work = func(ctx context.Context, n *Notice) error { return s.courier(*n).run(ctx) }
	}
	opt.Ledger.Register(s.kind.Auditable())
	return s
}

// Run tells what there is to tell until ctx ends.
func (s *Notices) Run(ctx context.Context) error { return s.crew.Run(ctx) }

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
		action, err = s.kind.Put(tx, record.Event{}, &n, nil)
		if err == nil && action == record.Created {
			err = standings.Put(tx, record.Key(n.Name), Standing{Cursor: n.AuditSeq})
		}
		return err
	})
	if err != nil {
		return n, "", fmt.Errorf("keep notice %s: %w", n.Name, err)
	}
	return n, action, nil
}

// Remove ends a notice, with what it has not told yet.
func (s *Notices) Remove(ctx context.Context, by core.Caller, name string) (gone Notice, err error) {
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.kind.Need(tx, name)
		if err != nil {
			return err
		}
		gone = *old
		return errors.Join(s.kind.Remove(tx, record.Event{Type: "notice.removed"}, old), standings.Delete(tx, record.Key(name)))
	})
	return gone, err
}

// Status is one notice and how it goes.
func (s *Notices) Status(ctx context.Context, tenant, name string) (st Status, err error) {
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		n, err := s.kind.Need(tx, name)
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
		return s.kind.Each(tx, func(n *Notice) error {
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
		old, err := s.kind.Need(tx, name)
		if err != nil {
			return err
		}
		n = *old
		if err := s.kind.Save(tx, record.Event{Type: "notice.test"}, old, &n); err != nil {
			return err
		}
		id := core.NewID(core.EventPrefix, tx.Tenant(), n.AuditSeq)
		m = Message{ID: "msg_" + id + "_" + name, At: tx.Now(), Body: core.MustEncode(Body{
			Type: "notice.test", Timestamp: tx.Now(), Text: "a test of notice " + name,
			Data: map[string]string{"tenant_id": tx.Tenant(), "event_id": id, "notice": name, "by": by.Name},
		})}
		return nil
	})
	if err != nil {
		return n, err
	}
	if err := s.opt.Sender.Send(ctx, n, m); err != nil {
		return n, core.Errorf(core.Unavailable, "notice %s: the test did not arrive: %s", name, plain(err.Error()))
	}
	return n, nil
}

func (s *Notices) statusOf(tx *audit.Tx, n *Notice) (Status, error) {
	st, _, err := standings.Get(tx, record.Key(n.Name))
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
