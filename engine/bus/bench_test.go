package bus_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

var kib = core.Raw(`{"text":"` + strings.Repeat("x", 1000) + `"}`)

// BenchmarkAccept measures durable messages per second, audited and sealed,
// and prints their ratio to what the store alone commits with as many
// producers: one record of the same size per Update, nothing else.
func BenchmarkAccept(b *testing.B) {
	for _, kind := range []struct {
		name string
		send bus.Send
	}{
		{"topic", bus.Send{Topic: "bench.topic", Payload: kib}},
		{"direct", bus.Send{Recipient: "bob", Payload: kib}},
	} {
		for _, producers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, producers), func(b *testing.B) {
				n := 2000 * min(producers, 16)
				var rate, bare float64
				for range b.N {
					bare = bareRate(b, n, producers)
					r := newRig(b)
					r.most = n // nobody reads
					r.Reopen()
					rate = together(b, n, producers, func(int) error {
						_, err := r.Accept(b.Context(), alice, kind.send)
						return err
					})
					r.Close()
				}
				b.ReportMetric(rate, "msg/s")
				b.ReportMetric(bare, "store-commits/s")
				b.ReportMetric(rate/bare, "of-store")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// bareRate is how many updates of one record a second the store itself does.
func bareRate(b *testing.B, n, producers int) float64 {
	db := expect.Of(store.Open(filepath.Join(b.TempDir(), "bare.db"), store.Options{}))(b)
	defer db.Close()
	expect.No(b, db.CreateTenant(b.Context(), acme))
	return together(b, n, producers, func(int) error {
		return db.Update(b.Context(), acme, func(tx store.Tx) error {
			seq := uint64(tx.Add("n", 1))
			return tx.Put("bare", []byte(fmt.Sprintf("%016x", seq)), slices.Clone(kib))
		})
	})
}

// together calls fn n times from that many goroutines and returns the rate.
func together(b *testing.B, n, producers int, fn func(i int) error) float64 {
	var left atomic.Int64
	left.Store(int64(n))
	start := time.Now()
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				if err := fn(int(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkDelivery publishes 1,000 messages a second for some seconds and
// measures, for each subscriber and message, the time from the call of Accept
// until Next returned it.
func BenchmarkDelivery(b *testing.B) {
	for _, subscribers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(subscribers), func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				took = deliver(b, subscribers, 3000, 1000)
			}
			slices.Sort(took)
			at := func(p float64) float64 { return float64(took[int(p*float64(len(took)-1))]) / 1e6 }
			b.ReportMetric(at(0.5), "p50-ms")
			b.ReportMetric(at(0.99), "p99-ms")
			b.ReportMetric(at(1), "max-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func deliver(b *testing.B, subscribers, n, perSecond int) []time.Duration {
	r := newRig(b)
	defer r.Close()
	ctx, stop := context.WithTimeout(b.Context(), time.Minute)
	defer stop()
	began := make([]atomic.Int64, n+1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	for range subscribers {
		s := r.subscribe(bus.SubscribeOptions{Pattern: "bench.>"})
		wg.Go(func() {
			mine := make([]time.Duration, 0, n)
			for len(mine) < n {
				d, err := s.Next(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				var i int
				if _, err := fmt.Sscanf(string(d.Message.Payload), `{"i":%d}`, &i); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Duration(time.Now().UnixNano()-began[i].Load()))
			}
			if err := s.Close(); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	// One publisher waits for the disk each time, so several share the pace.
	start := time.Now()
	var senders sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		senders.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
				began[i].Store(time.Now().UnixNano())
				if _, err := r.Accept(ctx, alice, bus.Send{Topic: "bench.tick", Payload: core.Raw(fmt.Sprintf(`{"i":%d}`, i))}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	wg.Wait()
	return all
}

// BenchmarkMailbox measures messages a second through one mailbox: accepted by
// 16 senders, delivered, acknowledged.
func BenchmarkMailbox(b *testing.B) {
	const n = 5000
	var rate float64
	for range b.N {
		r := newRig(b)
		r.run()
		s := r.subscribe(bus.SubscribeOptions{Mailbox: "bob"})
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			together(b, n, 16, func(int) error {
				_, err := r.Accept(b.Context(), alice, bus.Send{Recipient: "bob", Payload: kib})
				return err
			})
		})
		for range n {
			d := expect.Of(s.Next(b.Context()))(b)
			d.Ack()
		}
		expect.No(b, s.Close())
		rate = n / time.Since(start).Seconds()
		wg.Wait()
		r.Close()
	}
	b.ReportMetric(rate, "msg/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAcceptIn measures what a message costs the processor beside
// the disk: a change of its own against one with a message in it.
func BenchmarkAcceptIn(b *testing.B) {
	for _, messages := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(messages), func(b *testing.B) {
			r := newRig(b)
			for b.Loop() {
				expect.No(b, r.Ledger.Update(b.Context(), alice, func(tx *audit.Tx) error {
					for range messages {
						if _, err := r.AcceptIn(tx, bus.Send{Topic: "bench.in", Payload: kib}); err != nil {
							return err
						}
					}
					_, err := tx.Record(audit.Entry{Type: "bench.done", Subject: "bench", ID: "1"})
					return err
				}))
			}
		})
	}
}
