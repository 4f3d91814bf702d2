package exec

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

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
	os.Exit(expect.Run(m))
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
