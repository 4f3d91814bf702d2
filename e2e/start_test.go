package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// The program starts itself again for each process that it walls in, so what
// packages do before main is paid for by all of these.
const (
	mostOfOurs   = 8 << 10 // bytes that one package of ours may allocate
	mostAllocs   = 64      // and how often
	firstCollect = 4 << 20 // Go first collects garbage at a heap of that size
)

func TestPackagesDoNextToNothingBeforeMain(t *testing.T) {
	cmd := newUser(t).command("version")
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	expect.No(t, cmd.Run(), "version", &trace)
	line := regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, (\d+) allocs$`)
	all, ours := 0, 0
	for _, m := range line.FindAllStringSubmatch(trace.String(), -1) {
		size, _ := strconv.Atoi(m[2])
		allocs, _ := strconv.Atoi(m[3])
		all += size
		if !strings.HasPrefix(m[1], "swarmdeck/") || m[1] == "swarmdeck/e2e" {
			continue
		}
		ours++
		if size > mostOfOurs || allocs > mostAllocs {
			t.Errorf("%s allocates %d bytes in %d pieces before main, more than %d or %d: make its values when they are first needed", m[1], size, allocs, mostOfOurs, mostAllocs)
		}
	}
	expect.Must(t, ours != 0, "no package of ours is in the trace:\n%s", &trace)
	expect.True(t, all <= firstCollect,
		"packages allocate %d bytes before main, more than %d: garbage is collected while the program starts", all, firstCollect)
}

// BenchmarkStart runs "version" in turn with a program that does nothing, and
// prints the median of both.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	nothing := filepath.Join(dir, "nothing.go")
	expect.No(b, os.WriteFile(nothing, []byte("package main\n\nfunc main() {}\n"), 0o600))
	var took [2][]time.Duration
	programs := [2]string{filepath.Join(dir, "swarmdeck"), filepath.Join(dir, "nothing")}
	for i, source := range []string{".", nothing} {
		if out, err := exec.Command("go", "build", "-o", programs[i], source).CombinedOutput(); err != nil {
			b.Fatalf("build: %v\n%s", err, out)
		}
		if err := exec.Command(programs[i], "version").Run(); err != nil { // reads the file
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for i, program := range programs {
			start := time.Now()
			expect.No(b, exec.Command(program, "version").Run())
			took[i] = append(took[i], time.Since(start))
		}
	}
	for i, unit := range []string{"ms-version", "ms-nothing"} {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds())/1000, unit)
	}
	b.ReportMetric(0, "ns/op")
}
