package builtin_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/drivers/builtin"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// everybody is a directory in which two agents are known.
type everybody struct{}

func (everybody) Known(_, id string) bool { return id == "agent-1" || id == "agent-2" }
func (everybody) All(string) []string     { return []string{"agent-1", "agent-2"} }
func (everybody) Elsewhere(_, _ string) bool {
	return false
}

func newPost(t *testing.T) (*builtin.Post, *bus.Bus) {
	t.Helper()
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "data.db"), store.Options{}))(t)
	expect.No(t, db.CreateTenant(t.Context(), "t_test"))
	ledger := audit.New(db, audit.Options{})
	b := bus.New(bus.Options{Ledger: ledger, Directory: everybody{}, Tenants: db.Tenants})
	ctx, stop := context.WithCancel(context.Background())
	done := expect.Later(func() error { return b.Run(ctx) })
	t.Cleanup(func() {
		stop()
		err := <-done
		expect.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
		expect.Is(t, db.Close(), nil)
	})
	p := &builtin.Post{}
	p.Open(b, ledger)
	return p, b
}

func TestTheBusIsWaitedFor(t *testing.T) {
	p, b := newPost(t)
	by := core.Self("t_test", "test")
	send := func(s bus.Send) {
		s.Sender, s.Type = "system", bus.Event
		expect.Of(b.Accept(t.Context(), by, s))(t)
	}
	send(bus.Send{Topic: "navigation.complete", Payload: core.Raw(`{"n":0}`)}) // before anybody waits
	send(bus.Send{Recipient: "agent-1", Payload: core.Raw(`{"n":1}`)})
	send(bus.Send{Recipient: "agent-2", Payload: core.Raw(`{"n":2}`)})

	deck := newBench(t, p)
	type message struct {
		Topic     string   `json:"topic"`
		Recipient string   `json:"recipient_id"`
		Payload   core.Raw `json:"payload"`
	}
	var m message
	o := deck.run("wait-for-message", `{"mailbox":true,"timeout":10}`)
	expect.True(t, core.DecodeStored(o.Output, &m) == nil && m.Recipient == "agent-1" && string(m.Payload) == `{"n":1}`, "mailbox: %s %+v", o.Output, o.Error)
	deck.fails("wait-for-message", `{"mailbox":true,"timeout":0.1}`, "no_message", "") // it was taken
	deck.fails("wait-for-message", `{"topic":"navigation.*","timeout":0.1}`, "no_message", "")

	w := deck.start("wait-for-message", `{"topic":"navigation.*","timeout":10}`)
	for {
		send(bus.Send{Topic: "navigation.complete", Payload: core.Raw(`{"n":3}`)})
		select {
		case <-w.Done():
		case <-time.After(10 * time.Millisecond):
			continue
		}
		break
	}
	m = message{}
	if err := core.DecodeStored(w.Outcome().Output, &m); err != nil || m.Topic != "navigation.complete" || string(m.Payload) != `{"n":3}` {
		t.Errorf("topic: %+v", w.Outcome())
	}
	deck.fails("wait-for-message", `{"topic":"a..b"}`, "invalid_input", "a..b")
	deck.fails("wait-for-message", `{"topic":"navigation.>.x"}`, "invalid_input", "")
}

func TestAClosedPostRefuses(t *testing.T) {
	newBench(t, &builtin.Post{}).fails("wait-for-message", `{"mailbox":true}`, "unavailable", "not open")
}
