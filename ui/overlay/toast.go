package overlay

import (
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Level is how bad a message is.
type Level uint8

// The levels.
const (
	Info  Level = iota
	Done        // something succeeded
	Error       // stays until dismissed
)

// String is the word that stands before a message.
func (l Level) String() string { return [...]string{"info", "done", "error"}[l] }

// Toast is a message that passes.
type Toast struct {
	Level Level
	Text  string
}

// Limits of toasts.
const (
	ToastLife = 4 * time.Second
	ToastMost = 3 // on the screen
)

// Toasts are the messages in sight. The zero value is empty. Time is always
// the caller's.
type Toasts struct {
	live []live // oldest first
}

type live struct {
	Toast
	until time.Time // zero: until dismissed
}

// Add shows a message; one in sight that says the same makes room for it.
// Information makes room for newer messages before it makes errors leave.
func (t *Toasts) Add(now time.Time, level Level, text string) {
	text = term.Clean(clip(text, 4096))
	l := live{Toast: Toast{level, text}}
	if level != Error {
		l.until = now.Add(ToastLife)
	}
	t.Expire(now)
	t.live = slices.DeleteFunc(t.live, func(old live) bool { return old.Level == level && old.Text == text })
	if t.live = append(t.live, l); len(t.live) > ToastMost {
		drop := max(0, slices.IndexFunc(t.live[:ToastMost], func(l live) bool { return l.Level != Error }))
		t.live = slices.Delete(t.live, drop, drop+1)
	}
}

// Expire takes away what has been in sight long enough.
func (t *Toasts) Expire(now time.Time) {
	t.live = slices.DeleteFunc(t.live, func(l live) bool { return !l.until.IsZero() && !now.Before(l.until) })
}

// Dismiss takes the newest message away, an error too; false when none is in
// sight.
func (t *Toasts) Dismiss() bool {
	if len(t.live) == 0 {
		return false
	}
	t.live = t.live[:len(t.live)-1]
	return true
}

// Visible are the messages in sight, oldest first.
func (t *Toasts) Visible() []Toast {
	return core.Map(t.live, func(l live) Toast { return l.Toast })
}

// Draw draws the messages in sight at the right of r, a screen's panes with
// their frames: the newest on the lower edge, those before it on the upper
// edge and the line below that, which holds titles. What lies between, the
// selected row and the end of a log, is never covered: what of the newest does
// not fit goes on in the line below r, if there is one.
func (t *Toasts) Draw(c *screen.Canvas, r screen.Rect) {
	r = r.Clip(c.Bounds())
	n := min(len(t.live), r.H)
	if n == 0 || r.W < 12 {
		return
	}
	for i, l := range t.live[len(t.live)-n:] {
		role := screen.Toast
		if l.Level == Error {
			role = screen.ToastBad
		}
		put := func(y int, text string) {
			w := min(term.Width(text)+2, r.W)
			c.TextIn(r.X+r.W-w, y, w, role, " "+text)
		}
		text := l.Text
		if l.Level != Info {
			text = l.Level.String() + ": " + text
		}
		if i < n-1 {
			put(r.Y+i, text)
			continue
		}
		last := r.Y + r.H - 1
		if lines := term.WrapLine(text, r.W-2); len(lines) > 1 && last+1 < c.H() {
			text = lines[0]
			put(last+1, strings.Join(lines[1:], " "))
		}
		put(last, text)
	}
}
