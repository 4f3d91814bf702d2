package swarm_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// boundRunner names one file, whose content is a version number.
type boundRunner struct {
	*fakeRunner
	version atomic.Int64
	late    atomic.Int64 // so many starts find that it changed just then
}

func (r *boundRunner) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	title, action, err := r.fakeRunner.Check(tenant, input)
	action.Kind = "bound.run"
	return title, action, err
}

func (r *boundRunner) Bind(string, judge.Action) []judge.File {
	return []judge.File{{Path: "job.sh", SHA256: fmt.Sprint(r.version.Load()), Runs: true}}
}

func (r *boundRunner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	if r.late.Add(-1) >= 0 {
		r.version.Add(1)
		return nil, fmt.Errorf("job.sh %w", judge.ErrChanged)
	}
	return r.fakeRunner.Start(ctx, job)
}

func bound(r *rig) *boundRunner {
	b := &boundRunner{fakeRunner: r.runner}
	r.swarm.Runner("bound.run", b)
	return b
}

func TestARuleIsAskedOnceMoreWhereFilesChangedBeforeTheStart(t *testing.T) {
	r := newRig(t)
	b := bound(r)
	tk := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Kind = "bound.run" })
	b.version.Add(1)
	r.run()
	w := <-r.runner.started
	f := w.job.Files
	expect.True(t, len(f) == 1 && f[0].SHA256 == "1", "held to %+v", f)
	now, err := r.tasks.Get(t.Context(), acme, tk.TaskID)
	expect.True(t, err == nil && now.Bound != tk.Bound && now.Bound == judge.FilesDigest(w.job.Files) && now.Attempt == 0, "%+v, %v", now, err)
	w.end(task.Outcome{Status: task.Succeeded, Output: core.Raw(`{}`)})
}

func TestATaskWhoseFilesChangeAsItStartsGoesBackToItsGate(t *testing.T) {
	r := newRig(t)
	b := bound(r)
	b.late.Store(2)
	r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Kind = "bound.run" })
	r.run()
	w := <-r.runner.started
	f := w.job.Files
	expect.True(t, len(f) == 1 && f[0].SHA256 == "2" && w.job.Task.Attempt == 0, "held to %+v in attempt %d", f, w.job.Task.Attempt)
	w.end(task.Outcome{Status: task.Succeeded, Output: core.Raw(`{}`)})
}
