package bus_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// A mailbox that is full refuses: the sender learns. Room comes back as it is
// read, and a restart forgets nothing of it.
func TestAFullMailboxRefuses(t *testing.T) {
	r := newRig(t)
	r.most = 3
	r.Reopen()
	for range 3 {
		r.direct("ann", `{}`)
	}
	refused := func() {
		t.Helper()
		_, err := r.Accept(t.Context(), alice, bus.Send{Recipient: "ann", Payload: core.Raw(`{}`)})
		if code(err) != core.Conflict || !strings.Contains(err.Error(), "the mailbox of ann is full: 3 unread messages") || core.AsError(err).Details["field"] != "recipient_id" {
			t.Fatalf("got %v", err)
		}
	}
	refused()
	r.Reopen()
	refused()
	r.direct("bob", `{}`)
	boxes, err := r.Mailboxes(t.Context(), acme)
	expect.True(t, err == nil && len(boxes) == 2 && boxes[0].Open == 3 && !boxes[0].Oldest.IsZero() && boxes[1].Open == 1, "mailboxes %+v, %v", boxes, err)
	r.read("ann", 1)
	r.direct("ann", `{}`)
	refused()
	r.whole()
}

// One full mailbox does not keep a broadcast from the others, nor is it
// passed over in silence.
func TestABroadcastPassesAFullMailbox(t *testing.T) {
	r := newRig(t)
	r.most = 1
	r.Reopen()
	r.direct("ann", `{}`)
	m := r.send(bus.Send{Recipient: bus.Broadcast})
	found := r.get(m.MessageID)
	expect.Must(t, found.Status == bus.Open && len(found.Deliveries) == 3, "%+v", found)
	for _, d := range found.Deliveries {
		if d.RecipientID == "ann" && (d.Status != bus.Refused || d.Reason != "the mailbox is full") || d.RecipientID != "ann" && d.Status != bus.Open {
			t.Errorf("%+v", d)
		}
	}
	dead := r.dead(core.Filter{Status: bus.ReasonFull})
	expect.True(t, len(dead) == 1 && dead[0].RecipientID == "ann" && dead[0].MessageID == m.MessageID, "dead letters %+v", dead)
	r.whole()
}

// A durable subscription that nobody reads keeps the newest of its dead
// letters and counts the others.
func TestDeadLettersOfASubscriptionAreBounded(t *testing.T) {
	r := newRig(t)
	r.No(r.subscribe(bus.SubscribeOptions{Name: "idle", Pattern: "news"}).Close())
	const n = 1010
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range n / 10 {
				r.send(bus.Send{Topic: "news", TTL: 1})
			}
		})
	}
	wg.Wait()
	r.clock.move(2 * time.Second)
	r.run()
	sub := func() bus.SubscriptionInfo {
		all := expect.Of(r.Subscriptions(t.Context(), acme))(r.T)
		return all[0]
	}
	r.await("the dead letters", func() bool { return sub().Dropped == n-1000 })
	got := sub()
	expect.True(t, got.Dead == 1000, "%+v", got)
	r.await("the figures, which follow a commit", func() bool { return r.figures().Dead == 1000 })
	newest := r.dead(core.Filter{})[0]
	expect.Is(t, r.get(newest.MessageID).Seq, n, "the newest letter is of message")
	r.whole()
}

// The dead letters of the engine's events are not those of the messages with
// the same numbers.
func TestDeadLettersOfEventsAreTheirOwn(t *testing.T) {
	r := newRig(t)
	m := r.publish("news", `{}`) // both logs begin at 1
	s := r.subscribe(bus.SubscribeOptions{Name: "watch", Pattern: "sys.>", From: 1})
	d := r.next(s)
	r.No(d.Refuse(t.Context(), "not mine"))
	r.No(s.Close())
	all := r.dead(core.Filter{})
	expect.Must(t, len(all) == 1 && all[0].MessageID == d.Message.MessageID && all[0].Subscription == "watch", "%+v", all)
	for d.Message.Seq > m.Seq { // a message of that number, sent again
		m = r.publish("news", `{}`)
	}
	expect.Must(t, m.Seq == d.Message.Seq, "event %d, message %d", d.Message.Seq, m.Seq)
	expect.Of(r.Resend(t.Context(), alice, m.MessageID))(t)
	all = r.dead(core.Filter{Status: "resent"})
	expect.True(t, len(all) == 0, "%+v", all)
	expect.Is(t, code(expect.Fault(r.Resend(t.Context(), alice, d.Message.MessageID))), core.InvalidInput, "sent an event of the engine again")
	r.whole()
}
