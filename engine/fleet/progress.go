package fleet

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"
)

// progress is what is remembered of a run to see whether it gets on: times,
// and the last call and message with how often they came. What an event costs
// does not depend on how many there were.
type progress struct {
	limits StuckLimits
	seed   maphash.Seed
	bell   chan struct{} // one slot: what follows from it has changed

	mu    sync.Mutex
	heard time.Time // the last event, or the end of a wait
	beat  time.Time
	call  repeat
	said  repeat
}

// repeat is something that was done, and how often in a row.
type repeat struct {
	what string
	sum  uint64
	n    int
}

func (p *repeat) add(what string, sum uint64) {
	if p.n == 0 || p.sum != sum {
		*p = repeat{what: what, sum: sum}
	}
	p.n++
}

func newProgress(limits StuckLimits) *progress {
	limits.fill()
	now := time.Now()
	return &progress{limits: limits, seed: maphash.MakeSeed(), bell: make(chan struct{}, 1), heard: now, beat: now}
}

// event takes what a run reported; begins says that it began a tool call. A
// call of another kind ends a row of messages too.
func (p *progress) event(e *Event, begins bool) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.loops() || p.quiet(now)
	p.heard = now
	switch {
	case begins:
		sum := p.sum(e.Tool, e.Text, string(e.Args))
		if sum != p.call.sum {
			p.said = repeat{}
		}
		p.call.add("called "+oneLine(e.Tool, maxCall)+" with the same arguments", sum)
	case e.Type == "message":
		if text := strings.TrimSpace(e.Text); text != "" {
			p.said.add("said the same", p.sum(text))
		}
	}
	if was != p.loops() {
		select {
		case p.bell <- struct{}{}:
		default:
		}
	}
}

func (p *progress) sum(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, s := range parts {
		h.WriteString(s)
		h.WriteByte(0)
	}
	return h.Sum64()
}

func (p *progress) alive(now time.Time) {
	p.mu.Lock()
	p.beat = now
	p.mu.Unlock()
}

// loops and quiet are called with mu held.
func (p *progress) loops() bool {
	return p.limits.Repeats > 0 && max(p.call.n, p.said.n) >= p.limits.Repeats
}

func (p *progress) quiet(now time.Time) bool {
	return p.limits.Quiet > 0 && now.Sub(p.heard) >= p.limits.Quiet
}

// stuck is what holds now, nil when the run gets on. Waiting says that it
// stands still for a reason that is known.
func (p *progress) stuck(now time.Time, waiting bool) *Stuck {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waiting {
		p.heard = now
	}
	switch {
	case p.limits.Beat > 0 && now.Sub(p.beat) >= p.limits.Beat:
		return &Stuck{Kind: LostHeartbeat, Text: "no sign of life for " + p.limits.Beat.String()}
	case p.loops() && p.call.n >= p.said.n:
		return &Stuck{Kind: Loop, Text: repeated(p.call.what, p.limits.Repeats)}
	case p.loops():
		return &Stuck{Kind: Loop, Text: repeated(p.said.what, p.limits.Repeats)}
	case p.quiet(now):
		return &Stuck{Kind: NoProgress, Text: "nothing heard for " + p.limits.Quiet.String()}
	}
	return nil
}
