package swarm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// oneByOne commits every update alone: the design with one fsync for each
// transition that group commit is measured against.
type oneByOne struct {
	store.Store
	mu sync.Mutex
}

func (o *oneByOne) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Store.Update(ctx, tenant, fn)
}

// benchRig is a rig with the default rules, so that every life pays for the
// real judge.
func benchRig(b *testing.B, alone bool) *rig {
	core.RelaxGC()
	b.Cleanup(core.HeapFloor())
	return newRig(b, func(r *rig) {
		r.runner, r.policy, r.slots = &fakeRunner{}, defaultRules, 0
		if alone {
			r.over = func(st store.Store) store.Store { return &oneByOne{Store: st} }
		}
	})
}

var kib = core.Raw(`{"argv":["echo","` + strings.Repeat("x", 1000) + `"]}`)

// live runs n task lives (enqueue, claim, complete, each durable and audited)
// with that many producers, and returns the rate and the p99 of a life.
func (r *rig) live(n, producers int) (perSecond float64, p99 time.Duration) {
	ctx := context.Background()
	var left atomic.Int64
	left.Store(int64(n))
	var mu sync.Mutex
	var took []time.Duration
	start := time.Now()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			worker := fmt.Sprint("w", p)
			var mine []time.Duration
			for left.Add(-1) >= 0 {
				begin := time.Now()
				if _, err := r.swarm.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: kib}); err != nil {
					r.T.Error(err)
					return
				}
				tasks, err := r.swarm.Claim(ctx, alice, worker, 1)
				if err != nil {
					r.T.Error(err)
					return
				}
				for _, t := range tasks {
					if _, err := r.swarm.Complete(ctx, alice, t.TaskID, t.Lease, ok(`{"rc":0}`)); err != nil {
						r.T.Error(err)
						return
					}
				}
				mine = append(mine, time.Since(begin))
			}
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.Sort(took)
	return float64(n) / time.Since(start).Seconds(), took[len(took)*99/100]
}

// feed runs n task lives with that many producers, which only enqueue, and as
// many workers, which complete a task and claim the next in one.
func (r *rig) feed(n, producers int) (perSecond float64) {
	ctx := context.Background()
	var toSend, toDo atomic.Int64
	toSend.Store(int64(n))
	toDo.Store(int64(n))
	bell, over := make(chan struct{}, producers), make(chan struct{}) // as a scheduler's slots wait, not asking on and on
	start := time.Now()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for toSend.Add(-1) >= 0 {
				if _, err := r.swarm.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: kib}); err != nil {
					r.T.Error(err)
					return
				}
				select {
				case bell <- struct{}{}:
				default:
				}
			}
		})
		wg.Go(func() {
			worker := fmt.Sprint("w", p)
			var mine []task.Task
			for toDo.Load() > 0 {
				var err error
				if len(mine) == 0 {
					if mine, err = r.swarm.Claim(ctx, alice, worker, 1); len(mine) == 0 {
						select {
						case <-bell:
						case <-over:
						}
					}
				} else {
					done := mine[0]
					_, mine, err = r.swarm.CompleteAndClaim(ctx, alice, done.TaskID, done.Lease, ok(`{"rc":0}`), worker, 1)
					if toDo.Add(-1) == 0 {
						close(over)
					}
				}
				if err != nil {
					r.T.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// rawLimit is how many lives a second a bare file allows: three records of a
// life's size for each, appended by group and synced before the answer.
func rawLimit(b *testing.B, n, producers int) float64 {
	f := expect.Of(os.Create(filepath.Join(b.TempDir(), "raw")))(b)
	defer f.Close()
	record := make([]byte, 1200)
	type req chan struct{}
	queue := make(chan req, 4096)
	go func() {
		for first := range queue {
			group := []req{first}
			for more := true; more; {
				select {
				case q := <-queue:
					group = append(group, q)
				default:
					more = false
				}
			}
			_, _ = f.Write(slices.Repeat(record, len(group)))
			_ = f.Sync()
			for _, q := range group {
				close(q)
			}
		}
	}()
	var left atomic.Int64
	left.Store(int64(n))
	start := time.Now()
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				for range 3 {
					q := make(req)
					queue <- q
					<-q
				}
			}
		})
	}
	wg.Wait()
	close(queue)
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkTaskLife prints lives a second at 1, 64 and 256 producers beside
// the design with one fsync for each transition and beside the raw limit of
// the disk, and what a life takes of the heap. The runs against the limit take
// turns with it, and the ratio is that of their times together: the disk's
// moods last for seconds.
func BenchmarkTaskLife(b *testing.B) {
	const rounds = 4
	for _, producers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			n := max(b.N, 200*min(producers, 50)) / rounds
			ours, limit := 0.0, 0.0 // seconds of a life
			var slowest time.Duration
			var bytes, objects uint64
			r := benchRig(b, false)
			for range rounds {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				rate, p99 := r.live(n, producers)
				runtime.ReadMemStats(&after)
				bytes += after.TotalAlloc - before.TotalAlloc
				objects += after.Mallocs - before.Mallocs
				slowest = max(slowest, p99)
				ours += 1 / rate / rounds
				limit += 1 / rawLimit(b, 2*n, producers) / rounds
			}
			alone, _ := benchRig(b, true).live(min(n, 1000), producers)
			lives := float64(rounds * n)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(1/ours, "lives/s")
			b.ReportMetric(benchRig(b, false).feed(rounds*n, producers), "fed-lives/s")
			b.ReportMetric(float64(slowest.Microseconds())/1000, "p99-ms")
			b.ReportMetric(1/ours/alone, "x-one-fsync-each")
			b.ReportMetric(limit/ours, "of-raw-limit")
			b.ReportMetric(float64(bytes)/lives, "B/life")
			b.ReportMetric(float64(objects)/lives, "allocs/life")
		})
	}
}

// BenchmarkTaskLifeStored prints what the history costs: the rate with 100k
// and 1M finished tasks stored against that of files that begin empty, by
// turns, and the time of a page of history there. SWARMDECK_BENCH_STORED sets
// the last size.
func BenchmarkTaskLifeStored(b *testing.B) {
	const rounds = 4
	sizes := []int{100_000, 1_000_000}
	if s := os.Getenv("SWARMDECK_BENCH_STORED"); s != "" {
		var last int
		expect.Of(fmt.Sscan(s, &last))(b)
		sizes = []int{last}
	}
	r := benchRig(b, false)
	stored := 0
	for _, size := range sizes {
		if size > stored {
			r.live(size-stored, 256)
			stored = size
		}
		b.Run(fmt.Sprintf("stored=%d", size), func(b *testing.B) {
			n := max(b.N, 20_000) / rounds
			ours, empty := 0.0, 0.0 // seconds of a life
			var slowest time.Duration
			for range rounds {
				rate, p99 := r.live(n, 64)
				ours += 1 / rate / rounds
				slowest = max(slowest, p99)
				rate, _ = benchRig(b, false).live(n, 64)
				empty += 1 / rate / rounds
			}
			stored += rounds * n
			start := time.Now()
			const pages = 50
			for i := range pages {
				expect.Of(r.tasks.List(b.Context(), acme, core.Filter{Page: 1 + i*stored/pages/20, Size: 20}))(b)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(1/ours, "lives/s")
			b.ReportMetric(float64(slowest.Microseconds())/1000, "p99-ms")
			b.ReportMetric(ours/empty, "x-cost-of-empty")
			b.ReportMetric(float64(time.Since(start).Microseconds())/pages, "us/page")
		})
	}
}
