package cell

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// TestAChildIsSeenWhileTheThreadThatBeganItEnds: it goes to another thread of its
// parent, which may have been looked at already.
func TestAChildIsSeenWhileTheThreadThatBeganItEnds(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		type begun struct {
			cmd *exec.Cmd
			err error
		}
		said, leave := make(chan begun), make(chan struct{})
		go func() {
			runtime.LockOSThread() // for good: it ends with this function
			cmd := exec.Command("cat")
			in, err := cmd.StdinPipe()
			if err == nil {
				defer runtime.KeepAlive(in)
				err = cmd.Start()
			}
			said <- begun{cmd, err}
			<-leave
		}()
		b := <-said
		expect.No(t, b.err)
		close(leave)
		missed := 0
		for range 20 {
			if !slices.Contains(childrenOf(os.Getpid()), b.cmd.Process.Pid) {
				missed++
			}
		}
		expect.No(t, b.cmd.Process.Signal(unix.SIGKILL))
		_ = b.cmd.Wait()
		expect.Must(t, missed <= 0, "round %d: not seen in %d of 20 looks", round, missed)
	}
}
