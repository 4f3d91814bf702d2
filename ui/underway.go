package ui

import (
	"time"

	"charm.land/bubbles/v2/spinner"
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const (
	// workShows is how long a command may take before the header says so.
	workShows = 300 * time.Millisecond
	// spinTime is a picture of the spinner; there are none while nothing runs.
	spinTime = 200 * time.Millisecond
)

// busy are the commands under way, the oldest first.
type busy struct {
	under    []work
	jobs     uint64 // so far
	spin     spinner.Model
	spinning bool
}

// work is the command of one job.
type work struct {
	job   uint64
	path  string
	since time.Time
}

// spinMsg: the spinner goes on.
type spinMsg struct{}

func newBusy(ascii bool) busy {
	if ascii {
		return busy{spin: spinner.New(spinner.WithSpinner(spinner.Line))}
	}
	return busy{spin: spinner.New(spinner.WithSpinner(spinner.MiniDot))}
}

// start notes a job.
func (r *runner) start(job uint64, path string) tea.Cmd {
	r.busy.under = append(r.busy.under, work{job, path, r.now})
	if r.busy.spinning {
		return nil
	}
	r.busy.spinning = true
	return r.opt.After(workShows, spinMsg{})
}

// turn shows the next picture as long as something is under way.
func (r *runner) turn() tea.Cmd {
	if r.busy.spinning = len(r.busy.under) > 0; !r.busy.spinning {
		return nil
	}
	r.dirty = true
	r.busy.spin, _ = r.busy.spin.Update(r.busy.spin.Tick())
	return r.opt.After(max(spinTime, r.opt.Frame), spinMsg{})
}

// underWay draws, at the right, what has been under way for the longest, and for how long.
func (r *runner) underWay(c *screen.Canvas, right int) int {
	if len(r.busy.under) == 0 || r.now.Sub(r.busy.under[0].since) < workShows {
		return right
	}
	w := r.busy.under[0]
	return r.headRight(c, right, screen.Busy, " "+r.busy.spin.View()+" "+w.path+" "+pane.Age(r.now, w.since)+" ")
}
