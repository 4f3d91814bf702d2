package bus_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// A mailbox that is full refuses: the sender learns. Room comes back as it is
// read, and a restart forgets nothing of it.
func TestAFullMailboxRefuses(t *testing.T) {
	r := newRig(t)
	r.most = 3
	r.reopen()
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
	r.reopen()
	refused()
	r.direct("bob", `{}`)
	if boxes, err := r.Mailboxes(t.Context(), acme); err != nil || len(boxes) != 2 || boxes[0].Open != 3 || boxes[0].Oldest.IsZero() || boxes[1].Open != 1 {
		t.Errorf("mailboxes %+v, %v", boxes, err)
	}
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
	r.reopen()
	r.direct("ann", `{}`)
	m := r.send(bus.Send{Recipient: bus.Broadcast})
	found := r.get(m.MessageID)
	if found.Status != bus.Open || len(found.Deliveries) != 3 {
		t.Fatalf("%+v", found)
	}
	for _, d := range found.Deliveries {
		if d.RecipientID == "ann" && (d.Status != bus.Refused || d.Reason != "the mailbox is full") || d.RecipientID != "ann" && d.Status != bus.Open {
			t.Errorf("%+v", d)
		}
	}
	if dead := r.dead(core.Filter{Status: bus.ReasonFull}); len(dead) != 1 || dead[0].RecipientID != "ann" || dead[0].MessageID != m.MessageID {
		t.Errorf("dead letters %+v", dead)
	}
	r.whole()
}
