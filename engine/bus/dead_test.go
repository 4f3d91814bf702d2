package bus_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestUnreadMessagesExpireAndBecomeDeadLetters(t *testing.T) {
	r := newRig(t)
	short := r.direct("bob", `{"n":1}`, func(s *bus.Send) { s.TTL = 10 })
	long := r.direct("bob", `{"n":2}`, func(s *bus.Send) { s.TTL = 1000 })
	ask := r.send(bus.Send{Recipient: "cid", Sender: "ann", Type: bus.Request, TTL: 10})
	r.read("cid", 1) // read, but never answered
	r.clock.move(11 * time.Second)
	got := r.read("bob", 10)
	expect.True(t, len(got) == 1 && got[0].MessageID == long.MessageID, "read what had expired: %v", got)
	r.run()
	r.await("the dead letters", func() bool { return r.figures().Dead == 2 })
	letters := r.dead()
	if len(letters) != 2 || letters[0].MessageID != ask.MessageID || letters[0].Dead != "unanswered" ||
		letters[1].MessageID != short.MessageID || letters[1].Dead != "expired" || letters[1].Status != bus.Expired || letters[1].Deliveries[0].At.IsZero() {
		t.Errorf("%s", core.MustEncode(letters))
	}
	if got := r.get(ask.MessageID); got.Status != bus.Taken || got.Unanswered || got.ResponseID != "" {
		t.Errorf("%s", core.MustEncode(got))
	}
	f := r.figures()
	expect.True(t, f.Open == 0 && f.Unanswered == 0, "%+v", f)
	expect.Is(t, len(r.events("message.dead")), 2, "deaths audited, want 2")
	r.whole()

	repeat := expect.Of(r.Resend(t.Context(), alice, short.MessageID))(r.T)
	again := expect.Of(r.Resend(t.Context(), alice, ask.MessageID))(r.T)
	if repeat.ResendOf != short.MessageID || string(repeat.Payload) != `{"n":1}` || repeat.TTL != 10 || again.CorrelationID == ask.CorrelationID || again.SenderID != "ann" {
		t.Errorf("%s %s", core.MustEncode(repeat), core.MustEncode(again))
	}
	f = r.figures()
	expect.True(t, f.Dead == 0 && f.Open == 2 && f.Unanswered == 1, "%+v", f)
	if got := r.get(short.MessageID); len(r.dead()) != 0 || got.ResentAs != repeat.MessageID || got.Dead != "expired" {
		t.Errorf("%s", core.MustEncode(got))
	}
	expect.Is(t, code(expect.Fault(r.Resend(t.Context(), alice, repeat.MessageID))), core.Conflict, "sent an unread message again")
	r.whole()
}

func TestAMessageIsSentAgainThoughItsSenderIsGone(t *testing.T) {
	r := newRig(t)
	topic := r.send(bus.Send{Topic: "nav.done", Sender: "ann"})
	direct := r.send(bus.Send{Recipient: "cid", Sender: "bob"})
	r.read("cid", 1)
	r.who = agents{acme: {"bob"}} // ann and cid are gone
	r.Reopen()
	again, err := r.Resend(t.Context(), alice, topic.MessageID)
	expect.True(t, err == nil && again.SenderID == "ann", "%+v, %v", again, err)
	expect.Is(t, code(expect.Fault(r.Resend(t.Context(), alice, direct.MessageID))), core.InvalidInput, "sent to who is gone")
	ann := core.Caller{Tenant: acme, Name: "eve", Kind: core.Agent, Door: core.DoorMCP}
	expect.Is(t, code(expect.Fault(r.Resend(t.Context(), ann, topic.MessageID))), core.Denied, "an agent sent another's message again")
	r.whole()
}

func TestADurableSubscriptionsLossesAreDeadLetters(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"away", "here"} {
		r.No(r.subscribe(bus.SubscribeOptions{Pattern: "job.>", Name: name}).Close())
	}
	here := r.subscribe(bus.SubscribeOptions{Pattern: "job.>", Name: "here"})
	passing := r.subscribe(bus.SubscribeOptions{Pattern: "job.>"})
	for i := range 3 {
		r.send(bus.Send{Topic: "job.new", TTL: 10, Payload: core.Raw(fmt.Sprintf(`{"n":%d}`, i))})
	}
	r.send(bus.Send{Topic: "job.new", TTL: 1000, Payload: core.Raw(`{"n":3}`)})
	r.next(here).Ack()
	inHand := r.next(here)
	r.clock.move(11 * time.Second)
	r.run()
	// away missed three; here missed the third, and has the second in hand.
	r.await("the dead letters", func() bool { return r.figures().Dead == 3 })
	missed := map[string]string{}
	for _, m := range r.dead() {
		expect.True(t, m.Dead == "expired" && m.Status == bus.Published, "%s", core.MustEncode(m))
		for _, d := range m.Deliveries {
			missed[d.Subscription] += string(m.Payload[5])
		}
	}
	expect.True(t, maps.Equal(missed, map[string]string{"away": "210", "here": "2"}), "missed %v", missed)
	inHand.Ack()
	for _, s := range []*bus.Subscription{here, passing, r.subscribe(bus.SubscribeOptions{Pattern: "job.>", Name: "away"})} {
		d := r.next(s)
		expect.True(t, string(d.Message.Payload) == `{"n":3}`, "got %s, want what has not expired", d.Message.Payload)
		d.Ack()
		r.nothing(s)
		if s == passing {
			all := expect.Of(r.Subscriptions(t.Context(), acme))(t)
			expect.True(t, slices.ContainsFunc(all, func(s bus.SubscriptionInfo) bool { return s.Missed == 3 && !s.Durable }), "missed: %+v", all)
		}
		r.No(s.Close())
	}
	expect.Is(t, r.figures().Dead, 3, "dead letters in the end")
	r.whole()
}

