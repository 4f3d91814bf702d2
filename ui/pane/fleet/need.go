package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/ui/pane"
)

// need is how much a row needs somebody. Those that wait for a person come first, by the
// time that is left; then what failed, what is stuck, what works, stands still, is idle
// and is over, the oldest first.
type need struct {
	worker
	rank  int
	due   time.Time // zero is no end
	since time.Time
}

// The ranks.
const (
	waits = iota
	troubled
	stuck
	works
	halted
	rests
	over
)

// byNeed puts rows in the order of need.
func byNeed(env *pane.Env, rows []worker) {
	due := make(map[string]time.Time, len(env.Snap.Approvals)) // by approval, and by what it is about besides, see pane.Asking
	for _, a := range slices.Backward(env.Snap.Approvals) {    // the soonest last, so it stays
		ends, _ := a.Ends()
		due[a.ApprovalID] = ends
		switch a.Gate {
		case judge.GateNet:
			due[a.TaskID] = ends
		case judge.GateStart:
			due[a.Agent.Name] = ends
		}
	}
	delete(due, "") // of a task that no agent has
	all := core.Map(rows, func(w worker) need { return needOf(w, due) })
	core.Sort(all, func(a, b need) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), soonest(a.due, b.due), a.since.Compare(b.since), strings.Compare(a.id, b.id))
	})
	for i := range all {
		rows[i] = all[i].worker
	}
}

// soonest compares two ends; none comes last.
func soonest(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return -a.Compare(b)
	}
	return a.Compare(b)
}

func needOf(w worker, due map[string]time.Time) need {
	n := need{worker: w, since: w.made}
	ask, state := "", ""
	switch {
	case w.agent != nil:
		a := w.agent
		ask, state = a.Waiting, a.State()
		for _, about := range []string{a.Name, a.TaskID} {
			if _, asked := due[about]; asked && a.Waiting == "" {
				ask, state = about, "waiting for you"
			}
		}
		switch {
		case a.Stuck != nil && state == "stuck":
			n.since = a.Stuck.Since
		case state == "waiting for you" && ask == "" && a.Attention == "":
			state, n.since = "failed", a.Trouble.Since
		case state == "offline" && a.Stopped:
			state = "stopped"
		}
	case w.sub != nil:
		ask, state = w.sub.Waiting, w.sub.Shown()
	case w.cad != nil:
		ask, state = w.cad.Waiting, w.cad.Shown()
	default:
		if state = string(w.task.Status); w.task.Waiting != "" {
			ask, state = w.task.ApprovalID, "waiting for you"
		}
	}
	n.rank = rankOf(state)
	if n.rank == waits {
		n.due = due[ask]
	}
	return n
}

// rankOf is the rank of a state, in the words that all share.
func rankOf(state string) int {
	switch state {
	case "waiting for you":
		return waits
	case "failed", "offline", "interrupted":
		return troubled
	case "stuck":
		return stuck
	case "working", "busy", "starting", "stopping", string(task.Running):
		return works
	case "pausing", "paused":
		return halted
	case "idle":
		return rests
	}
	return over
}

// of is the agent that it is, an empty one for what is none.
func (w *worker) of() *fleet.Agent {
	if w.agent == nil {
		return &fleet.Agent{}
	}
	return w.agent
}

// Bounds of causes: how many are read at a time, and kept.
const (
	causesRead = 50
	causesKept = 2000
)

// causes are why tasks failed, as their results say, by their ids. What is over stays
// as it is: each is read once.
type causes struct {
	tasks  Tasks
	known  map[string]string
	reader pane.Reader[map[string]string]
}

func newCauses(name string, of Tasks) causes {
	return causes{tasks: of, known: map[string]string{}, reader: pane.NewReader[map[string]string](name)}
}

// of is why a task failed, "…" while that is read.
func (c *causes) of(id string) string {
	if why, known := c.known[id]; known {
		return why
	}
	return "…"
}

// read reads some of those that are not known yet; nil when all are.
func (c *causes) read(env pane.Env, ids []string) tea.Cmd {
	var want []string
	for _, id := range ids {
		if _, known := c.known[id]; !known && len(want) < causesRead {
			want = append(want, id)
		}
	}
	if len(want) == 0 {
		return nil
	}
	tenant, tasks := env.Tenant, c.tasks
	return c.reader.Read(tenant, func(ctx context.Context) (map[string]string, error) {
		got := make(map[string]string, len(want))
		for _, id := range want {
			r, err := tasks.Result(ctx, tenant, id)
			switch {
			case ctx.Err() != nil:
				return got, nil
			case err != nil || r.Error == nil:
				got[id] = "what it said is no longer kept"
			default:
				got[id], _, _ = strings.Cut(strings.TrimSpace(r.Error.Message), "\n")
			}
		}
		return got, nil
	})
}

// take takes what was read, and says whether it was that.
func (c *causes) take(env pane.Env, body any) bool {
	r, ok := c.reader.Take(env.Tenant, body)
	if !ok {
		return false
	}
	if len(c.known) > causesKept {
		clear(c.known)
	}
	maps.Copy(c.known, r.Got)
	return true
}
