package serve

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"swarmdeck/engine/core"

	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/loop"
)

const (
	// ahead is how many bytes a screen may be ahead of what its client has
	// taken: 1/8 s of a link of 32 kB/s. What windows and buffers on the way
	// would hold is seconds, all of it old by the time that it is seen.
	ahead = 4 << 10
	// near is the same for a client that answers soon: it costs no time there,
	// and waiting for the answer would.
	near = 8 * ahead
	// every is how many bytes are worth a question.
	every = ahead / 2
	// soon is faster than a narrow link with something under way answers.
	soon = 50 * time.Millisecond
	// mute is how long a client that never answered is waited for.
	mute = 10 * time.Second
)

// pace counts what was written to a client and what it has taken, so that a
// screen shows the newest state rather than what waits on the way. A client
// tells by answering questions, which reach it after what was written before.
type pace struct {
	w   io.Writer
	ask func() bool // waits for the answer; false when there will be none

	writes sync.Mutex // one at a time, each of whole sequences

	mu     sync.Mutex
	limit  uint64 // ahead or near
	sent   uint64
	asked  uint64 // of sent, when it was asked
	taken  uint64
	asking bool
	since  time.Time // the first question
	knows  bool      // it answers
	room   chan struct{}
}

func newPace(w io.Writer, ask func() bool) *pace {
	p := &pace{w: w, ask: ask, limit: ahead, room: make(chan struct{}, 1)}
	if ask == nil { // a process of this machine
		p.limit = near
	}
	return p
}

func (p *pace) Write(b []byte) (int, error) {
	p.mu.Lock()
	p.sent += uint64(len(b))
	p.mu.Unlock()
	n, err := p.put(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.question()
	return n, err
}

// put writes what does not count.
func (p *pace) put(b []byte) (int, error) {
	p.writes.Lock()
	defer p.writes.Unlock()
	return p.w.Write(b)
}

// question asks when enough was written since the last one; the caller holds
// mu.
func (p *pace) question() {
	if p.asking || p.sent-p.taken < every || p.ask == nil {
		return
	}
	p.asking, p.asked = true, p.sent
	if p.since.IsZero() {
		p.since = time.Now()
		time.AfterFunc(mute, p.tell)
	}
	begun := time.Now()
	go func() {
		ok := p.ask()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asking, p.limit = false, ahead
		if time.Since(begun) < soon {
			p.limit = near
		}
		if !ok {
			return // it has ended
		}
		p.took(p.asked)
		p.question()
	}()
}

// tookTo notes what a client says of itself.
func (p *pace) tookTo(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took(n)
}

// took notes how much the client has taken; the caller holds mu.
func (p *pace) took(n uint64) {
	p.knows = true
	if n > p.taken && n <= p.sent {
		p.taken = n
	}
	if p.sent-p.taken < p.limit {
		p.tell()
	}
}

func (p *pace) tell() { loop.Ring(p.room) }

// Full says that the client has not taken enough of what was written. One that
// does not know the question never is.
func (p *pace) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.knows && !p.since.IsZero() && time.Since(p.since) >= mute {
		return false
	}
	return p.sent-p.taken >= p.limit
}

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
	core.IsOver(r.came) // one that is late is none
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
