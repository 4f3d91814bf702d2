package trace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
)

// Whatever writes a file, an answer to a tool call or a process that nobody asked about,
// the file is in the record of the work that it was written in.

// Changes finds the files below a place that changed since a time, the first of them by
// name, and counts the rest. An error says that the place can't be looked through. A
// driver provides it.
type Changes interface {
	Since(ctx context.Context, place string, since time.Time) (changed []dag.File, more int, err error)
}

// lookFor is how long one look may take. What takes longer is too large for it.
const lookFor = 2 * time.Second

// left are places that can't be looked through: that is told once.
type left struct {
	mu     sync.Mutex
	places map[string]bool
}

// found is what changed in some places.
type found struct {
	files  []dag.File
	more   int      // that are not named
	failed []string // what is to be told of places that are left from now on
}

// tell tells of what was found to have changed by calls.
func (f *found) tell(w *dag.Recording, calls ...string) {
	for _, why := range f.failed {
		w.Said(dag.ListFiles, dag.RoleTool, why)
	}
	w.Changed(calls, f.files, f.more)
}

// look finds what changed in places since a time.
func (r *Recorder) look(ctx context.Context, places []string, since time.Time) (f found) {
	r.left.mu.Lock()
	places = slices.DeleteFunc(slices.Clone(places), func(place string) bool { return r.left.places[place] })
	r.left.mu.Unlock()
	if r.Changes == nil {
		return f
	}
	for _, place := range places {
		limited, stop := context.WithTimeout(ctx, lookFor)
		some, rest, err := r.Changes.Since(limited, place, since)
		stop()
		if err != nil && ctx.Err() == nil {
			r.left.mu.Lock()
			if r.left.places == nil {
				r.left.places = map[string]bool{}
			}
			r.left.places[place] = true
			r.left.mu.Unlock()
			f.failed = append(f.failed, "what changes in "+place+" is not told any more: "+core.AsError(err).Message)
		}
		f.files, f.more = append(f.files, some...), f.more+rest
	}
	return f
}

// watch follows what changes in the places of one run.
type watch struct {
	places []string
	since  time.Time
	told   []dag.File // by the last look: the clock of a file system is coarse
}

// watch is one of what an agent may write.
func (r *Recorder) watch(ctx context.Context, tenant, agent string) watch {
	w := watch{since: time.Now()}
	a, err := r.Agents.Agent(ctx, tenant, agent)
	if r.Changes == nil || err != nil || a.Elsewhere {
		return w
	}
	if a.Dir == "" {
		a.Dir = r.Dir
	}
	held, err := r.Resources.Writable(ctx, tenant, agent)
	if err != nil {
		held = nil // its own directory is looked through at least
	}
	for _, place := range append([]string{a.Dir}, held...) {
		if !slices.ContainsFunc(w.places, func(in string) bool { return within(in, place) }) {
			w.places = append(w.places, place)
		}
	}
	return w
}

// within reports whether a path is a place or below it.
func within(place, path string) bool {
	rel, err := filepath.Rel(place, path)
	return err == nil && filepath.IsLocal(rel)
}

// wrote tells what changed on disk since the last look: by the calls that are carried out
// and those named, or else by the run.
func (o *run) wrote(ctx context.Context, also ...string) {
	ctx = context.WithoutCancel(ctx) // it has happened
	o.looking.Lock()
	defer o.looking.Unlock()
	w, now := &o.watch, time.Now()
	f := o.r.look(ctx, w.places, w.since)
	f.files = slices.DeleteFunc(f.files, func(f dag.File) bool { return slices.Contains(w.told, f) })
	w.since = now
	w.told = slices.DeleteFunc(slices.Concat(w.told, f.files), func(f dag.File) bool { return f.At.Before(now.Add(-time.Second)) })
	o.mu.Lock()
	for _, c := range o.calls {
		if c.acting {
			also = append(also, c.id)
		}
	}
	o.mu.Unlock()
	f.tell(o.rec, also...)
	overlap, looked, err := o.r.Trees.Wrote(ctx, o.tenant, o.agent, core.Map(f.files, func(f dag.File) string { return f.Path }))
	if looked {
		o.overlaps(overlap)
	}
	o.note(err)
}

// overlaps tells of agents that changed the same files: they will be in each
// other's way when they are taken over.
func (o *run) overlaps(others []string) {
	if len(others) == 0 {
		o.r.Health.Clear(o.tenant, "trees", "overlap "+o.agent)
		return
	}
	o.r.Health.Report(o.tenant, "trees", "overlap "+o.agent, fmt.Errorf("%s changed the same files as %s", o.agent, strings.Join(others, "; ")))
}

// Worked implements swarm.Recorder.
func (r *Recorder) Worked(ctx context.Context, t *task.Task, places []string, since time.Time) {
	r.worked(ctx, t.TenantID, places, since, t.TaskID, func(tx *audit.Tx) (string, error) {
		run, _, err := r.runOf(tx, t)
		return run, err
	})
}

// Tried implements skill.Recorder.
func (r *Recorder) Tried(ctx context.Context, e *skill.Execution, places []string, since time.Time) {
	r.worked(ctx, e.TenantID, places, since, e.ExecutionID, func(tx *audit.Tx) (string, error) { return r.DAG.OpenRun(tx, e.AgentID) })
}

// worked tells what a call of a run changed on disk. What can't be told is no reason to
// lose what the work came to.
func (r *Recorder) worked(ctx context.Context, tenant string, places []string, since time.Time, call string, of func(*audit.Tx) (run string, err error)) {
	f := r.look(ctx, places, since)
	if len(f.files)+f.more+len(f.failed) == 0 {
		return
	}
	_ = r.Ledger.Append(ctx, by(tenant), func(tx *audit.Tx) error {
		run, err := of(tx)
		if err != nil {
			return err
		}
		return r.DAG.Tell(tx, run, func(w *dag.Recording) { f.tell(w, call) })
	})
}