// What expires while its reader has it in hand is looked at again, and dies
// when the reader goes away without an acknowledgement, whatever the reader
// does then.
func TestExpiredInTheHandOfAReaderThatGoesAway(t *testing.T) {
	r := newRig(t)
	s := r.subscribe(bus.SubscribeOptions{Pattern: "job.>", Name: "worker"})
	box := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
	r.send(bus.Send{Topic: "job.new", TTL: 10})
	r.direct("bob", `{}`, func(s *bus.Send) { s.TTL = 10 })
	r.next(s)
	r.next(box)
	r.clock.move(11 * time.Second)
	r.run()
	// The sweep has been there once it put them off.
	r.direct("cid", `{}`, func(s *bus.Send) { s.TTL = 1 })
	r.clock.move(2 * time.Second)
	r.direct("cid", `{}`)
	r.await("the sweep", func() bool { return r.figures().Dead == 1 })
	r.No(s.Close())
	r.No(box.Close())
	f := r.figures()
	expect.True(t, f.Dead == 1 && f.Open == 2, "%+v", f)
	r.clock.move(31 * time.Second)
	r.Reopen() // as after a crash: nobody remembers who had it
	r.run()
	r.await("the dead letters", func() bool { return r.figures().Dead == 3 })
	r.whole()
}

func TestOldMessagesAreCutOffAndLiveOnesStay(t *testing.T) {
	r := newRig(t)
	r.Close()
	r.keep = 300
	r.Open()
	r.send(bus.Send{Topic: "old.topic"})
	r.direct("bob", `{"dies":1}`)
	for range 598 {
		r.publishQuiet("old.other")
	}
	r.clock.move(2 * time.Minute)
	live := r.direct("bob", `{"lives":1}`, func(s *bus.Send) { s.TTL = 3600 })
	for range 600 {
		r.publishQuiet("new.topic")
	}
	if f := r.figures(); f.Messages != 1201 || f.Topics != 3 {
		t.Errorf("%+v", f)
	}
	r.clock.move(10 * time.Minute) // all but one have expired, and more than the slack ago
	r.run()
	r.await("the cut", func() bool { return r.figures().Messages <= 601 })
	r.Stop()
	f := r.figures()
	expect.True(t, f.Dead == 0 && f.Topics == 1 && f.Messages == 601 && f.Open == 1, "%+v", f)
	got := r.read("bob", 5)
	expect.True(t, len(got) == 1 && got[0].MessageID == live.MessageID, "read %v", got)
	page, err := r.Bus.List(t.Context(), acme, bus.Query{Filter: core.Filter{Page: 7, Size: 100}})
	expect.True(t, err == nil && len(page.Items) == 1 && page.Items[0].MessageID == live.MessageID && page.Info.Total == 601,
		"last page: %d items of %d, %v", len(page.Items), page.Info.Total, err)
	s := r.subscribe(bus.SubscribeOptions{Pattern: ">", From: 1})
	r.nothing(s)
	r.No(s.Close())
	expect.True(t, len(r.events("retention.pruned")) != 0, "the cut was not audited")
	r.whole()
}

// A message that a reader held long past its time is not cut off before it was
// dealt with: its mailbox could not be read any more, its subscription would
// lose it in silence.
func TestWhatAReaderHeldTooLongIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.keep = 1
		r.Reopen()
		held := r.direct("bob", `{}`, func(s *bus.Send) { s.TTL = 1 })
		box := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
		r.next(box)
		sub := r.subscribe(bus.SubscribeOptions{Pattern: "job", Name: "worker"})
		job := r.send(bus.Send{Topic: "job", TTL: 1})
		r.next(sub)
		r.clock.move(10 * time.Minute)
		r.run() // finds it expired, and in hand: looks again later
		r.publish("a", `{}`)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 30 {
					r.send(bus.Send{Topic: "a", TTL: 1})
				}
			})
		}
		wg.Wait()
		r.No(box.Close())
		r.No(sub.Close())
		r.clock.move(5 * time.Second)
		r.send(bus.Send{Topic: "a", TTL: 1}) // wakes the one who cuts off
		time.Sleep(1500 * time.Millisecond)
		expect.Of(r.Peek(t.Context(), alice, "bob", 10))(t)
		waker := r.subscribe(bus.SubscribeOptions{Pattern: "a", Name: "waker"}) // an acknowledgement wakes it, whatever the clock says
		r.clock.move(time.Minute)
		r.publish("a", `{}`)
		r.next(waker).Ack()
		r.await("their ends", func() bool { return len(r.events("message.dead")) == 2 })
		for _, e := range r.events("message.dead") {
			p := string(e.Payload)
			expect.True(t, strings.Contains(p, held.MessageID) || strings.Contains(p, job.MessageID), "%s", p)
		}
		boxes, err := r.Mailboxes(t.Context(), acme)
		expect.True(t, err == nil && len(boxes) == 0, "%+v, %v", boxes, err)
		r.No(waker.Close())
		r.whole()
	})
}
