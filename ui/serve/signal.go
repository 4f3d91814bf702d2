package serve

import (
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
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

// lend gives the terminal to a program that the engine names: one of this user's, as the
// engine is. It reports whether that ended well.
func (r *remote) lend(payload []byte) bool {
	own, is := r.a.screen.(*ownScreen)
	var argv []string
	if !is || r.a.Lend == nil || r.a.Login != nil || core.Decode(payload, &argv) != nil || len(argv) == 0 {
		return false
	}
	err := own.lend(func() error { return r.a.Lend(argv) })
	if size, bad := own.size(); bad == nil {
		r.resize(size)
	}
	return err == nil
}
