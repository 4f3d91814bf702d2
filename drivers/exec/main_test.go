package exec

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain makes the tests' process what the engine's is, and checks at the
// end that no process was left.
func TestMain(m *testing.M) {
	if role := os.Getenv("EXEC_TEST_ROLE"); role != "" {
		os.Exit(play(role))
	}
	if err := BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		os.Exit(code) // the fuzzer has processes and goroutines of its own
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		fmt.Fprintf(os.Stderr, "%d goroutines, %d before the tests\n", n, before)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		code = 1
	}
	if kids := childrenOf(os.Getpid()); len(kids) > 0 {
		fmt.Fprintf(os.Stderr, "processes left by the tests: %v\n", kids)
		code = 1
	}
	os.Exit(code)
}

func newSupervisor(t *testing.T) *Supervisor {
	t.Helper()
	s, err := NewSupervisor("test" + strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close supervisor: %v", err)
		}
	})
	return s
}

// eventually waits for a condition of the outside world.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// pidsIn reads a file of pids, one on each line.
func pidsIn(t *testing.T, path string, n int) []int {
	t.Helper()
	var pids []int
	eventually(t, fmt.Sprintf("%s holds %d pids", path, n), func() bool {
		data, _ := os.ReadFile(path)
		pids = pids[:0]
		for _, f := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
		return len(pids) >= n
	})
	return pids
}

func alive(pid int) bool {
	p, ok := look(pid)
	return ok && !p.dead()
}
