package bus_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestSubscribersReadTheirTopicsInOrder(t *testing.T) {
	r := newRig(t)
	r.publish("nav.before", `{}`)
	one := r.subscribe(bus.SubscribeOptions{Pattern: "nav.*"})
	all := r.subscribe(bus.SubscribeOptions{Pattern: ">"})
	past := r.subscribe(bus.SubscribeOptions{Pattern: "nav.>", From: 1})
	errs := r.subscribe(bus.SubscribeOptions{Pattern: ">", Type: bus.Error})
	for i := range 600 { // more than is read ahead
		r.publish([]string{"nav.done", "det.done", "nav.deep.done"}[i%3], fmt.Sprintf(`{"n":%d}`, i))
	}
	r.direct("bob", `{"not":"a topic"}`)
	r.send(bus.Send{Topic: "nav.failed", Type: bus.Error})
	for name, c := range map[string]struct {
		s    *bus.Subscription
		want func(i int) bool
		last string
	}{
		"nav.*": {one, func(i int) bool { return i%3 == 0 }, "nav.failed"},
		">":     {all, func(int) bool { return true }, "nav.failed"},
	} {
		for i := range 600 {
			if c.want(i) {
				d := r.next(c.s)
				expect.Must(t, string(d.Message.Payload) == fmt.Sprintf(`{"n":%d}`, i), "%s: got %s, want %d", name, d.Message.Payload, i)
			}
		}
		expect.Is(t, r.next(c.s).Message.Topic, c.last, name)
		r.nothing(c.s)
	}
	expect.Is(t, r.next(past).Message.Topic, "nav.before", "from the first")
	expect.Is(t, r.next(errs).Message.Topic, "nav.failed", "errors only")
	for _, s := range []*bus.Subscription{one, all, past, errs} {
		r.No(s.Close())
		r.No(s.Close())
		expect.Is(t, code(expect.Fault(s.Next(t.Context()))), core.Conflict, "after Close")
	}
}

func TestCloseEndsAWaitingNext(t *testing.T) {
	r := newRig(t)
	s := r.subscribe(bus.SubscribeOptions{Pattern: "a"})
	done := expect.Later(func() error {
		_, err := s.Next(context.Background())
		return err
	})
	runtime.Gosched() // it waits by now; if not, the test still holds
	r.No(s.Close())
	expect.Is(t, code(<-done), core.Conflict)
}

func TestADurableSubscriptionGoesOnWhereItHadAcknowledged(t *testing.T) {
	r := newRig(t)
	opt := bus.SubscribeOptions{Pattern: "job.>", Name: "worker-1", By: "test"}
	s := r.subscribe(opt)
	for i := range 10 {
		r.publish("job.new", fmt.Sprintf(`{"n":%d}`, i))
	}
	var held []bus.Delivery
	for range 6 {
		held = append(held, r.next(s))
	}
	for _, i := range []int{0, 1, 2, 4} { // 3 and 5 stay in hand
		held[i].Ack()
	}
	r.No(s.Close())
	held[3].Ack() // too late: its reader is gone

	// A second reader, then a restart, then a kill-like end without Close.
	s = r.subscribe(opt)
	d := r.next(s)
	expect.True(t, string(d.Message.Payload) == `{"n":3}`, "after Close: %s, want 3 again", d.Message.Payload)
	_, err := r.Subscribe(t.Context(), acme, opt)
	expect.Is(t, code(err), core.Conflict, "two readers of one name")
	r.No(s.Close())
	r.Reopen()
	r.publish("job.new", `{"n":10}`)
	s = r.subscribe(opt)
	for i := 3; i <= 10; i++ {
		d := r.next(s)
		expect.Must(t, string(d.Message.Payload) == fmt.Sprintf(`{"n":%d}`, i), "after the restart: %s, want %d", d.Message.Payload, i)
		d.Ack()
	}
	r.nothing(s)
	r.No(s.Close())
	r.Reopen()
	s = r.subscribe(opt)
	r.nothing(s)
	other := opt
	other.Pattern = "other.>"
	r.No(s.Close())
	_, err = r.Subscribe(t.Context(), acme, other)
	expect.True(t, code(err) == core.Conflict && strings.Contains(err.Error(), "job.>"), "another pattern under the name: %v", err)
	r.whole()
	r.No(r.Unsubscribe(t.Context(), alice, "worker-1"))
	expect.Is(t, code(r.Unsubscribe(t.Context(), alice, "worker-1")), core.NotFound, "removed twice")
	s = r.subscribe(other)
	expect.Is(t, code(r.Unsubscribe(t.Context(), alice, "worker-1")), core.Conflict, "removed under its reader")
	r.No(s.Close())
	r.whole()
}

