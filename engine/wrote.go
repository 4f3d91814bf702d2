package engine

import (
	"context"
	"path/filepath"
	"slices"
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

// looker looks for what changed. A place that can't be looked through is told once, and
// left from then on.
type looker struct {
	changes Changes // nil finds nothing

	mu   sync.Mutex
	left map[string]bool
}

// look finds what changed in places since a time. failed is what is to be told of those
// that are left from now on.
func (l *looker) look(ctx context.Context, places []string, since time.Time) (changed []dag.File, more int, failed []string) {
	if l.changes == nil {
		return nil, 0, nil
	}
	for _, place := range places {
		l.mu.Lock()
		left := l.left[place]
		l.mu.Unlock()
		if left {
			continue
		}
		limited, stop := context.WithTimeout(ctx, lookFor)
		some, rest, err := l.changes.Since(limited, place, since)
		stop()
		if err != nil && ctx.Err() == nil {
			l.mu.Lock()
			l.left[place] = true
			l.mu.Unlock()
			failed = append(failed, "what changes in "+place+" is not told any more: "+core.AsError(err).Message)
		}
		changed, more = append(changed, some...), more+rest
	}
	return changed, more, failed
}

// watch follows what changes in the places of one run.
type watch struct {
	*looker
	places []string
	since  time.Time
	told   []dag.File // by the last look: the clock of a file system is coarse
}

// next finds what changed since the last look.
func (w *watch) next(ctx context.Context) (changed []dag.File, more int, failed []string) {
	if len(w.places) == 0 {
		return nil, 0, nil
	}
	since, now := w.since, time.Now()
	changed, more, failed = w.look(ctx, w.places, since)
	changed = slices.DeleteFunc(changed, func(f dag.File) bool { return slices.Contains(w.told, f) })
	w.since = now
	w.told = slices.DeleteFunc(slices.Concat(w.told, changed), func(f dag.File) bool { return f.At.Before(now.Add(-time.Second)) })
	return changed, more, failed
}

// watching is a watch of what an agent may write.
func (e *Engine) watching(ctx context.Context, tenant, agent string) *watch {
	w := &watch{looker: e.looker, since: time.Now()}
	if e.looker.changes == nil {
		return w
	}
	a, err := forkable{e, e.dir}.Agent(ctx, tenant, agent)
	if err != nil || a.Elsewhere {
		return w
	}
	if a.Dir == "" {
		a.Dir = e.dir
	}
	held, err := e.Resources.Writable(ctx, tenant, agent)
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

func (r recorder) Worked(ctx context.Context, t *task.Task, places []string, since time.Time) {
	r.worked(ctx, t.TenantID, places, since, t.TaskID, func(tx *audit.Tx) (string, error) {
		run, _, err := r.runOf(tx, t)
		return run, err
	})
}

// worked tells what a call of a run changed on disk. What can't be told is no reason to
// lose what the work came to.
func (r recorder) worked(ctx context.Context, tenant string, places []string, since time.Time, call string, of func(*audit.Tx) (run string, err error)) {
	changed, more, failed := r.looker.look(ctx, places, since)
	if len(changed)+more+len(failed) == 0 {
		return
	}
	_ = r.ledger.Append(ctx, core.Self(tenant, "recorder"), func(tx *audit.Tx) error {
		run, err := of(tx)
		if err != nil {
			return err
		}
		return r.dag.Tell(tx, run, func(w *dag.Recording) error {
			for _, why := range failed {
				w.Said(dag.ListFiles, dag.RoleTool, why)
			}
			w.Changed([]string{call}, changed, more)
			return nil
		})
	})
}

// skillRecorder tells what skills do.
type skillRecorder struct{ recorder }

func (r skillRecorder) Worked(ctx context.Context, e *skill.Execution, places []string, since time.Time) {
	r.worked(ctx, e.TenantID, places, since, e.ExecutionID, func(tx *audit.Tx) (string, error) { return r.dag.OpenRun(tx, e.AgentID) })
}
