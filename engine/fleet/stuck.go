package fleet

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
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
	if l.Quiet == 0 {
		l.Quiet = 10 * time.Minute
	}
	if l.Repeats == 0 {
		l.Repeats = 5
	}
	if l.Beat == 0 {
		l.Beat = 10 * time.Second
	}
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
	tick := time.NewTicker(r.progress.limits.every())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
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

func repeated(what string, n int) string {
	return fmt.Sprintf("%s, %d times or more in a row", what, n)
}