func TestAcknowledgementsAreWrittenWhileItRuns(t *testing.T) {
	r := newRig(t)
	r.run()
	opt := bus.SubscribeOptions{Pattern: "job.>", Name: "worker"}
	s := r.subscribe(opt)
	box := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	r.publish("job.a", `{}`)
	r.direct("bob", `{}`)
	r.next(s).Ack()
	r.next(box).Ack()
	r.await("the acknowledgements on disk", func() bool {
		subs := expect.Of(r.Subscriptions(t.Context(), acme))(r.T)
		return r.figures().Open == 0 && len(subs) == 2
	})
	// Without Close, as if the process had been killed.
	r.Stop()
	r.On(r.DB)
	s = r.subscribe(opt)
	r.nothing(s)
	r.No(s.Close())
	r.No(box.Close())
	r.whole()
}

func TestAMailboxDeliversAgainWhatWasNotAcknowledged(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		r.direct("bob", fmt.Sprintf(`{"n":%d}`, i))
	}
	s := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	second := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	a, b := r.next(s), r.next(second) // each message goes to one reader
	expect.Must(t, string(a.Message.Payload) == `{"n":0}` && string(b.Message.Payload) == `{"n":1}`, "got %s and %s", a.Message.Payload, b.Message.Payload)
	got := r.read("bob", 1)
	expect.True(t, len(got) == 1 && string(got[0].Payload) == `{"n":2}`, "Read took what a subscription has in hand: %v", got)
	b.Ack()
	r.No(s.Close())
	d := r.next(second)
	expect.True(t, string(d.Message.Payload) == `{"n":0}`, "after Close: %s, want 0 again", d.Message.Payload)
	urgent := r.direct("bob", `{"urgent":1}`, func(s *bus.Send) { s.Priority = 1 })
	d = r.next(second)
	expect.True(t, d.Message.MessageID == urgent.MessageID, "got %s, want the urgent one", d.Message.Payload)
	r.No(second.Close())
	expect.Is(t, r.figures().Open, 3, "open")
	r.Reopen()
	got = r.read("bob", 10)
	expect.True(t, len(got) == 3 && got[0].MessageID == urgent.MessageID, "after the restart: %v", got)
	r.whole()
}

