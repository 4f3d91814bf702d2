package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestAcceptedMessagesHaveTheSeedsFields(t *testing.T) {
	r := newRig(t)
	m := r.send(bus.Send{Topic: "navigation.complete", Sender: "ann", Payload: core.Raw("{ \"location\" : \"kitchen\" }")})
	got := r.get(m.MessageID)
	if !core.IsUUID(m.MessageID) || got.TTL != 60 || got.Priority != 5 || got.MessageType != bus.Event || got.SenderID != "ann" ||
		string(got.Payload) != `{"location":"kitchen"}` || got.Status != bus.Published || got.TenantID != acme || got.Seq != 1 ||
		!got.Timestamp.Equal(m.Timestamp) || core.CheckTrace(got.TraceID) != nil {
		t.Errorf("got %s", core.MustEncode(got))
	}
	direct := r.direct("bob", `{"a":1}`, func(s *bus.Send) { s.Priority, s.TTL = 1, 3600 })
	got = r.get(direct.MessageID)
	expect.True(t, got.RecipientID == "bob" && got.SenderID == "system" && got.Status == bus.Open && got.TTL == 3600 && got.Priority == 1,
		"got %s", core.MustEncode(got))
	events := r.events("message.accepted")
	expect.True(t, len(events) == 2 && events[1].TraceID == m.TraceID, "%d events", len(events))
	r.whole()
}

