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
	k := expect.Of(pin.New(filepath.Join(t.TempDir(), "approved"), filepath.Join(t.TempDir(), "runs"), nil))(t)
	return k
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
	if job.Files = r.Bind("t_test", action); len(job.Files) != 1 || job.Files[0].Path != "job.sh" || !job.Files[0].Runs {
		t.Fatalf("bound to %+v", job.Files)
	}
	w := expect.Of(r.Start(context.Background(), job))(t)
	if _, out := finish(t, w); out.Stdout != "one\n" {
		t.Errorf("%+v", out)
	}
	rewrite(t, dir, "job.sh", "echo two")
	_, err = r.Start(context.Background(), job)
	expect.Err(t, err, judge.ErrChanged, "started")
}

func TestAProgramInTheWorkDirectoryIsBoundHoweverItIsFound(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, dir, "tool", "#!/bin/sh\n")
	r := newRunner(t, RunnerOptions{Dir: dir, Pins: newPins(t)})
	for _, input := range []string{`{"argv":["./tool"]}`, `{"argv":["` + dir + `/tool"]}`, `{"argv":["tool"],"env":{"PATH":"` + dir + `"}}`} {
		_, action, err := r.Check("t_test", []byte(input))
		expect.No(t, err)
		if files := r.Bind("t_test", action); len(files) != 1 || files[0].Path != "tool" || !files[0].Runs {
			t.Errorf("%s is bound to %+v", input, files)
		}
	}
}

func TestASkillStartsOnlyWithTheFilesThatWereJudged(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, dir, "job.sh", `echo '{"n":1}'`)
	r := expect.Of(NewSkillRunner(drivertest.Cells(t, cell.Options{}), RunnerOptions{Dir: dir, Pins: newPins(t)}))(t)
	call := (&logbook{}).call(`{}`, "sh", "job.sh")
	if call.Files = r.Bind("t_test", call.Skill.Runner); len(call.Files) != 1 {
		t.Fatalf("bound to %+v", call.Files)
	}
	w := expect.Of(r.Start(context.Background(), call))(t)
	if o := over(t, w); o.Status != task.Succeeded {
		t.Errorf("%+v", o)
	}
	rewrite(t, dir, "job.sh", `echo '{"n":2}'`)
	_, err := r.Start(context.Background(), call)
	expect.Err(t, err, judge.ErrChanged, "started")
}
