package exec

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func newPins(t *testing.T) *pin.Keeper {
	t.Helper()
	return expect.Of(pin.New(filepath.Join(t.TempDir(), "approved"), filepath.Join(t.TempDir(), "runs"), nil))(t)
}

func rewrite(t *testing.T, dir, name, text string) {
	t.Helper()
	expect.No(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
}

func TestATaskStartsOnlyWithTheFilesThatWereJudged(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, dir, "job.sh", "echo one")
	r, l := newRunner(t, RunnerOptions{Dir: dir, Pins: newPins(t)}), &logbook{}
	job := l.job(`{"argv":["sh","job.sh"]}`, "")
	_, action, err := r.Check("t_test", job.Task.Input)
	expect.No(t, err)
	job.Files = r.Bind("t_test", action)
	expect.Must(t, len(job.Files) == 1 && job.Files[0].Path == "job.sh" && job.Files[0].Runs, "bound to %+v", job.Files)
	w := expect.Of(r.Start(context.Background(), job))(t)
	_, out := finish(t, w)
	expect.True(t, out.Stdout == "one\n", "%+v", out)
	rewrite(t, dir, "job.sh", "echo two")
	expect.Err(t, expect.Fault(r.Start(context.Background(), job)), judge.ErrChanged, "started")
}

func TestAProgramInTheWorkDirectoryIsBoundHoweverItIsFound(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, dir, "tool", "#!/bin/sh\n")
	r := newRunner(t, RunnerOptions{Dir: dir, Pins: newPins(t)})
	for _, input := range []string{`{"argv":["./tool"]}`, `{"argv":["` + dir + `/tool"]}`, `{"argv":["tool"],"env":{"PATH":"` + dir + `"}}`} {
		_, action, err := r.Check("t_test", []byte(input))
		expect.No(t, err)
		files := r.Bind("t_test", action)
		expect.True(t, len(files) == 1 && files[0].Path == "tool" && files[0].Runs, "%s is bound to %+v", input, files)
	}
}

func TestASkillStartsOnlyWithTheFilesThatWereJudged(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, dir, "job.sh", `echo '{"n":1}'`)
	r := expect.Of(NewSkillRunner(drivertest.Cells(t, cell.Options{}), RunnerOptions{Dir: dir, Pins: newPins(t)}))(t)
	call := (&logbook{}).call(`{}`, "sh", "job.sh")
	call.Files = r.Bind("t_test", call.Skill.Runner)
	expect.Must(t, len(call.Files) == 1, "bound to %+v", call.Files)
	w := expect.Of(r.Start(context.Background(), call))(t)
	o := over(t, w)
	expect.True(t, o.Status == task.Succeeded, "%+v", o)
	rewrite(t, dir, "job.sh", `echo '{"n":2}'`)
	expect.Err(t, expect.Fault(r.Start(context.Background(), call)), judge.ErrChanged, "started")
}
