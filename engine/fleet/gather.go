package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// What a run has to write that is no event, it gathers: lines of the log, what is
// shown of it, and what is to be recorded of it. The next event of the run takes it
// along into its transaction; while there is none, it is written all at once a few
// times a second. A full log is written by whoever adds to it: the agent is slowed,
// memory stays bounded, nothing is lost.
const (
	gatherLines = 64
	gatherBytes = 256 << 10
	gatherFor   = 200 * time.Millisecond
)

// gathered is when what a run has gathered is written.
type gathered struct {
	writing sync.Mutex // one transaction at a time, in order

	timing sync.Mutex
	timer  *time.Timer
}

// soon has what is gathered written soon.
func (r *run) soon() {
	r.timing.Lock()
	defer r.timing.Unlock()
	if r.timer == nil {
		r.timer = time.AfterFunc(gatherFor, func() { _ = r.flush(context.Background()) })
	}
}

// commit is Ledger.Update with all that is gathered, which comes first.
func (r *run) commit(ctx context.Context, by core.Caller, fn func(*audit.Tx) error) error {
	return r.along(ctx, func(also func(*audit.Tx) error) error {
		return r.f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
			if err := also(tx); err != nil {
				return err
			}
			return fn(tx)
		})
	})
}

// flush writes what is gathered, and returns the first error of the log so far.
func (r *run) flush(ctx context.Context) error {
	err := r.along(ctx, func(also func(*audit.Tx) error) error { return r.f.opt.Ledger.Append(ctx, r.m.speaker(), also) })
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.log.err == nil {
		r.log.err = err
	}
	return r.log.err
}

// along makes a transaction that writes what is gathered. What could not be written is
// tried again with the next.
func (r *run) along(ctx context.Context, commit func(also func(*audit.Tx) error) error) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.timing.Lock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	r.timing.Unlock()
	lines, did := r.log.taken(), r.acts.taken()
	over := false
	write := func(tx *audit.Tx) (err error) {
		over, err = r.log.write(tx, lines)
		if err == nil && did != nil {
			err = r.acts.write(tx, did)
		}
		return err
	}
	r.mu.Lock()
	seen := r.seen
	r.mu.Unlock()
	var err error
	if seen == nil {
		err = commit(write)
	} else {
		err = seen.Along(func(record func(*audit.Tx) error) error {
			return commit(func(tx *audit.Tx) error {
				if err := record(tx); err != nil {
					return err
				}
				return write(tx)
			})
		})
	}
	if err != nil {
		r.log.back(lines)
		r.acts.back(did)
		return err
	}
	if over {
		return r.f.opt.Tasks.TrimLog(ctx, r.m.tenant, stream(r.m.name))
	}
	return nil
}

// transcript are the lines of one run that are not in the agent's conversation log yet.
type transcript struct {
	r *run

	mu    sync.Mutex
	lines []task.LogLine
	size  int
	err   error // of the first that could not be written
}

// sourceTask marks the line that holds what the agent was asked.
const sourceTask = "task"

// stream is the agent's conversation log among the swarm's logs.
func stream(name string) string { return "agent:" + name }

// add also gives what the agent says to the task's own log.
func (t *transcript) add(level, text, source string) {
	if !slices.Contains([]string{"DEBUG", "INFO", "WARN", "ERROR"}, level) {
		level = "INFO"
	}
	text = core.ClipTo(text, maxLine)
	t.mu.Lock()
	t.lines = append(t.lines, task.LogLine{
		Timestamp: t.r.f.opt.Ledger.Clock().Now(), Level: level, Message: text,
		TaskID: t.r.job.Task.TaskID, Source: source,
	})
	t.size += len(text)
	full := len(t.lines) >= gatherLines || t.size >= gatherBytes
	t.mu.Unlock()
	if full {
		_ = t.r.flush(context.Background())
	} else {
		t.r.soon()
	}
}

// failed is the first error of the log.
func (t *transcript) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *transcript) taken() []task.LogLine {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	t.lines, t.size = nil, 0
	return lines
}

func (t *transcript) back(lines []task.LogLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(lines, t.lines...)
	for i := range lines {
		t.size += len(lines[i].Message)
	}
}

// write adds lines to both logs. over says that the agent's is larger than it may be.
func (t *transcript) write(tx *audit.Tx, lines []task.LogLine) (over bool, err error) {
	if len(lines) == 0 {
		return false, nil
	}
	tasks := t.r.f.opt.Tasks
	over, err = tasks.LogIn(tx, stream(t.r.m.name), lines)
	own := slices.DeleteFunc(slices.Clone(lines), func(l task.LogLine) bool { return l.Source == sourceTask })
	if err == nil && len(own) > 0 {
		for i := range own {
			own[i].Source = ""
		}
		_, err = tasks.LogIn(tx, t.r.job.Task.TaskID, own)
	}
	return over, err
}
