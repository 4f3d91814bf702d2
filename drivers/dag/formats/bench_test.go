package formats_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/dag/formats"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// processor is the time that the process has had of processors: what an
// operation costs on a machine that is busy with other things.
func processor(b *testing.B) time.Duration {
	var u unix.Rusage
	expect.No(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFormats measures events of about 1 KiB per second out and in.
func BenchmarkFormats(b *testing.B) {
	const n = 10_000
	r := newRig(b)
	from := r.tenant()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := 0; i < n; i += 500 {
		var batch []dag.Event
		for k := i; k < i+500; k++ {
			e, err := dag.Parse(fmt.Appendf(nil, `{"kind":"tool_result","ts":%q,"run_id":"run-%d","agent_id":"agent","call_id":"c-%d","status":"ok","result":{"rc":0,"stdout":%q}}`,
				at.Add(time.Duration(k)*time.Second).Format(time.RFC3339), k/100, k, strings.Repeat("output ", 120)))
			r.no(err)
			batch = append(batch, e)
		}
		_, err := r.Emit(b.Context(), from, batch...)
		r.no(err)
	}
	for name := range formats.All(nil) {
		b.Run(name, func(b *testing.B) {
			var out, in, outCPU, inCPU time.Duration
			for range b.N {
				dest := filepath.Join(b.TempDir(), "out")
				began, used := time.Now(), processor(b)
				_, err := r.Export(b.Context(), from.Tenant, name, dest)
				r.no(err)
				out, outCPU = time.Since(began), processor(b)-used
				to := r.tenant()
				began, used = time.Now(), processor(b)
				_, err = r.Import(b.Context(), to, name, dest)
				r.no(err)
				in, inCPU = time.Since(began), processor(b)-used
			}
			b.ReportMetric(n/out.Seconds(), "out/s")
			b.ReportMetric(n/in.Seconds(), "in/s")
			b.ReportMetric(float64(outCPU.Microseconds())/n, "µs-cpu-out/event")
			b.ReportMetric(float64(inCPU.Microseconds())/n, "µs-cpu-in/event")
			b.ReportMetric(0, "ns/op")
		})
	}
}
