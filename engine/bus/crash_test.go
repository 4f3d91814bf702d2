package bus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

// TestKilledAtAnyInstantNoAcceptedMessageIsLost sends to a mailbox and to a
// topic with a durable subscription, in a process that is killed again and
// again. After each kill every accepted message is there as it was sent, and
// the log verifies.
func TestKilledAtAnyInstantNoAcceptedMessageIsLost(t *testing.T) {
	storetest.Crash(t, storetest.CrashOptions{
		Open: enginetest.Sealed, Rounds: 40, Budget: 5 * time.Second,
		Load: func(ctx context.Context, st store.Store, ack func(string)) error { return churn(ctx, st, ack) },
		Verify: func(t testing.TB, _ string, st store.Store, acked []string) {
			if len(acked) > 0 { // else perhaps killed before there was a tenant
				verifyChurn(t, st, acked)
			}
		},
	})
}

const flightDir = "SWARMDECK_BUS_DIR"

// TestKilledWithAThousandMessagesInFlight waits until that many are accepted
// and unread, kills the process, and counts that none of them is lost.
func TestKilledWithAThousandMessagesInFlight(t *testing.T) {
	if dir := os.Getenv(flightDir); dir != "" {
		st := expect.Of(enginetest.Sealed(dir))(t)
		var mu sync.Mutex
		t.Fatal(churn(t.Context(), st, func(line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Println("ack", line)
		}))
	}
	dir := t.TempDir()
	var lines []string
	for round := range 3 {
		lines = append(lines, killedInFlight(t, dir, lines)...)
		st := expect.Of(enginetest.Sealed(dir))(t)
		sent, unread := verifyChurn(t, st, lines)
		expect.No(t, st.Close())
		t.Logf("kill %d: %d accepted so far, %d of them still to be read, 0 lost", round+1, sent, unread)
		expect.Must(t, unread >= 1000 && !t.Failed(), "%d in flight, want 1000 at least", unread)
	}
}

// killedInFlight runs the child until 1,000 more messages are accepted than
// were read, and returns what it acknowledged.
func killedInFlight(t *testing.T, dir string, before []string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), flightDir+"="+dir)
	out := expect.Of(cmd.StdoutPipe())(t)
	expect.No(t, cmd.Start())
	flight := 0
	count := func(line string) {
		if strings.HasPrefix(line, "sent ") {
			flight++
		} else {
			flight--
		}
	}
	for _, line := range before {
		count(line)
	}
	var lines []string
	fresh := 0
	for in := bufio.NewScanner(out); in.Scan(); {
		line, ok := strings.CutPrefix(in.Text(), "ack ")
		if !ok {
			continue
		}
		lines = append(lines, line)
		count(line)
		if fresh++; flight > 1200 && fresh > 500 {
			_ = cmd.Process.Kill() // the lines still in the pipe count too
		}
	}
	err := cmd.Wait()
	expect.Must(t, err != nil && !cmd.ProcessState.Exited(), "the child ended by itself: %v", err)
	return lines
}

// churn sends and reads for ever. What it acknowledges: "sent ID PAYLOAD" for
// an accepted message, "got ID" before a delivery is acknowledged.
func churn(ctx context.Context, st store.Store, ack func(string)) error {
	if err := st.CreateTenant(ctx, acme); err != nil && !errors.Is(err, store.ErrTenantExists) {
		return err
	}
	b := busOn(st)
	errs := make(chan error, 100)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pace := make(chan struct{}, 1) // of who reads
	wg.Go(func() { errs <- b.Run(ctx) })
	for _, opt := range []bus.SubscribeOptions{{Mailbox: "bob"}, {Pattern: "job.>", Name: "worker", From: 1}} {
		s, err := b.Subscribe(ctx, acme, opt)
		if err != nil {
			return err
		}
		wg.Go(func() { errs <- follow(ctx, s, pace, ack) })
	}
	for p := range 32 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s := bus.Send{Recipient: "bob", TTL: bus.MaxTTL, Payload: core.Raw(fmt.Sprintf(`{"p":%d,"n":%d}`, p, n))}
				if n%2 == 1 {
					s.Recipient, s.Topic = "", "job.new"
				}
				m, err := b.Accept(ctx, alice, s)
				if err != nil {
					errs <- err
					return
				}
				ack("sent " + m.MessageID + " " + string(m.Payload))
				if n%10 == 0 {
					select {
					case pace <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	return <-errs
}

// follow reads a message now and then, so that most stay in flight.
func follow(ctx context.Context, s *bus.Subscription, pace <-chan struct{}, ack func(string)) error {
	for {
		select {
		case <-pace:
		case <-ctx.Done():
			return ctx.Err()
		}
		d, err := s.Next(ctx)
		if err != nil {
			return err
		}
		ack("got " + d.Message.MessageID)
		d.Ack()
	}
}

func busOn(st store.Store) *bus.Bus {
	return bus.New(bus.Options{Ledger: audit.New(st, audit.Options{}), Directory: everybody, Tenants: st.Tenants})
}

// verifyChurn checks that each accepted message is there, and either was read
// or comes now; it returns how many were accepted and how many came.
func verifyChurn(t testing.TB, st store.Store, lines []string) (sent, unread int) {
	t.Helper()
	r := &rig{clock: &clock{}}
	enginetest.On(t, st, r.options())
	got := map[string]bool{}
	for _, line := range lines {
		if id, ok := strings.CutPrefix(line, "got "); ok {
			got[id] = true
		}
	}
	now := r.waiting()
	for _, line := range lines {
		rest, ok := strings.CutPrefix(line, "sent ")
		if !ok {
			continue
		}
		id, payload, _ := strings.Cut(rest, " ")
		m, err := r.Get(context.Background(), acme, id)
		expect.Must(t, err == nil && string(m.Payload) == payload, "accepted %s %s: there is %s, %v", id, payload, m.Payload, err)
		expect.True(t, got[id] || now[id], "%s is lost: it was never read and does not come (%s)", id, m.Status)
		if sent++; now[id] {
			unread++
		}
	}
	f := r.figures()
	expect.True(t, int(f.Messages) >= sent, "%d messages, %d were accepted", f.Messages, sent)
	r.whole()
	return sent, unread
}

// waiting is what comes to the mailbox and the durable subscription now,
// without an acknowledgement, so that it comes again.
func (r *rig) waiting() map[string]bool {
	r.T.Helper()
	out := map[string]bool{}
	ctx := context.Background()
	for page := 1; ; page++ {
		found := expect.Of(r.Bus.List(ctx, acme, bus.Query{Filter: core.Filter{Status: "open", Agent: "bob", Page: page, Size: 100}}))(r.T)
		for _, m := range found.Items {
			out[m.MessageID] = true
		}
		if !found.Info.Next {
			break
		}
	}
	subs := expect.Of(r.Subscriptions(ctx, acme))(r.T)
	for _, s := range subs {
		for seq := s.Cursor; ; {
			found, next, err := r.Since(ctx, acme, s.Pattern, seq, 1000)
			r.No(err)
			for _, m := range found {
				out[m.MessageID] = true
			}
			if next == seq {
				break
			}
			seq = next
		}
	}
	return out
}