func TestASlowReaderSlowsNobodyAndShowsItsLag(t *testing.T) {
	r := newRig(t)
	slow := r.subscribe(bus.SubscribeOptions{Pattern: "busy.>", By: "slow"})
	fast := r.subscribe(bus.SubscribeOptions{Pattern: "busy.>", Name: "fast"})
	r.nothing(slow)
	const n = 6000 // more than the tail in memory holds
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range n / 20 {
				if _, err := r.Accept(t.Context(), alice, bus.Send{Topic: "busy.work", Payload: core.Raw(fmt.Sprintf(`{"w":%d,"i":%d}`, w, i))}); err != nil {
					t.Error(err)
					return
				}
				if i%10 == 0 {
					r.publishQuiet("other.topic")
				}
			}
		})
	}
	for range n {
		r.next(fast).Ack()
	}
	wg.Wait()
	lag, err := slow.Lag(t.Context())
	expect.True(t, err == nil && lag == n, "lag %d, %v, want %d", lag, err, n)
	subs, err := r.Subscriptions(t.Context(), acme)
	expect.True(t, err == nil && len(subs) == 2 && subs[0].By == "slow" && subs[0].Lag == n && subs[1].Lag == 0 && subs[1].Durable, "%+v, %v", subs, err)
	topics, err := r.Topics(t.Context(), acme, core.Filter{Match: "BUSY"})
	expect.True(t, err == nil && len(topics.Items) == 1 && topics.Items[0].Lag == n && topics.Items[0].Subscribers == 2 && topics.Items[0].Messages == n,
		"%+v, %v", topics, err)
	past := r.subscribe(bus.SubscribeOptions{Pattern: "*.work", Type: bus.Event, From: 1})
	expect.Is(t, expect.Of(past.Lag(t.Context()))(t), n, "lag from the first on")
	errs := r.subscribe(bus.SubscribeOptions{Pattern: "*.work", Type: bus.Error, From: 1})
	expect.Is(t, expect.Of(errs.Lag(t.Context()))(t), 0, "lag of a type that none has")
	// It still gets each of them, in order.
	var last uint64
	for range n {
		d := r.next(slow)
		expect.Must(t, d.Message.Seq > last, "%d after %d", d.Message.Seq, last)
		last = d.Message.Seq
	}
	lag, _ = slow.Lag(t.Context())
	expect.True(t, lag == 0, "lag %d at the end", lag)
	for _, s := range []*bus.Subscription{slow, fast, past, errs} {
		r.No(s.Close())
	}
	r.whole()
}

func (r *rig) publishQuiet(topic string) {
	expect.Of(r.Accept(context.Background(), alice, bus.Send{Topic: topic, Payload: core.Raw(`{}`)}))(r.T)
}

func TestMessagesOfOneSenderToOneRecipientKeepTheirOrder(t *testing.T) {
	r := newRig(t)
	s := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	const each = 150
	var wg sync.WaitGroup
	for _, sender := range []string{"ann", "cid", "system"} {
		wg.Go(func() {
			for i := range each {
				_, err := r.Accept(t.Context(), alice, bus.Send{Recipient: "bob", Sender: sender, Payload: core.Raw(fmt.Sprintf(`{"n":%d}`, i))})
				expect.True(t, err == nil, "%v", err)
			}
		})
	}
	next := map[string]int{}
	for range 3 * each {
		d := r.next(s)
		want := fmt.Sprintf(`{"n":%d}`, next[d.Message.SenderID])
		expect.Must(t, string(d.Message.Payload) == want, "from %s: %s, want %s", d.Message.SenderID, d.Message.Payload, want)
		next[d.Message.SenderID]++
		d.Ack()
	}
	wg.Wait()
	r.nothing(s)
	r.No(s.Close())
	expect.Is(t, r.figures().Open, 0, "open")
	r.whole()
}

func TestSubscriptionsThatMakeNoSenseAreRefused(t *testing.T) {
	r := newRig(t)
	for name, opt := range map[string]bus.SubscribeOptions{
		"nothing":         {},
		"both":            {Pattern: "a", Mailbox: "bob"},
		"bad pattern":     {Pattern: "a.>.b"},
		"named mailbox":   {Mailbox: "bob", Name: "x"},
		"mailbox from":    {Mailbox: "bob", From: 3},
		"bad name":        {Pattern: "a", Name: "a b"},
		"bad type":        {Pattern: "a", Type: "news"},
		"unknown mailbox": {Mailbox: "nobody"},
		"mailbox of all":  {Mailbox: "broadcast"},
	} {
		expect.Is(t, code(expect.Fault(r.Subscribe(t.Context(), acme, opt))), core.InvalidInput, name)
	}
	expect.Fails(t, expect.Fault(r.Subscribe(t.Context(), "t_nowhere", bus.SubscribeOptions{Pattern: "a"})), "subscribed in a tenant that is not there")
}

