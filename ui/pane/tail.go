package pane

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/task"
)

// Bounds of a tail: what one read brings and what is kept around the window.
const (
	tailRead = 200
	tailKeep = 2000
)

// Logs are the streams of log lines; *task.Table has them.
type Logs interface {
	// Log returns up to n lines of a stream after seq from, oldest first, and the
	// stream's last seq.
	Log(ctx context.Context, tenant, stream string, from uint64, n int) ([]task.LogLine, uint64, error)
}

// Tail holds the part of a log stream that a screen shows: the newest lines
// while it follows, or those around a place further up. It never holds the
// whole stream.
type Tail struct {
	name   string
	logs   Logs
	stream string
	lines  []task.LogLine // consecutive
	last   uint64         // newest seq of the stream that is known, 0 for an empty one
	reader Reader[tailReply]
	err    error // why the last read failed
}

type tailReply struct {
	follow bool // the newest lines were wanted, not a place further up
	lines  []task.LogLine
	last   uint64
}

// NewTail makes a tail for a pane.
func NewTail(name string, logs Logs) *Tail {
	return &Tail{name: name, logs: logs, reader: NewReader[tailReply](name)}
}

// Bind points the tail at a stream: a task id, "agent:NAME", or "" for none.
func (t *Tail) Bind(stream string) {
	if stream != t.stream {
		*t = *NewTail(t.name, t.logs)
		t.stream = stream
	}
}

// Window are up to n lines that are in memory from seq from on.
func (t *Tail) Window(from uint64, n int) []task.LogLine {
	if len(t.lines) == 0 || n <= 0 {
		return nil
	}
	first := t.lines[0].Seq
	i := 0
	if from > first {
		i = int(from - first)
	}
	if i >= len(t.lines) {
		return nil
	}
	return t.lines[i:min(i+n, len(t.lines))]
}

// Refresh reads what was added since.
func (t *Tail) Refresh(env Env) tea.Cmd {
	if len(t.lines) == 0 {
		return t.read(env, 0, true, true)
	}
	return t.read(env, t.lines[len(t.lines)-1].Seq, true, false)
}

// Count reads how long the stream is by now, and no lines.
func (t *Tail) Count(env Env) tea.Cmd {
	if t.reader.Busy(t.stream) {
		return nil
	}
	logs, tenant, stream, at := t.logs, env.Tenant, t.stream, t.last
	return t.reader.Read(stream, func(ctx context.Context) (tailReply, error) {
		_, last, err := logs.Log(ctx, tenant, stream, at, 1)
		return tailReply{last: last}, err
	})
}

// Need reads the lines from seq from on when they are not in memory.
func (t *Tail) Need(env Env, from uint64, n int) tea.Cmd {
	if t.reader.Busy(t.stream) || t.last == 0 {
		return nil
	}
	from = max(from, 1)
	to := min(from+uint64(max(n, 1))-1, t.last)
	if len(t.lines) > 0 && from >= t.lines[0].Seq && to <= t.lines[len(t.lines)-1].Seq {
		return nil
	}
	start := uint64(0)
	if from > tailRead/2 {
		start = from - tailRead/2
	}
	t.lines = nil
	return t.read(env, start, false, false)
}

// read asks for the lines after seq from; newest first finds out where the
// stream ends.
func (t *Tail) read(env Env, from uint64, follow, newest bool) tea.Cmd {
	logs, tenant, stream := t.logs, env.Tenant, t.stream
	return t.reader.Read(stream, func(ctx context.Context) (tailReply, error) {
		if newest {
			_, last, err := logs.Log(ctx, tenant, stream, 0, 1)
			if err != nil {
				return tailReply{}, err
			}
			if last > tailRead {
				from = last - tailRead
			}
		}
		lines, last, err := logs.Log(ctx, tenant, stream, from, tailRead)
		return tailReply{follow, lines, last}, err
	})
}

// Take stores a reply and reports whether it was this tail's; the Cmd reads on
// while there is more.
func (t *Tail) Take(env Env, body any) (tea.Cmd, bool) {
	a, ok := t.reader.Take(t.stream, body)
	if !ok {
		return nil, false
	}
	if t.err = a.Err; a.Err != nil {
		return nil, true
	}
	r := &a.Got
	t.last = max(r.last, t.last)
	if len(r.lines) == 0 {
		return nil, true
	}
	if n := len(t.lines); n > 0 && r.lines[0].Seq != t.lines[n-1].Seq+1 {
		t.lines = nil // a gap: what came stands on its own
	}
	t.lines = append(t.lines, r.lines...)
	if n := len(t.lines); n > tailKeep {
		t.lines = append([]task.LogLine(nil), t.lines[n-tailKeep:]...)
	}
	switch behind := t.last - r.lines[len(r.lines)-1].Seq; {
	case !r.follow:
	case behind > tailRead: // too much came at once to show: go on at the end
		t.lines = nil
		return t.read(env, 0, true, true), true
	case behind > 0 || a.Again:
		return t.Refresh(env), true
	}
	return nil, true
}
