package coder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

const (
	// forgetLimit is how long a deletion waits until the server has taken it.
	forgetLimit = 10 * time.Second
	// orphanAfter failed deletions a workspace is given up without its
	// resources, which the server lets template managers do.
	orphanAfter = 3
	// removalPoll is how often a deletion under way is looked at.
	removalPoll = time.Second
)

// Forget implements fleet.Keeper: the agent's workspace is deleted. That it is
// to be is on disk first; what the server does not do now is tried until it
// has, by the next runtime too.
func (r *Runtime) Forget(ctx context.Context, rec fleet.Agent) error {
	m, err := r.recall(rec)
	if err != nil {
		return err
	}
	if m.Workspace == "" && m.Asked.IsZero() {
		return nil // it never had one
	}
	m.Gone = true
	if err := m.write(); err != nil {
		return err
	}
	taken := r.remove(m)
	select {
	case <-taken:
	case <-ctx.Done():
	case <-time.After(forgetLimit):
	}
	return nil
}

// Keep implements fleet.Keeper: workspaces of other agents than these are
// deleted.
func (r *Runtime) Keep(_ context.Context, agents []fleet.Agent) error {
	kept := map[string]bool{}
	for _, a := range agents {
		kept[r.memoryOf(a).file] = true
	}
	all, err := r.memories()
	for _, m := range all {
		if !m.Gone && kept[m.file] {
			continue
		}
		if !m.Gone {
			m.Gone = true
			if bad := m.write(); bad != nil {
				err = errors.Join(err, bad)
				continue
			}
		}
		r.remove(m)
	}
	return err
}

// remove deletes a workspace in the background, once at a time. The channel is
// closed when the server has taken it.
func (r *Runtime) remove(m memory) <-chan struct{} {
	taken := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.removing[m.file] {
		close(taken)
		return taken
	}
	r.removing[m.file] = true
	r.work.Go(func() {
		x := removal{r: r, m: m, taken: taken}
		x.run(r.life)
		x.accepted()
		r.mu.Lock()
		delete(r.removing, m.file)
		r.mu.Unlock()
	})
	return taken
}

// removal is one workspace on its way out.
type removal struct {
	r     *Runtime
	m     memory
	taken chan struct{}
	once  bool
	fails int
}

func (x *removal) accepted() {
	if !x.once {
		x.once = true
		close(x.taken)
	}
}

func (x *removal) run(ctx context.Context) {
	set, err := readSettings(x.m.Options)
	if err != nil {
		return // it can't be reached with these; the file stays for whoever looks
	}
	site, done, err := x.r.site(set)
	if err != nil {
		return
	}
	defer done()
	var pause backoff
	for ctx.Err() == nil {
		over, err := x.step(ctx, site, set)
		if over {
			_ = x.m.drop() // else the next start finds that it is gone
			return
		}
		wait := removalPoll
		if err != nil {
			wait = pause.next()
		} else {
			pause.reset()
		}
		if core.Within(ctx.Done(), wait) {
			return
		}
	}
}

// step looks at the workspace and does what brings its end nearer.
func (x *removal) step(ctx context.Context, site *site, set settings) (over bool, err error) {
	var ws *codersdk.Workspace
	if id := x.m.id(); x.m.Workspace != "" {
		ws, err = site.workspace(ctx, id)
	} else { // the answer to its creation was lost
		ws, err = site.named(ctx, x.m.Name)
	}
	if gone(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if x.m.Workspace == "" {
		x.m.Workspace = ws.ID.String()
		if err := x.m.write(); err != nil {
			return false, err
		}
	}
	b := &ws.LatestBuild
	deleting := b.Transition == codersdk.WorkspaceTransitionDelete
	if busyBuild(ws) {
		if deleting {
			x.accepted()
			return false, nil
		}
		return false, site.cancelBuild(ctx, b.ID) // where that is not allowed, it ends by itself
	}
	if deleting && b.Status == codersdk.WorkspaceStatusFailed {
		if x.fails++; x.fails >= orphanAfter {
			if err := site.build(ctx, ws.ID, codersdk.WorkspaceTransitionDelete, true); err == nil {
				return false, nil
			}
		}
		if core.Within(ctx.Done(), time.Duration(x.fails)*time.Second) {
			return false, ctx.Err()
		}
	}
	err = backendOf(site, set, ws).remove(ctx, ws)
	switch {
	case err == nil:
		x.accepted()
	case errors.Is(err, core.Kind(core.Conflict)):
		err = nil // another build has begun
	default:
		err = fmt.Errorf("delete the workspace of %s: %w", x.m.Name, err)
	}
	return false, err
}
