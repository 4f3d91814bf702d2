package exec

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/expect"
)

// TestMain makes the tests' process what the engine's is, and checks at the
// end that no process was left.
func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	if role := os.Getenv("EXEC_TEST_ROLE"); role != "" {
		os.Exit(play(role))
	}
	if err := cell.BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		os.Exit(code) // the fuzzer has processes and goroutines of its own
	}
	for deadline := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		fmt.Fprintf(os.Stderr, "%d goroutines, %d before the tests\n", n, before)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		code = 1
	}
	os.Exit(code)
}

// lines waits until a file has so many.
func lines(t *testing.T, path string, n int) []string {
	t.Helper()
	var all []string
	expect.Await(t, fmt.Sprintf("%s holds %d lines", path, n), func() bool {
		data, _ := os.ReadFile(path)
		all = strings.Fields(string(data))
		return len(all) >= n
	})
	return all
}

func sh(script string) []string { return []string{"sh", "-c", script} }
