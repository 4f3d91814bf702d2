package cell

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestTheInitKeepsItsFirstThreadOutOfTheWall looks at many: which thread of the
// init starts the command is chance. One that shares the command's Landlock
// domain could be killed by it.
func TestTheInitKeepsItsFirstThreadOutOfTheWall(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		for i := range 10 {
			p := start(t, s, Spec{Run: fmt.Sprint("r", i), Argv: []string{"cat"}, Wall: Wall{Profile: Worker}})
			status := expect.Of(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.init)))(t)
			expect.True(t, strings.Contains(string(status), "NoNewPrivs:\t0\n"), "run %d: its init's first thread is behind the wall:\n%s", i, status)
			expect.No(t, p.Stop(Grace{Interrupt: -1, Terminate: -1}))
		}
	})
}
