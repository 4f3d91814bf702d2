package fleet

import (
	"context"
	"sync"
	"time"

	"swarmdeck/engine/task"
)

// A transcript writes in batches, so that a chatty agent costs ten commits a
// second. A full one is written by whoever adds to it: the agent is slowed,
// memory stays bounded, nothing is lost.
const (
	batchLines = 64
	batchBytes = 256 << 10
	batchDelay = 100 * time.Millisecond
)

// transcript gathers the lines of one run for the agent's conversation log.
type transcript struct {
	r *run

	writing sync.Mutex // one batch at a time, in order

	mu    sync.Mutex
	lines []task.LogLine
	size  int
	timer *time.Timer
	err   error // of the last batch that could not be written
}

func newTranscript(r *run) *transcript { return &transcript{r: r} }

// sourceTask marks the line that holds what the agent was asked.
const sourceTask = "task"

// stream is the agent's conversation log among the swarm's logs.
func stream(name string) string { return "agent:" + name }

// add also gives what the agent says to the task's own log.
func (t *transcript) add(level, text, source string) {
	switch level {
	case "DEBUG", "INFO", "WARN", "ERROR":
	default:
		level = "INFO"
	}
	text = cut(text, maxLine)
	if source != sourceTask {
		t.r.job.Log(level, text)
	}
	t.mu.Lock()
	t.lines = append(t.lines, task.LogLine{
		Timestamp: t.r.f.opt.Ledger.Clock().Now(), Level: level, Message: text,
		TaskID: t.r.job.Task.TaskID, Source: source,
	})
	t.size += len(text)
	full := len(t.lines) >= batchLines || t.size >= batchBytes
	if !full && t.timer == nil {
		t.timer = time.AfterFunc(batchDelay, func() { _ = t.flush(context.Background()) })
	}
	t.mu.Unlock()
	if full {
		_ = t.flush(context.Background())
	}
}

// flush writes what is there and returns the first error so far.
func (t *transcript) flush(ctx context.Context) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	lines := t.lines
	t.lines, t.size = nil, 0
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	t.mu.Unlock()
	err := t.r.f.opt.Tasks.AppendLog(ctx, t.r.m.speaker(), stream(t.r.m.name), lines)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	return t.err
}
