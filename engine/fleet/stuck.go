package fleet

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// Stuck says why a busy agent seems to get nowhere. It stands on the agent's
// record for as long as that is so, and goes away by itself.
type Stuck struct {
	Kind  StuckKind `json:"kind"`
	Text  string    `json:"text"`
	Since time.Time `json:"since"` // when it was noticed
}

// StuckKind is what was noticed.
type StuckKind string

// The kinds.
const (
	NoProgress    StuckKind = "no_progress"    // nothing was heard of it, and nobody is waited for
	Loop          StuckKind = "loop"           // it calls or says the same again and again
	LostHeartbeat StuckKind = "lost_heartbeat" // its runtime no longer shows that it lives
)

// StuckLimits say from when on a busy agent counts as stuck. It is only told:
// nothing is cancelled. For each field 0 means the default and less switches
// the check off.
type StuckLimits struct {
	Quiet   time.Duration // without an event; 10 min. Time in which it waits for a person or is paused doesn't count.
	Repeats int           // times that it made the same tool call, or said the same, in a row; 5
	Beat    time.Duration // without a sign of life from its runtime; 10 s
}

func (l *StuckLimits) fill() {
	l.Quiet, l.Repeats, l.Beat = cmp.Or(l.Quiet, 10*time.Minute), cmp.Or(l.Repeats, 5), cmp.Or(l.Beat, 10*time.Second)
}

// every is how often a run is looked at: a quarter of the shortest limit,
// within what costs little.
func (l *StuckLimits) every() time.Duration {
	shortest := time.Minute
	for _, d := range []time.Duration{l.Quiet, l.Beat} {
		if d > 0 {
			shortest = min(shortest, d)
		}
	}
	return max(shortest/4, 10*time.Millisecond)
}

func (s *Stuck) same(o *Stuck) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Kind == o.Kind && s.Text == o.Text
}

// watch keeps what the record says about being stuck true until the run is
// over. It compares levels, so a write that failed is simply tried again.
func (r *run) watch(ctx context.Context, over <-chan struct{}) {
	tick := time.Tick(r.progress.limits.every())
	for {
		select {
		case <-tick:
		case <-r.progress.bell:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
		a := r.m.rec.Load()
		held, _ := r.m.standing()
		want := r.progress.stuck(time.Now(), held || a.Paused || a.Pausing || a.Waiting != "" || a.Attention != "")
		if !want.same(a.Stuck) {
			_ = r.mark(ctx, want)
		}
	}
}

// mark records that the agent is stuck, or no longer is.
func (r *run) mark(ctx context.Context, want *Stuck) error {
	t := &r.job.Task
	n := record.Event{Type: "agent.unstuck", Trace: t.TraceID, Detail: map[string]any{"task_id": t.TaskID}}
	if want != nil {
		n.Type = "agent.stuck"
		n.Detail = map[string]any{"task_id": t.TaskID, "kind": want.Kind, "text": want.Text}
	}
	_, err := r.f.change(ctx, r.m.self(), r.m, n, func(tx *audit.Tx, a *Agent) error {
		if a.TaskID != t.TaskID || want.same(a.Stuck) {
			return errSame
		}
		a.Stuck = nil
		if want != nil {
			s := *want
			s.Since = tx.Now()
			a.Stuck = &s
		}
		return nil
	})
	return err
}

// beat passes a sign of life on.
func (r *run) beat() {
	r.progress.alive(time.Now())
	r.job.Beat()
}

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
		loop.Ring(p.bell)
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
	case p.loops():
		row := p.call
		if p.said.n > row.n {
			row = p.said
		}
		return &Stuck{Kind: Loop, Text: fmt.Sprintf("%s, %d times or more in a row", row.what, p.limits.Repeats)}
	case p.quiet(now):
		return &Stuck{Kind: NoProgress, Text: "nothing heard for " + p.limits.Quiet.String()}
	}
	return nil
}

// Trouble is why an agent can't work until somebody does something: one cause, which stands
// on its record until it works again. Its process is started again when something that the
// start depends on has changed, when somebody says so, or at NextAt.
type Trouble struct {
	Reason string    `json:"reason"` // with what to do about it
	Since  time.Time `json:"since"`
	Tries  int       `json:"tries"` // that failed in a row, since somebody said to try
	LastAt time.Time `json:"last_at"`
	NextAt time.Time `json:"next_at,omitzero"`
	// Prompted says that a prompt found it: that a process starts does not mend it.
	Prompted bool `json:"prompted,omitzero"`
}

// Resting reports whether it is not to be started yet.
func (t *Trouble) Resting(now time.Time) bool { return t != nil && now.Before(t.NextAt) }

func (t *Trouble) reason() string {
	if t == nil {
		return ""
	}
	return core.ClipTo(t.Reason, maxReason)
}

func (t *Trouble) same(o *Trouble) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Reason == o.Reason && t.Tries == o.Tries && t.Since.Equal(o.Since) && t.NextAt.Equal(o.NextAt)
}

// Needs is why the agent needs a person, "" when it doesn't. One that waits for an answer is
// listed as that approval.
func (a *Agent) Needs() string {
	switch {
	case a.Stuck != nil:
		return a.Stuck.Text
	case a.Attention != "":
		return a.Attention
	case a.Stopped:
		return ""
	case a.Trouble != nil:
		return a.Trouble.reason()
	case a.Status == Failed, a.Status == Offline:
		if a.Reason == "" {
			return string(a.Status)
		}
		return a.Reason
	}
	return ""
}
