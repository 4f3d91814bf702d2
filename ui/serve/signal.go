package serve

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

func notifyResize(ch chan<- os.Signal) { signal.Notify(ch, syscall.SIGWINCH) }

// sigContinue tells the other end that a suspended client goes on.
const sigContinue = "CONT"

// stopPatience is how long a stop may take to come into effect.
const stopPatience = 300 * time.Millisecond

// suspend stops this process as ctrl+z stops a local program, and goes on when
// the shell says so.
func (r *remote) suspend() {
	if r.a.Screen == nil {
		return
	}
	r.restore()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-again:
	case <-time.After(stopPatience): // nobody is there to go on with it: the system does not stop it
	}
	signal.Stop(again)
	if r.raw() != nil {
		return
	}
	r.resize()
	_, _ = r.ch.SendRequest("signal", false, gossh.Marshal(struct{ Name string }{sigContinue}))
}
