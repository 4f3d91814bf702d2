package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
)

// Run is one process of an agent, up to its end with nothing left of it.
type Run struct {
	Proc   Screened
	Mask   *secret.Mask  // hides what it was given
	Over   chan struct{} // closed when nothing of it is left
	Exit   cell.Exit     // valid after Over
	Ending bool          // it was asked to end; guarded by the agent's lock

	once sync.Once
	err  error
}

// Base is the run itself, of what a runtime has around it.
func (r *Run) Base() *Run { return r }

// Leaving reports whether it ends, or has ended; the agent's lock is held.
func (r *Run) Leaving() bool { return r.Ending || r.Proc.Ended() }

// Stop ends the whole process tree, once; others wait for it.
func (r *Run) Stop(g cell.Grace) error {
	r.once.Do(func() { r.err = r.Proc.Stop(g) })
	return r.err
}

// Finish ends what a process that has ended has left running. What was written is read
// for a while before and after it; drained is closed when there is no more.
func (r *Run) Finish(drained <-chan struct{}, patience, grace time.Duration) {
	core.Within(drained, patience)
	_ = r.Stop(cell.Grace{Interrupt: -1, Terminate: grace})
	core.Within(drained, patience)
}

// UnlessOver forgives the conflict of pausing or resuming it while it ends, once it has
// ended: then nothing of it runs.
func (r *Run) UnlessOver(ctx context.Context, err error) error {
	if !errors.Is(err, core.Kind(core.Conflict)) {
		return err
	}
	select {
	case <-r.Over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the process to end: %w", ctx.Err())
	}
}

// stopped stops it, and waits until nothing of it is left.
func (r *Run) stopped(ctx context.Context, g cell.Grace) error {
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(g) }()
	select {
	case err := <-stopped:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.Over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Bounds of what is kept between prompts.
const (
	MaxBacklog      = 1000 // lines
	maxBacklogBytes = 256 << 10
)

// Backlog keeps what an agent prints while no prompt runs, for the log of the
// next one. Past its bounds the oldest goes, and is counted.
type Backlog struct{ lines pipe.Tail[fleet.Event] }

// Add keeps one more event, as a line of the log.
func (b *Backlog) Add(e fleet.Event) {
	if e.Type != "log" {
		e = fleet.Event{Type: "log", Level: "INFO", Text: e.Text}
	}
	e.Text = core.ClipTo(e.Text, 16<<10)
	b.lines.Most, b.lines.Bytes = MaxBacklog, maxBacklogBytes
	b.lines.Add(e, len(e.Text))
}

// Kept is what Take would give, but for the count of what went.
func (b *Backlog) Kept() []fleet.Event { return b.lines.Kept() }

// Take empties it.
func (b *Backlog) Take() []fleet.Event {
	events, gone := b.lines.Take()
	if gone > 0 {
		events = append([]fleet.Event{{Type: "log", Level: "WARN", Text: fmt.Sprintf("%d lines from between the tasks were dropped", gone)}}, events...)
	}
	return events
}

// Pieces cuts a text into pieces of at most most bytes, each a line of a log.
func Pieces(text string, most int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			piece := core.ClipTo(text, most)
			if len(piece) < len(text) {
				piece = strings.TrimSuffix(piece, "…")
			}
			if !yield(piece) {
				return
			}
			text = text[min(len(piece), len(text)):]
		}
	}
}

// Masked hides secrets in what an agent and its model say to each other.
func Masked(mask func() *secret.Mask, hear func(fleet.Event) func(fleet.Event)) func(fleet.Event) func(fleet.Event) {
	return func(asked fleet.Event) func(fleet.Event) {
		m := mask()
		answered := hear(withoutSecrets(m, asked))
		return func(e fleet.Event) { answered(withoutSecrets(m, e)) }
	}
}

// withoutSecrets masks every text of an event's model call.
func withoutSecrets(m *secret.Mask, e fleet.Event) fleet.Event {
	if m == nil || e.Model == nil {
		return e
	}
	c := *e.Model
	c.Name, c.Finish, c.Params, c.Tools = m.String(c.Name), m.String(c.Finish), core.Raw(m.JSON(c.Params)), core.Raw(m.JSON(c.Tools))
	c.Messages = slices.Clone(c.Messages)
	for i := range c.Messages {
		parts := slices.Clone(c.Messages[i].Content)
		for j := range parts {
			p := &parts[j]
			p.Text, p.URL, p.Input, p.Output = m.String(p.Text), m.String(p.URL), core.Raw(m.JSON(p.Input)), core.Raw(m.JSON(p.Output))
		}
		c.Messages[i].Content = parts
	}
	e.Model = &c
	return e
}

// maxSteps bounds a plan.
const maxSteps = 200

// Plan is the event of a plan with these steps, in the protocol's words for how they stand.
func Plan(steps []fleet.Step) fleet.Event {
	marks := map[string]string{"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
	e := fleet.Event{Type: "plan", Steps: steps[:min(len(steps), maxSteps)]}
	var lines []string
	for i := range e.Steps {
		s := &e.Steps[i]
		s.Text, s.Status = core.ClipTo(strings.Join(strings.Fields(s.Text), " "), 500), core.ClipTo(s.Status, 20)
		lines = append(lines, cmp.Or(marks[s.Status], "["+s.Status+"]")+" "+s.Text)
	}
	e.Text = strings.Join(lines, "\n")
	return e
}
