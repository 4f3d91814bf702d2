package cell

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkStart is the start and the end of the cheapest program in a cell of
// each profile, beside the same started plainly: ms for one, and how many times
// as long it takes. SWARMDECK_BENCH_PROGRAM is a program whose cells are
// measured; without it the test's own, which is smaller, is the init.
func BenchmarkStart(b *testing.B) {
	path, err := lookFor("true")
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for _, profile := range []Profile{Open, Reader, Worker} {
		b.Run(string(profile), func(b *testing.B) {
			s, err := NewSupervisor(Options{Instance: "bench", Program: os.Getenv("SWARMDECK_BENCH_PROGRAM")})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var plain, cell time.Duration
			for b.Loop() {
				began := time.Now()
				if err := exec.Command(path).Run(); err != nil {
					b.Fatal(err)
				}
				plain += time.Since(began)
				began = time.Now()
				p, err := s.Start(Spec{Run: "true", Argv: []string{path}, Dir: dir, Wall: Wall{Profile: profile}})
				if err != nil {
					b.Fatal(err)
				}
				<-p.gone
				p.CloseIO()
				cell += time.Since(began)
			}
			b.ReportMetric(float64(cell.Microseconds())/float64(b.N)/1000, "ms/cell")
			b.ReportMetric(float64(plain.Microseconds())/float64(b.N)/1000, "ms/plain")
			b.ReportMetric(float64(cell)/float64(plain), "x-plain")
		})
	}
}
