package exec

import (
	"context"
	"fmt"
	"io"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/place"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// runOutput is the result of an exec.run task.
type runOutput struct {
	RC                int    `json:"rc"`
	Signal            string `json:"signal,omitempty"`
	overran           string // says, in words, that it took more memory than it may
	Stdout            string `json:"stdout"`
	Stderr            string `json:"stderr"`
	DurationMS        int64  `json:"duration_ms"`
	StdoutTruncated   bool   `json:"stdout_truncated,omitzero"`
	StdoutBytes       int64  `json:"stdout_bytes,omitzero"`
	Spill             string `json:"spill,omitempty"`
	StderrTruncated   bool   `json:"stderr_truncated,omitzero"`
	StderrBytes       int64  `json:"stderr_bytes,omitzero"`
	SpillStderr       string `json:"spill_stderr,omitempty"`
	SpillSHA256       string `json:"spill_sha256,omitempty"`
	SpillStderrSHA256 string `json:"spill_stderr_sha256,omitempty"`
	SpillError        string `json:"spill_error,omitempty"`
	// SpillPlace is where the files lie, of a database.
	SpillPlace place.Place `json:"spill_place,omitempty"`
}

// work is one running command of a task.
type work struct {
	command
	job     swarm.Job
	capture *capture
}

var _ swarm.Work = (*work)(nil)

// run follows the command to its end and past it.
func (w *work) run(ctx context.Context) {
	defer close(w.done)
	defer w.job.Keep()()
	log := newTaskLog(w.job.Log, "the output goes on in the result")
	f := w.follow(ctx, w.stream(0, "INFO", log), w.stream(1, "WARN", log))
	log.end()
	w.capture.close()
	w.outcome = w.judge(f)
}

// stream is where one stream of the command goes: into the capture, and line
// by line into the log.
func (w *work) stream(n int, level string, log *taskLog) io.Writer {
	return &kept{capture: w.capture, n: n, Splitter: pipe.Splitter{
		Max: maxLogLine, Emit: func(line []byte, cut int) { log.line(level, line, cut) },
	}}
}

type kept struct {
	pipe.Splitter
	capture *capture
	n       int
}

func (k *kept) Write(p []byte) (int, error) {
	k.capture.write(k.n, p)
	return k.Splitter.Write(p)
}

// judge makes the outcome of how the command ended.
func (w *work) judge(f fate) task.Outcome {
	var out runOutput
	w.capture.report(&out)
	if out.Spill != "" || out.SpillStderr != "" {
		out.SpillPlace = w.job.Place
	}
	w.exit(f, &out)
	o := task.Outcome{Status: task.Succeeded, Output: core.MustEncode(out), Text: out.text()}
	switch {
	case f.cancelled:
		o.Status, o.Error = task.Cancelled, f.cancelError()
	case out.Signal != "" || out.RC != 0:
		o.Status, o.Error = task.Failed, out.failure()
	}
	f.note(o.Error)
	return o
}

func (r runOutput) text() string {
	if r.Stderr == "" {
		return r.Stdout
	}
	return r.Stdout + "\n" + r.Stderr
}

func (r runOutput) failure() *task.Error {
	e := &task.Error{Code: "exit_nonzero", Message: fmt.Sprintf("exit status %d", r.RC)}
	switch {
	case r.overran != "":
		e.Code, e.Message = "limit_exceeded", r.overran
	case r.Signal == "":
		if last := pipe.LastLine(r.Stderr); last != "" {
			e.Message += ": " + last
		}
	case r.Signal == "SIGXCPU" || r.Signal == "SIGXFSZ":
		e.Code, e.Message = "limit_exceeded", "ended by "+r.Signal+": a resource limit of the runner"
	default:
		e.Code, e.Message, e.Retryable = "killed", "ended by "+r.Signal, true
	}
	e.Message = core.ClipTo(e.Message, 512)
	return e
}
