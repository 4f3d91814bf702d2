package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// SkillKind is the runner kind that SkillRunner serves.
const SkillKind = "exec"

// SkillRunner carries out skills that are commands. One gets
// {"params","results","task_id","trace_id"} as one JSON document on stdin and
// prints one JSON object of at most skill.MaxResult bytes on stdout; what it
// prints on stderr goes to the task's log. Directory, environment, limits and
// the end of what it leaves running are those of exec.run tasks, and so are
// the codes of failures, besides
//
//	bad_output        it exited with 0, but stdout is no such object
//	output_too_large  stdout was larger; the command was stopped
type SkillRunner struct {
	sup *cell.Supervisor
	opt RunnerOptions
}

var (
	_ skill.Runner   = (*SkillRunner)(nil)
	_ skill.Effecter = (*SkillRunner)(nil)
	_ skill.Binder   = (*SkillRunner)(nil)
	_ skill.Placed   = (*SkillRunner)(nil)
)

// NewSkillRunner returns a runner whose processes the supervisor owns. One
// with nil checks skills and starts none.
func NewSkillRunner(sup *cell.Supervisor, opt RunnerOptions) (*SkillRunner, error) {
	err := keeper.FillIn(&opt.Dir, &opt.Limits, &opt.Secrets)
	return &SkillRunner{sup: sup, opt: opt}, err
}

// Check implements skill.Runner. Whether the program and the directory exist
// is found out when it starts: an earlier skill may make them.
func (r *SkillRunner) Check(spec skill.Spec) error {
	_, err := r.dirOf(spec)
	for _, err := range []error{cell.CheckCommand("argv", spec.Argv), cell.CheckEnv(spec.Env), err} {
		if err != nil {
			e := core.AsError(err)
			return core.Errorf(e.Code, "runner.%s", e.Message).With("field", fmt.Sprint("runner.", e.Details["field"]))
		}
	}
	return nil
}

func (r *SkillRunner) dirOf(spec skill.Spec) (string, error) {
	return cell.CheckDir(spec.Dir, r.opt.Dir)
}

// Effects implements skill.Effecter: a command can do anything.
func (r *SkillRunner) Effects(skill.Spec) []skill.Effect { return []skill.Effect{skill.Exec} }

// Places implements skill.Placed: a command works in its directory.
func (r *SkillRunner) Places(_, _ string, spec skill.Spec, _ core.Raw) []string {
	dir, err := r.dirOf(spec)
	if err != nil {
		return nil
	}
	return []string{dir}
}

func (r *SkillRunner) Bind(tenant string, spec skill.Spec) []judge.File {
	dir, err := r.dirOf(spec)
	if err != nil || len(spec.Argv) == 0 {
		return nil
	}
	return r.opt.Pins.Look(tenant, cell.Spec{Argv: spec.Argv, Env: spec.Env, Dir: dir}.Line())
}

// skillInput is the document on a skill's stdin.
type skillInput struct {
	Params  core.Raw            `json:"params"`
	Results map[string]core.Raw `json:"results"`
	TaskID  string              `json:"task_id"`
	TraceID string              `json:"trace_id"`
}

// Start implements skill.Runner. A command that can't be started is a failed
// outcome.
func (r *SkillRunner) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	spec := call.Skill.Runner
	if err := r.Check(spec); err != nil {
		return nil, err
	}
	in := skillInput{Params: call.Params, Results: call.Results, TaskID: call.TaskID, TraceID: call.TraceID}
	if len(in.Params) == 0 {
		in.Params = core.Raw(`{}`)
	}
	doc, err := core.Encode(in)
	if err != nil {
		return nil, fmt.Errorf("encode the skill's input: %w", err)
	}
	dir, err := r.dirOf(spec)
	if err != nil {
		return nil, err
	}
	pins, err := r.opt.Pins.Take(dir, call.Files, nil)
	if err != nil {
		return nil, err
	}
	w := &skillWork{
		command: newCommand(string(doc)+"\n", r.opt.Grace, pins), log: call.Log,
		answer: pipe.Kept{Most: skill.MaxResult, Over: errFlood},
	}
	if w.start(ctx, r.sup, r.opt.Secrets, call.Tenant, cell.Spec{
		Run: call.Run, Whose: cell.Whose{Tenant: call.Tenant, Task: call.TaskID}, Argv: spec.Argv, Dir: dir, Env: cell.Traced(spec.Env, call.Traceparent()), Limits: r.opt.Limits, Pinned: pins.Pins, Wall: cell.Wall{Told: true},
	}) {
		go w.run(ctx)
	}
	return w, nil
}

// skillWork is one running command of a skill.
type skillWork struct {
	command
	log    func(level, line string)
	answer pipe.Kept
}

var _ swarm.Work = (*skillWork)(nil)

func (w *skillWork) run(ctx context.Context) {
	defer close(w.done)
	log := newTaskLog(w.log, "the skill goes on without it")
	last := ""
	stderr := &pipe.Splitter{Max: maxLogLine, Emit: func(line []byte, cut int) {
		if s := bytes.TrimSpace(line); len(s) > 0 {
			last = core.ClipTo(pipe.Text(s), keeper.MaxMessage)
		}
		log.line("WARN", line, cut)
	}}
	f := w.follow(ctx, &w.answer, stderr)
	log.end()
	w.outcome = w.judge(f, last)
}

// errFlood stops a command with too much output.
var errFlood = errors.New("stdout is too large")

// judge makes the outcome of how the command ended and what it printed.
func (w *skillWork) judge(f fate, lastErr string) task.Outcome {
	out := runOutput{Stderr: lastErr}
	w.exit(f, &out)
	o := task.Outcome{Status: task.Failed}
	switch {
	case w.answer.Cut() && (!f.cancelled || f.reason == errFlood.Error()):
		o.Error = &task.Error{Code: "output_too_large", Message: fmt.Sprintf(
			"stdout is larger than %d bytes: a skill prints one JSON object", skill.MaxResult)}
	case f.cancelled:
		o.Status, o.Error = task.Cancelled, f.cancelError()
	case out.Signal != "" || out.RC != 0:
		o.Error = out.failure()
	default:
		result, err := printedObject(w.mask.JSON(w.answer.Take()))
		if err != nil {
			o.Error = &task.Error{Code: "bad_output", Message: core.ClipTo(err.Error(), keeper.MaxMessage)}
			break
		}
		o = task.Outcome{Status: task.Succeeded, Output: result, Text: string(result)}
	}
	f.note(o.Error)
	return o
}

// printedObject is the one JSON object that was printed.
func printedObject(printed []byte) (core.Raw, error) {
	result := core.Raw(printed)
	if err := core.CheckObject("stdout", result, skill.MaxResult); err != nil {
		start := core.ClipTo(pipe.Text(bytes.TrimSpace(printed[:min(len(printed), 200)])), 80)
		if start == "" {
			return nil, fmt.Errorf("%w; a skill prints one JSON object", err)
		}
		return nil, fmt.Errorf("%w; it begins with %q", err, start)
	}
	if err := result.Compact(); err != nil {
		return nil, fmt.Errorf("stdout: %w", err)
	}
	return result, nil
}