// Every rule of the model's Message section and of ours, broken once.
func TestWhatIsWrongWithAMessageIsNamed(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("a.", 100) + "a"
	for name, c := range map[string]struct {
		send  bus.Send
		code  core.Code
		field string
	}{
		"neither topic nor recipient":  {bus.Send{}, core.InvalidInput, "topic"},
		"both topic and recipient":     {bus.Send{Topic: "a", Recipient: "ann"}, core.InvalidInput, "recipient_id"},
		"empty word":                   {bus.Send{Topic: "a..b"}, core.InvalidInput, "topic"},
		"wildcard":                     {bus.Send{Topic: "a.*"}, core.InvalidInput, "topic"},
		"strange character":            {bus.Send{Topic: "a b"}, core.InvalidInput, "topic"},
		"long topic":                   {bus.Send{Topic: long}, core.InvalidInput, "topic"},
		"the engine's topic":           {bus.Send{Topic: "sys.task.queued"}, core.InvalidInput, "topic"},
		"the engine's word":            {bus.Send{Topic: "sys"}, core.InvalidInput, "topic"},
		"unknown sender":               {bus.Send{Topic: "a", Sender: "nobody"}, core.InvalidInput, "sender_id"},
		"sender is a component":        {bus.Send{Topic: "a", Sender: "controller"}, core.InvalidInput, "sender_id"},
		"sender of another tenant":     {bus.Send{Topic: "a", Sender: "zoe"}, core.Denied, ""},
		"unknown recipient":            {bus.Send{Recipient: "nobody"}, core.InvalidInput, "recipient_id"},
		"recipient of another tenant":  {bus.Send{Recipient: "zoe"}, core.Denied, ""},
		"foreign subagent":             {bus.Send{Recipient: core.NewUUID(other, 1, nil)}, core.Denied, ""},
		"unknown subagent":             {bus.Send{Recipient: core.NewUUID(acme, 1, nil)}, core.InvalidInput, "recipient_id"},
		"unknown type":                 {bus.Send{Topic: "a", Type: "news"}, core.InvalidInput, "message_type"},
		"negative ttl":                 {bus.Send{Topic: "a", TTL: -1}, core.InvalidInput, "ttl"},
		"long ttl":                     {bus.Send{Topic: "a", TTL: 3601}, core.InvalidInput, "ttl"},
		"priority too high":            {bus.Send{Topic: "a", Priority: 11}, core.InvalidInput, "priority"},
		"negative priority":            {bus.Send{Topic: "a", Priority: -1}, core.InvalidInput, "priority"},
		"correlation is no UUID":       {bus.Send{Topic: "a", CorrelationID: "corr-456"}, core.InvalidInput, "correlation_id"},
		"correlation is no v4":         {bus.Send{Topic: "a", CorrelationID: "a7f3c2e1-8d4b-1a9c-9e2f-1b3c4d5e6f7a"}, core.InvalidInput, "correlation_id"},
		"correlation in upper case":    {bus.Send{Topic: "a", CorrelationID: "A7F3C2E1-8D4B-4A9C-9E2F-1B3C4D5E6F7A"}, core.InvalidInput, "correlation_id"},
		"response without correlation": {bus.Send{Recipient: "ann", Type: bus.Response}, core.InvalidInput, "correlation_id"},
		"response to nothing":          {bus.Send{Recipient: "ann", Type: bus.Response, CorrelationID: core.NewUUID(acme, 9, nil)}, core.Conflict, "correlation_id"},
		"response to a topic":          {bus.Send{Topic: "a", Type: bus.Response, CorrelationID: core.NewUUID(acme, 9, nil)}, core.InvalidInput, "recipient_id"},
		"request to a topic":           {bus.Send{Topic: "a", Type: bus.Request}, core.InvalidInput, "recipient_id"},
		"request to everybody":         {bus.Send{Recipient: "broadcast", Type: bus.Request}, core.InvalidInput, "recipient_id"},
		"bad trace":                    {bus.Send{Topic: "a", Trace: "xyz"}, core.InvalidInput, "trace_id"},
		"bad task":                     {bus.Send{Topic: "a", Task: "xyz"}, core.InvalidInput, "task_id"},
		"task of another tenant":       {bus.Send{Topic: "a", Task: core.NewID(core.TaskPrefix, other, 1)}, core.Denied, ""},
		"payload missing":              {bus.Send{Topic: "a", Payload: core.Raw(" ")}, core.InvalidInput, "payload"},
		"payload no object":            {bus.Send{Topic: "a", Payload: core.Raw("[1]")}, core.InvalidInput, "payload"},
		"payload twice":                {bus.Send{Topic: "a", Payload: core.Raw("{}{}")}, core.InvalidInput, "payload"},
		"payload with a double member": {bus.Send{Topic: "a", Payload: core.Raw(`{"a":1,"a":2}`)}, core.InvalidInput, "payload"},
		"payload too large":            {bus.Send{Topic: "a", Payload: core.Raw(`{"a":"` + strings.Repeat("x", bus.MaxPayload) + `"}`)}, core.InvalidInput, "payload"},
		"payload too deep":             {bus.Send{Topic: "a", Payload: core.Raw(strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200))}, core.InvalidInput, "payload"},
	} {
		if c.send.Payload == nil {
			c.send.Payload = core.Raw("{}")
		}
		_, err := r.Accept(t.Context(), alice, c.send)
		if code(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
			continue
		}
		got := core.AsError(err).Details["field"]
		expect.True(t, c.field == "" || got == c.field, "%s: names %v, want %s: %v", name, got, c.field, err)
	}
	f := r.figures()
	expect.True(t, f.Messages == 0 && f.Open == 0 && f.Unanswered == 0, "something was left: %+v", f)
	expect.Is(t, len(r.events("tenant.violation")), 4, "tenant violations audited, want 4")
	r.whole()
}

func TestAnAgentSpeaksAndReadsForItselfOnly(t *testing.T) {
	r := newRig(t)
	ann := core.Caller{Tenant: acme, Name: "ann", Kind: core.Agent, Door: core.DoorMCP}
	m, err := r.Accept(t.Context(), ann, bus.Send{Recipient: "bob", Payload: core.Raw("{}")})
	expect.True(t, err == nil && m.SenderID == "ann", "sender %q, %v", m.SenderID, err)
	for _, sender := range []string{"bob", "system"} {
		_, err = r.Accept(t.Context(), ann, bus.Send{Recipient: "cid", Sender: sender, Payload: core.Raw("{}")})
		expect.Is(t, code(err), core.Denied, "sent as", sender)
	}
	expect.Is(t, code(expect.Fault(r.Read(t.Context(), ann, "bob", 1))), core.Denied, "read bob's mail")
	expect.Of(r.Read(t.Context(), ann, "ann", 1))(t)
}

