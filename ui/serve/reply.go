package serve

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/loop"
)

// replyPatience is how long a terminal that has answered before may take until
// it counts as having taken what was written: an answer can get lost.
const replyPatience = mute

// reply is what a terminal that is well answers to a device status report
// (ECMA-48).
const reply = "\x1b[0n"

// replies are the answers of a terminal that is behind an sshd. That one takes
// whatever is written and has it wait, so that only the terminal itself knows
// how much of it was drawn.
type replies struct {
	io.Reader // its input
	came      chan struct{}
	knows     bool // it has answered; that of the one question under way
}

// Read is the input without the answers. One that comes in two pieces is left
// to the reader, who knows it for no key.
func (r *replies) Read(p []byte) (int, error) {
	for {
		n, err := r.Reader.Read(p)
		rest := bytes.ReplaceAll(p[:n], []byte(reply), nil)
		if len(rest) < n {
			loop.Ring(r.came)
		}
		if n = copy(p, rest); n > 0 || err != nil {
			return n, err
		}
	}
}

// question asks the terminal by p and waits for the answer.
func (r *replies) question(ctx context.Context, p *pace) bool {
	select { // one that is late is none
	case <-r.came:
	default:
	}
	if _, err := p.put([]byte(ansi.DeviceStatusReport(ansi.ANSIStatusReport(5)))); err != nil {
		return false
	}
	select {
	case <-r.came:
		r.knows = true
	case <-time.After(replyPatience):
	case <-ctx.Done():
		return false
	}
	return r.knows
}
