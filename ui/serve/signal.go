package serve

import (
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// sigContinue tells the other end that a suspended client goes on.
const sigContinue = "CONT"

// stopPatience is how long a stop may take to come into effect.
const stopPatience = 300 * time.Millisecond

// suspend stops the client until it goes on, and tells the other end then.
func (r *remote) suspend() {
	if r.a.screen == nil {
		return
	}
	size, ok := r.a.screen.suspend()
	if !ok {
		return
	}
	if size.Width > 0 {
		r.resize(size)
	}
	_, _ = r.ch.SendRequest("signal", false, gossh.Marshal(struct{ Name string }{sigContinue}))
}