func TestAMailboxGivesThePriorityFirstAndThenTheOldest(t *testing.T) {
	r := newRig(t)
	for i, priority := range []int{5, 1, 10, 5, 1, 7} {
		r.direct("bob", fmt.Sprintf(`{"n":%d}`, i), func(s *bus.Send) { s.Priority = priority })
	}
	peeked := expect.Of(r.Peek(t.Context(), alice, "bob", 100))(r.T)
	got := append(r.read("bob", 2), r.read("bob", 100)...)
	var order string
	for i, m := range got {
		order += string(m.Payload[5])
		expect.True(t, peeked[i].MessageID == m.MessageID && m.Status == bus.Taken, "%d: peeked %s, read %s %s", i, peeked[i].MessageID, m.MessageID, m.Status)
	}
	expect.Is(t, order, "140352", "order")
	more := r.read("bob", 1)
	expect.True(t, len(more) == 0, "read twice: %v", more)
	if got := r.get(got[0].MessageID); got.Status != bus.Taken || len(got.Deliveries) != 1 || got.Deliveries[0].At.IsZero() {
		t.Errorf("after the reading: %s", core.MustEncode(got))
	}
	expect.Is(t, len(r.events("message.read")), 2, "reads audited, want 2")
	r.whole()
}

func TestBroadcastGoesToEverybodyElse(t *testing.T) {
	r := newRig(t)
	m := r.direct("broadcast", `{"hi":1}`, func(s *bus.Send) { s.Sender = "bob" })
	f := r.figures()
	expect.True(t, f.Messages == 1 && f.Open == 2, "%+v", f)
	got := r.read("ann", 5)
	expect.True(t, len(got) == 1 && got[0].MessageID == m.MessageID, "ann got %v", got)
	got = r.read("bob", 5)
	expect.True(t, len(got) == 0, "the sender got %v", got)
	if got := r.get(m.MessageID); got.Status != bus.Open || len(got.Deliveries) != 2 || got.Deliveries[0].Status != bus.Taken {
		t.Errorf("%s", core.MustEncode(got))
	}
	r.read("cid", 5)
	if got := r.get(m.MessageID); got.Status != bus.Taken {
		t.Errorf("%s", core.MustEncode(got))
	}
	r.whole()
}

func TestAMessageInsideAChangeExistsOnlyWithIt(t *testing.T) {
	r := newRig(t)
	s := r.subscribe(bus.SubscribeOptions{Pattern: ">"})
	defer s.Close()
	boom := errors.New("boom")
	try := func(fail error) error {
		return r.Ledger.Update(t.Context(), alice, func(tx *audit.Tx) error {
			if _, err := r.AcceptIn(tx, bus.Send{Topic: "a.b", Sender: "ann", Payload: core.Raw(`{}`)}); err != nil {
				return err
			}
			_, err := tx.Record(audit.Entry{Type: "test.done", Subject: "test", ID: "1"})
			return errors.Join(err, fail)
		})
	}
	err := try(boom)
	expect.Must(t, errors.Is(err, boom), "%v", err)
	r.nothing(s)
	r.No(try(nil))
	d := r.next(s)
	expect.True(t, d.Message.Topic == "a.b" && d.Message.Seq == 1, "%+v", d.Message)
	r.whole()
}

// A transaction may go on after a refusal, with another message instead.
func TestARefusalInsideAChangeHasWrittenNothing(t *testing.T) {
	r := newRig(t)
	open := r.send(bus.Send{Recipient: "bob", Sender: "ann", Type: bus.Request})
	r.No(r.Ledger.Update(t.Context(), alice, func(tx *audit.Tx) error {
		for _, bad := range []bus.Send{
			{Topic: "a", Sender: "nobody"},
			{Recipient: "nobody"},
			{Topic: "a", Payload: core.Raw(`[]`)},
			{Recipient: "cid", Type: bus.Request, CorrelationID: open.CorrelationID},
			{Recipient: "ann", Sender: "cid", Type: bus.Response, CorrelationID: open.CorrelationID},
		} {
			if bad.Payload == nil {
				bad.Payload = core.Raw(`{}`)
			}
			expect.True(t, expect.Fault(r.AcceptIn(tx, bad)) != nil, "accepted %s", core.MustEncode(bad))
		}
		_, err := r.AcceptIn(tx, bus.Send{Topic: "a", Payload: core.Raw(`{}`)})
		return err
	}))
	f := r.figures()
	expect.True(t, f.Messages == 2 && f.Unanswered == 1 && f.Open == 1, "%+v", f)
	r.whole()
}