func TestTooManyUnacknowledgedDeliveriesWait(t *testing.T) {
	r := newRig(t)
	s := r.subscribe(bus.SubscribeOptions{Pattern: "a", Name: "hoarder"})
	var held []bus.Delivery
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 51 {
				r.publishQuiet("a")
			}
		})
	}
	wg.Wait()
	for range 1000 {
		held = append(held, r.next(s))
	}
	r.nothing(s)
	held[500].Ack()
	r.next(s)
	r.nothing(s)
	r.No(s.Close())
}

func TestTheEnginesEventsAreAView(t *testing.T) {
	r := newRig(t)
	all := r.subscribe(bus.SubscribeOptions{Pattern: ">"})
	sys := r.subscribe(bus.SubscribeOptions{Pattern: "sys.>", From: 1})
	subs := r.subscribe(bus.SubscribeOptions{Pattern: "sys.subscription.*", Name: "watcher"})
	r.publish("a.b", `{}`)
	d := r.next(sys)
	expect.True(t, d.Message.Topic == "sys.subscription.created" && d.Message.SenderID == "system" && d.Message.MessageType == bus.Event,
		"%s", core.MustEncode(d.Message))
	key := r.next(sys)
	expect.True(t, key.Message.Topic == "sys.audit.key", "%s", core.MustEncode(key.Message))
	if got := r.get(d.Message.MessageID); got.Topic != d.Message.Topic || string(got.Payload) != string(d.Message.Payload) ||
		!strings.Contains(string(got.Payload), `"id":"watcher"`) || got.Status != bus.Published {
		t.Errorf("by id: %s", core.MustEncode(got))
	}
	r.nothing(sys) // the message a.b itself is no event of it
	expect.Is(t, r.next(all).Message.Topic, "a.b", "a pattern that does not name sys saw")
	r.nothing(all)
	second := r.subscribe(bus.SubscribeOptions{Pattern: "x", Name: "second"})
	d = r.next(subs)
	expect.Has(t, string(d.Message.Payload), `"id":"second"`)
	r.No(subs.Close()) // not acknowledged
	subs = r.subscribe(bus.SubscribeOptions{Pattern: "sys.subscription.*", Name: "watcher"})
	expect.Is(t, r.next(subs).Message.MessageID, d.Message.MessageID, "again")
	for _, s := range []*bus.Subscription{all, sys, subs, second} {
		r.No(s.Close())
	}
	expect.Is(t, code(expect.Fault(r.Resend(t.Context(), alice, d.Message.MessageID))), core.InvalidInput, "sent an event of the engine again")
	recent, seq, err := r.Recent(t.Context(), acme, "sys.subscription.>", 1)
	expect.True(t, err == nil && len(recent) == 1 && strings.Contains(string(recent[0].Payload), "second"), "recent: %v, %v", recent, err)
	r.No(r.Unsubscribe(t.Context(), alice, "second"))
	since, next, err := r.Since(t.Context(), acme, "sys.>", seq, 10)
	expect.True(t, err == nil && len(since) == 1 && since[0].Topic == "sys.subscription.removed" && next > seq, "since: %v, %d, %v", since, next, err)
	r.whole()
}

// What was for others is not looked at again after a crash, however rare the
// messages of a subscription are.
func TestACursorMovesPastWhatIsForOthers(t *testing.T) {
	r := newRig(t)
	opt := bus.SubscribeOptions{Pattern: "rare.one", Name: "patient"}
	s := r.subscribe(opt)
	var wg sync.WaitGroup
	for range 11 {
		wg.Go(func() {
			for range 100 {
				r.publish("common.one", `{}`)
			}
		})
	}
	wg.Wait()
	r.nothing(s)
	r.run()
	saved := func() uint64 { // by one who does not read: from disk
		fresh := bus.New(bus.Options{Ledger: r.Ledger})
		all := expect.Of(fresh.Subscriptions(t.Context(), acme))(r.T)
		return all[0].Cursor
	}
	r.await("the cursor", func() bool { return saved() >= 1000 })
	r.publish("rare.one", `{}`)
	r.next(s).Ack()
	r.No(s.Close())
}
