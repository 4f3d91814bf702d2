package dag_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// kib is an event of about 1 KiB.
func kib(run, n int, at time.Time) []byte {
	return fmt.Appendf(nil, `{"kind":"tool_result","ts":%q,"run_id":"run-%d","agent_id":"agent-%d","call_id":"call-%d","status":"ok","result":{"rc":0,"stdout":%q,"stderr":"","duration_ms":120}}`,
		at.UTC().Format(time.RFC3339Nano), run, run%10, n, strings.Repeat("output ", 120))
}

// BenchmarkID is the cost of an event's canonical form and id, with all checks.
func BenchmarkID(b *testing.B) {
	data := kib(1, 1, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	cpu := processor()
	for b.Loop() {
		expect.Of(dag.Parse(data))(b)
	}
	b.ReportMetric(float64((processor()-cpu).Nanoseconds())/float64(b.N), "ns-cpu/op")
}

// BenchmarkCanonicalID is that part of it which makes the id.
func BenchmarkCanonicalID(b *testing.B) {
	data := kib(1, 1, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cpu := processor()
	for b.Loop() {
		canon := expect.Of(core.Canonical(data))(b)
		sum := sha256.Sum256(canon)
		_ = hex.EncodeToString(sum[:])
	}
	b.ReportMetric(float64((processor()-cpu).Nanoseconds())/float64(b.N), "ns-cpu/op")
}

// processor is the time that the process has had of processors: what an
// operation costs on a machine that is busy with other things.
func processor() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEmit measures durable events per second, audited and sealed, one a
// call by concurrent emitters, and in batches.
func BenchmarkEmit(b *testing.B) {
	for _, c := range []struct{ emitters, batch int }{{1, 1}, {16, 1}, {64, 1}, {256, 1}, {4, 100}} {
		b.Run(fmt.Sprintf("%dx%d", c.emitters, c.batch), func(b *testing.B) {
			n := 4000 * min(c.emitters, 8)
			var rate float64
			var cpu time.Duration
			for range b.N {
				r := newRig(b)
				var next atomic.Int64
				began, used := time.Now(), processor()
				var wg sync.WaitGroup
				for g := range c.emitters {
					wg.Go(func() {
						for {
							i := int(next.Add(int64(c.batch)))
							if i > n {
								return
							}
							var events []dag.Event
							for k := range c.batch {
								e, err := dag.Parse(kib(g, i+k, r.at))
								if err != nil {
									b.Error(err)
									return
								}
								events = append(events, e)
							}
							if _, err := r.Emit(b.Context(), alice, events...); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				rate, cpu = float64(n)/time.Since(began).Seconds(), processor()-used
			}
			b.ReportMetric(rate, "events/s")
			b.ReportMetric(float64(cpu.Microseconds())/float64(n), "µs-cpu/event")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkQueries asks a record of a million events (SWARMDECK_BENCH_EVENTS
// for another number): turns of agents with requests, answers, calls, results
// and messages, and resources that come and go.
func BenchmarkQueries(b *testing.B) {
	n := benchEvents(b)
	r := newRig(b)
	mid, last, when := fillTurns(b, r, n)
	ctx := b.Context()
	report := func(name string, fn func(i int) error) {
		b.Run(name, func(b *testing.B) {
			var worst time.Duration
			i := 0
			cpu := processor()
			for b.Loop() {
				began := time.Now()
				expect.No(b, fn(i))
				worst = max(worst, time.Since(began))
				i++
			}
			b.ReportMetric(float64(worst.Microseconds()), "µs-worst")
			b.ReportMetric(float64((processor()-cpu).Microseconds())/float64(i), "µs-cpu/op")
		})
	}
	page := func(q dag.Query) func(int) error {
		return func(i int) error {
			q.Page = 1 + i%50
			_, err := r.Events(ctx, acme, q)
			return err
		}
	}
	report("history-page-of-run", page(dag.Query{Run: "run-3"}))
	report("history-page-of-agent", page(dag.Query{Filter: core.Filter{Agent: "agent-3"}}))
	report("history-page-of-kind", page(dag.Query{Filter: core.Filter{Kind: "tool_call"}}))
	report("calls-of-run", func(i int) error {
		_, err := r.Calls(ctx, acme, dag.Query{Run: "run-3", Filter: core.Filter{Page: 1 + i%50}})
		return err
	})
	report("lineage-depth-10", func(i int) error {
		_, err := r.Lineage(ctx, acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: []string{mid, last}[i%2]}, Depth: 10, Most: 200})
		return err
	})
	report("state-at", func(i int) error {
		_, err := r.At(ctx, acme, []string{mid, last}[i%2])
		return err
	})
	report("mounts-at", func(i int) error {
		_, err := r.Mounts(ctx, acme, dag.TimeQuery{At: dag.At(when.Add(time.Duration(i%1000) * time.Second))})
		return err
	})
	report("resources-at", func(i int) error {
		_, err := r.Resources(ctx, acme, dag.TimeQuery{At: dag.At(when.Add(time.Duration(i%1000) * time.Second))})
		return err
	})
	report("show", func(i int) error {
		_, err := r.Get(ctx, acme, []string{mid, last}[i%2])
		return err
	})
}

// benchEvents is how many events a benchmark's record has.
func benchEvents(b *testing.B) int {
	n := 1_000_000
	if text := os.Getenv("SWARMDECK_BENCH_EVENTS"); text != "" {
		expect.Of(fmt.Sscan(text, &n))(b)
	}
	return n
}

// fillTurns records n events, and returns one in the middle and the last tool
// results, and a time in the middle.
func fillTurns(b testing.TB, r *rig, n int) (mid, last string, when time.Time) {
	const runs = 100
	var batch []dag.Event
	answers := make([]dag.Event, runs)
	batches, emitted := make(chan []dag.Event, 1), make(chan error, 1)
	go func() { // while the next batch is made
		var err error
		for all := range batches {
			if err == nil {
				_, err = r.Emit(b.Context(), alice, all...)
			}
		}
		emitted <- err
	}()
	flush := func() {
		batches <- batch
		batch = nil
	}
	for i := 0; i < n; {
		turn := i / 6
		run := turn % runs
		head := func() dag.Head {
			r.at = r.at.Add(100 * time.Millisecond)
			return dag.Head{TS: dag.At(r.at), RunID: fmt.Sprint("run-", run), AgentID: fmt.Sprint("agent-", run%10), TaskID: fmt.Sprint("task-", run), CorrelationID: fmt.Sprint("turn-", turn)}
		}
		message := func(id, text string) dag.Head {
			h := head()
			h.Nodes = []dag.Node{r.message(id, text, dag.RoleUser)}
			return h
		}
		in := []dag.InputRef{{Message: fmt.Sprint("in-", turn)}}
		if answers[run].EventID != "" {
			in = append(in, dag.InputRef{Event: answers[run].EventID})
		}
		asked := r.event(message(fmt.Sprint("in-", turn), "go on with the work, please"), &dag.HistoryAppend{List: "main", MessageRef: fmt.Sprint("in-", turn)})
		request := r.event(head(), &dag.ModelRequest{Model: "m", Params: core.Raw(`{"temperature":0.2}`), InputRefs: in})
		answer := r.event(message(fmt.Sprint("out-", turn), "I call the tool"), &dag.ModelResponse{RequestID: request.EventID, OutputRef: fmt.Sprint("out-", turn)})
		answers[run] = answer
		call := r.event(head(), &dag.ToolCall{Server: "sh", Tool: "exec", CallID: fmt.Sprint("c-", turn), Args: core.Raw(`{"cmd":["make","all"]}`), RequestedBy: ref(answer)})
		result := r.event(head(), &dag.ToolResult{CallID: fmt.Sprint("c-", turn), Status: dag.CallOK, Result: core.Raw(`{"rc":0,"stdout":"done"}`)})
		var resource dag.Event
		if turn/runs%2 == 0 {
			resource = r.event(head(), &dag.ResourceAttached{ResourceRef: fmt.Sprint("res-", run), Mode: dag.ReadWrite, Mount: "/data"})
		} else {
			resource = r.event(head(), &dag.ResourceDetached{ResourceRef: fmt.Sprint("res-", run)})
		}
		batch = append(batch, asked, request, answer, call, result, resource)
		i += 6
		if i >= n/2 && mid == "" {
			mid, when = result.EventID, r.at
		}
		last = result.EventID
		if len(batch) > dag.MaxBatch-6 {
			flush()
		}
	}
	flush()
	close(batches)
	r.No(<-emitted)
	return mid, last, when
}

// BenchmarkSearch narrows a record of a million events (SWARMDECK_BENCH_EVENTS for
// another number) by time, status and text, also by what nothing has.
func BenchmarkSearch(b *testing.B) {
	n := benchEvents(b)
	r := newRig(b)
	_, last, when := fillTurns(b, r, n)
	for _, c := range searches(when, last) {
		b.Run(c.name, func(b *testing.B) {
			var worst time.Duration
			n, cpu := 0, processor()
			for b.Loop() {
				began := time.Now()
				r.No(c.find(r))
				worst = max(worst, time.Since(began))
				n++
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "ms-worst")
			b.ReportMetric(float64((processor()-cpu).Microseconds())/float64(n)/1000, "ms-cpu/op")
		})
	}
}