func TestRequestsWaitForTheirResponse(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	s := r.subscribe(bus.SubscribeOptions{Mailbox: "bob", Type: bus.Request})
	defer s.Close()
	wg.Go(func() {
		for _, isError := range []bool{false, true} {
			d, err := s.Next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			d.Ack()
			_, err = r.Reply(t.Context(), alice, d.Message.MessageID, core.Raw(`{"objects":["cup"]}`), isError)
			expect.True(t, err == nil, "%v", err)
			expect.Is(t, code(expect.Fault(r.Reply(t.Context(), alice, d.Message.MessageID, core.Raw(`{}`), isError))), core.Conflict, "answered twice")
		}
	})
	for _, want := range []bus.Type{bus.Response, bus.Error} {
		got := expect.Of(r.Request(t.Context(), alice, bus.Send{Recipient: "bob", Sender: "ann", Payload: core.Raw(`{"skill":"detect"}`)}, 5*time.Second))(r.T)
		expect.True(t, got.MessageType == want && got.SenderID == "bob" && got.RecipientID == "ann" && string(got.Payload) == `{"objects":["cup"]}`,
			"%s", core.MustEncode(got))
		page := expect.Of(r.Bus.List(t.Context(), acme, bus.Query{Correlation: got.CorrelationID}))(r.T)
		if len(page.Items) != 2 || page.Items[1].ResponseID != got.MessageID || page.Items[1].TraceID != got.TraceID || page.Items[0].Status != bus.Taken {
			t.Errorf("thread: %s", core.MustEncode(page.Items))
		}
	}
	wg.Wait()
	r.No(s.Close())
	f := r.figures()
	expect.True(t, f.Unanswered == 0 && f.Open == 0, "%+v", f)
	r.whole()
}

// The answer goes to the one who waits for it, not also to a reader of the same
// mailbox, however fast that one is.
func TestAnAnswerIsNotReadByAnother(t *testing.T) {
	r := newRig(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		box, err := r.Subscribe(ctx, acme, bus.SubscribeOptions{Mailbox: "bob"})
		if err != nil {
			t.Error(err)
			return
		}
		defer box.Close()
		for {
			d, err := box.Next(ctx)
			if err != nil {
				return
			}
			d.Ack()
			_, err = r.Reply(ctx, alice, d.Message.MessageID, core.Raw(`{}`), false)
			expect.True(t, err == nil || ctx.Err() != nil, "%v", err)
		}
	})
	stolen := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			found, err := r.Read(ctx, alice, "ann", 10)
			if err != nil {
				return
			}
			stolen += len(found)
		}
	})
	for range 200 {
		expect.Of(r.Request(ctx, alice, bus.Send{Recipient: "bob", Sender: "ann", Payload: core.Raw(`{}`)}, 10*time.Second))(t)
	}
	stop()
	wg.Wait()
	expect.True(t, stolen <= 0, "%d of 200 answers were read by another too", stolen)
}

func TestARequestWithoutAnAnswerTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		began := time.Now()
		_, err := r.Request(t.Context(), alice, bus.Send{Recipient: "bob", TTL: 100, Payload: core.Raw(`{}`)}, 30*time.Millisecond)
		expect.Must(t, errors.Is(err, bus.ErrNoReply) && time.Since(began) <= 5*time.Second, "%v after %v", err, time.Since(began))
		open := expect.Of(r.Bus.List(t.Context(), acme, bus.Query{Filter: core.Filter{Status: bus.Unanswered}}))(t).Items
		expect.Must(t, len(open) == 1 && open[0].Unanswered && open[0].SenderID == "system", "unanswered: %v", open)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = r.Request(ctx, alice, bus.Send{Recipient: "bob", Payload: core.Raw(`{}`)}, time.Second)
		expect.Err(t, err, context.Canceled, "cancelled")
		for _, d := range []time.Duration{-1, time.Microsecond, 2 * time.Hour} {
			_, err = r.Request(t.Context(), alice, bus.Send{Recipient: "bob", Payload: core.Raw(`{}`)}, d)
			expect.Is(t, code(err), core.InvalidInput, "timeout", d)
		}
		// A late answer goes to the mailbox.
		expect.Of(r.Reply(t.Context(), alice, open[0].MessageID, core.Raw(`{"late":true}`), false))(r.T)
		got := r.read("system", 5)
		expect.True(t, len(got) == 1 && got[0].CorrelationID == open[0].CorrelationID, "late answer: %v", got)
		r.whole()
	})
}

