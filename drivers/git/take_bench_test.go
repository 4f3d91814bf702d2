package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/expect"
)

// BenchmarkState100kFiles takes states of a work tree of 100,000 files: with nothing
// changed, and with 20 files changed.
func BenchmarkState100kFiles(b *testing.B) {
	const files, changed = 100_000, 20
	base := b.TempDir()
	root := filepath.Join(base, "work")
	path := func(n int) string {
		return filepath.Join(root, fmt.Sprintf("d%02d", n/1000), fmt.Sprintf("d%03d", n/100), fmt.Sprintf("f%d", n))
	}
	for n := range files {
		if n%100 == 0 {
			expect.No(b, os.MkdirAll(filepath.Dir(path(n)), 0o755))
		}
		expect.No(b, os.WriteFile(path(n), fmt.Append(nil, n), 0o600))
	}
	r := git.Repository{Git: gittest.Git(b), Dir: filepath.Join(base, "kept.git")}
	expect.No(b, r.Make(b.Context(), "sha1"))
	take := func(b *testing.B) {
		b.Helper()
		_, err := r.State(b.Context(), git.Worktree{Path: root}, git.Limits{Files: 2 * files, Bytes: 1 << 40}, func(string) []string { return nil })
		expect.No(b, err)
	}
	began := time.Now()
	take(b)
	b.Logf("cold: %v", time.Since(began))
	time.Sleep(2 * time.Second)
	take(b)
	b.Run("warm", func(b *testing.B) {
		defer spent(b)()
		for range b.N {
			take(b)
		}
	})
	b.Run("changed", func(b *testing.B) {
		defer spent(b)()
		for round := range b.N {
			b.StopTimer()
			for i := range changed {
				expect.No(b, os.WriteFile(path(i*4999), fmt.Appendf(nil, "%d %d", round, i), 0o600))
			}
			b.StartTimer()
			take(b)
		}
	})
}

// spent reports the processor's time that it all took, of git too, and what was
// written to disks.
func spent(b *testing.B) func() {
	b.Helper()
	used := func() (cpu time.Duration, written int64) {
		for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
			var u unix.Rusage
			expect.No(b, unix.Getrusage(who, &u))
			cpu += time.Duration(u.Utime.Nano() + u.Stime.Nano())
			written += u.Oublock * 512
		}
		return cpu, written
	}
	cpu, written := used()
	return func() {
		b.Helper()
		nowCPU, nowWritten := used()
		b.ReportMetric(float64((nowCPU-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
		b.ReportMetric(float64(nowWritten-written)/1e6/float64(b.N), "written-MB/op")
	}
}
