package bus_test

import (
	"strings"
	"testing"

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
	dead := r.dead()
	expect.True(t, len(dead) == 1 && dead[0].MessageID == m.MessageID && dead[0].Dead == "refused", "dead letters %+v", dead)
	r.whole()
}