func TestOnlyTheRecipientOfARequestAnswersIt(t *testing.T) {
	r := newRig(t)
	ask := r.send(bus.Send{Recipient: "bob", Sender: "ann", Type: bus.Request})
	reply := bus.Send{Recipient: "ann", Sender: "bob", Type: bus.Response, CorrelationID: ask.CorrelationID, Payload: core.Raw(`{}`)}
	for name, c := range map[string]struct {
		change func(*bus.Send)
		field  string
	}{
		"another sender":      {func(s *bus.Send) { s.Sender = "cid" }, "sender_id"},
		"another recipient":   {func(s *bus.Send) { s.Recipient = "cid" }, "recipient_id"},
		"an error of a third": {func(s *bus.Send) { s.Sender, s.Type = "cid", bus.Error }, "sender_id"},
	} {
		s := reply
		c.change(&s)
		_, err := r.Accept(t.Context(), alice, s)
		expect.True(t, code(err) == core.Conflict && core.AsError(err).Details["field"] == c.field, "%s: %v", name, err)
	}
	if _, err := r.Accept(t.Context(), alice, bus.Send{Recipient: "cid", Type: bus.Request, CorrelationID: ask.CorrelationID, Payload: core.Raw(`{}`)}); code(err) != core.Conflict {
		t.Errorf("two open requests of one correlation: %v", err)
	}
	_, err := r.Reply(t.Context(), alice, r.publish("a", "{}").MessageID, core.Raw("{}"), false)
	expect.Is(t, code(err), core.InvalidInput, "answered an event")
	r.clock.move(61 * time.Second)
	_, err = r.Accept(t.Context(), alice, reply)
	expect.True(t, code(err) == core.Conflict && strings.Contains(err.Error(), "expired"), "answered an expired request: %v", err)
	// The controller is a component: the system answers for it.
	ask = r.send(bus.Send{Recipient: "controller", Sender: "ann", Type: bus.Request})
	got, err := r.Reply(t.Context(), alice, ask.MessageID, core.Raw(`{}`), false)
	expect.True(t, err == nil && got.SenderID == "system" && got.RecipientID == "ann", "%+v, %v", got, err)
	// An error about something that is over is a notification like any other.
	r.send(bus.Send{Recipient: "ann", Sender: "cid", Type: bus.Error, CorrelationID: ask.CorrelationID})
	r.whole()
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	r := newRig(t)
	m := r.direct("bob", `{}`)
	bob := core.Caller{Tenant: other, Name: "eve", Kind: core.Operator, Door: core.DoorCLI}
	expect.Is(t, code(expect.Fault(r.Get(t.Context(), other, m.MessageID))), core.Denied, "get")
	expect.Is(t, code(expect.Fault(r.Resend(t.Context(), bob, m.MessageID))), core.Denied, "resend")
	expect.Is(t, code(expect.Fault(r.Reply(t.Context(), bob, m.MessageID, core.Raw(`{}`), false))), core.Denied, "reply")
	expect.Is(t, code(expect.Fault(r.Read(t.Context(), bob, "bob", 1))), core.Denied, "read")
	expect.Is(t, code(expect.Fault(r.Subscribe(t.Context(), other, bus.SubscribeOptions{Mailbox: "bob"}))), core.Denied, "subscribe")
	page, err := r.Ledger.List(t.Context(), other, core.Filter{Kind: "tenant.violation"})
	expect.True(t, err == nil && page.Info.Total == 5, "%d violations, %v", page.Info.Total, err)
	expect.Is(t, code(expect.Fault(r.Get(t.Context(), acme, core.NewUUID(acme, m.Seq, nil)))), core.NotFound, "an id with the right number only")
	expect.Is(t, code(expect.Fault(r.Get(t.Context(), acme, "m1"))), core.InvalidInput, "no id")
}
