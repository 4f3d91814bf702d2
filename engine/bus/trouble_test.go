package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// failing is a store whose writes can be made to fail.
type failing struct {
	store.Store
	err  atomic.Pointer[error]
	late atomic.Bool // fail after the work is done, as a commit does
}

func (f *failing) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	err := f.err.Load()
	if err != nil && !f.late.Load() {
		return *err
	}
	return f.Store.Update(ctx, tenant, func(tx store.Tx) error {
		if bad := fn(tx); bad != nil || err == nil {
			return bad
		}
		return *err
	})
}

func (f *failing) fail(err error) {
	if err == nil {
		f.err.Store(nil)
		return
	}
	f.err.Store(&err)
}

// When acknowledgements can't be written, what was not acknowledged still comes
// again.
func TestNothingIsLostWhenAcknowledgementsCannotBeWritten(t *testing.T) {
	r := newRig(t)
	st := &failing{Store: r.DB}
	r.On(st)
	full := errors.New("the disk is full")
	box := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	jobs := r.subscribe(bus.SubscribeOptions{Pattern: "job.>", Name: "worker"})
	first := map[string]bool{r.direct("bob", `{"n":1}`).MessageID: true, r.publish("job.new", `{"n":1}`).MessageID: true}
	direct, job := r.direct("bob", `{"n":2}`), r.publish("job.new", `{"n":2}`)
	for _, s := range []*bus.Subscription{box, jobs} {
		d := r.next(s)
		r.next(s) // stays in hand
		d.Ack()
	}
	st.fail(full)
	r.run()
	expect.Err(t, expect.Fault(r.Accept(t.Context(), alice, bus.Send{Topic: "a", Payload: []byte(`{}`)})), full, "accepted")
	for _, s := range []*bus.Subscription{box, jobs} {
		expect.Err(t, s.Close(), full, "closed")
	}
	st.fail(nil)
	box = r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	defer box.Close()
	jobs = r.subscribe(bus.SubscribeOptions{Pattern: "job.>", Name: "worker"})
	defer jobs.Close()
	for s, want := range map[*bus.Subscription]string{box: direct.MessageID, jobs: job.MessageID} {
		d := r.next(s)
		if first[d.Message.MessageID] { // its acknowledgement may be written by now or not
			d = r.next(s)
		}
		expect.True(t, d.Message.MessageID == want, "%s is lost: got %s", want, d.Message.Payload)
	}
}

// A store that can't be used any more ends Run, with the reason.
func TestRunEndsWithTheStore(t *testing.T) {
	r := newRig(t)
	st := &failing{Store: r.DB}
	r.On(st)
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	r.direct("bob", `{}`)
	r.next(s).Ack()
	st.fail(store.ErrUnusable)
	go func() { done <- r.Run(ctx) }()
	expect.Err(t, <-done, store.ErrUnusable, "Run")
}

// What could not be committed was not done: the name of a subscription is not
// taken, nor is one that is there lost.
func TestASubscriptionThatCannotBeCommittedIsNotThere(t *testing.T) {
	r := newRig(t)
	st := &failing{Store: r.DB}
	r.On(st)
	opt := bus.SubscribeOptions{Pattern: "job.>", Name: "worker"}
	full := errors.New("the disk is full")
	st.late.Store(true)
	for _, what := range []string{"made", "opened"} {
		st.fail(full)
		_, err := r.Subscribe(t.Context(), acme, opt)
		expect.Must(t, errors.Is(err, full), "%s: %v", what, err)
		st.fail(nil)
		r.No(r.subscribe(opt).Close())
	}
	st.fail(full)
	err := r.Unsubscribe(t.Context(), alice, "worker")
	expect.Must(t, errors.Is(err, full), "%v", err)
	st.fail(nil)
	m := r.publish("job.new", `{}`)
	s := r.subscribe(opt)
	defer s.Close()
	expect.Is(t, r.next(s).Message.MessageID, m.MessageID)
}
