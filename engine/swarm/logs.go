package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// LogLine is one line of a task's or an agent's log (seed 2, LogEntry).
type LogLine struct {
	Seq       uint64    `json:"seq"` // 1-based within its stream
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"` // DEBUG, INFO, WARN, ERROR
	Message   string    `json:"message"`
	TaskID    string    `json:"task_id,omitempty"`
	TraceID   string    `json:"trace_id,omitempty"` // of the task that caused it
	Source    string    `json:"source,omitempty"`   // "message", "tool", "stderr", …
}

// maxLine bounds one log line; longer ones are cut, and say so.
const maxLine = 64 << 10

// AppendLog adds lines to a stream (a task id or "agent:NAME"). Their Seq is
// given here; a zero Timestamp takes now.
func (s *Swarm) AppendLog(ctx context.Context, by core.Caller, stream string, lines []LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	if err := s.checkStream(ctx, by, stream); err != nil {
		return err
	}
	err := s.ledger.Append(ctx, by, func(tx *audit.Tx) error {
		traces := map[string]string{}
		last := tx.Add(countLog(stream), int64(len(lines)))
		for i, line := range lines {
			line.Seq = uint64(last) - uint64(len(lines)-1-i)
			if line.Timestamp.IsZero() {
				line.Timestamp = tx.Now()
			}
			switch line.Level {
			case "DEBUG", "INFO", "WARN", "ERROR":
			default:
				line.Level = "INFO"
			}
			if len(line.Message) > maxLine {
				line.Message = cut(line.Message, maxLine) + " … (line cut)"
			}
			line.Message = strings.ToValidUTF8(line.Message, "\uFFFD")
			line.Source = cut(line.Source, 64)
			s.trace(tx, &line, traces)
			tx.Trace = cmp.Or(tx.Trace, line.TraceID)
			if err := tx.Put(bLog, nameKey(stream, line.Seq), core.MustEncode(line)); err != nil {
				return err
			}
		}
		tx.Changed("log", stream, nil)
		return nil
	})
	if err != nil {
		return fmt.Errorf("append to log %s: %w", stream, err)
	}
	return nil
}

// trace gives a line about a task that task's trace id. A task id that is none
// of this tenant is taken off.
func (s *Swarm) trace(tx *audit.Tx, line *LogLine, known map[string]string) {
	if line.TaskID == "" {
		return
	}
	id, ok := known[line.TaskID]
	if !ok {
		var t Task
		if seq, err := core.LocalSeq(core.TaskPrefix, tx.Tenant(), line.TaskID); err == nil && s.heads.load(tx, seq, &t) == nil {
			id = t.TraceID
		}
		known[line.TaskID] = id
	}
	if line.TraceID = id; id == "" {
		line.TaskID = ""
	}
}

// checkStream reports a stream that is none of this tenant's. Another tenant's
// task is refused and audited.
func (s *Swarm) checkStream(ctx context.Context, by core.Caller, stream string) error {
	if name, ok := strings.CutPrefix(stream, "agent:"); ok && isAgent(name) {
		return nil
	}
	if !strings.HasPrefix(stream, core.TaskPrefix+"_") {
		return core.Invalid("stream", stream, "a task id or agent:NAME")
	}
	_, err := s.local(ctx, by, core.TaskPrefix, stream)
	return err
}

func countLog(stream string) string { return "log." + stream }

// Log returns up to n lines (at most 1000) of a stream from seq from on,
// oldest first, and the newest seq. from 0 means the first line.
func (s *Swarm) Log(ctx context.Context, tenant, stream string, from uint64, n int) (lines []LogLine, last uint64, err error) {
	if err := s.checkStream(ctx, core.Self(tenant, "reader"), stream); err != nil {
		return nil, 0, err
	}
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		last = uint64(tx.Counter(countLog(stream)))
		_, to := nameSpan(stream)
		var bad error
		if n <= 0 {
			return nil
		}
		err := tx.Scan(bLog, nameKey(stream, from), to, false, func(_, value []byte) bool {
			var line LogLine
			if bad = core.DecodeStored(value, &line); bad != nil {
				return false
			}
			lines = append(lines, line)
			return len(lines) < min(n, 1000)
		})
		if err == nil {
			err = bad
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read log %s: %w", stream, err)
	}
	return lines, last, nil
}

// logPipe gathers a running task's lines and writes them in batches, so that
// a chatty process costs a few commits a second. A full pipe blocks add: the
// process is slowed, memory stays bounded, nothing is lost.
type logPipe struct {
	s      *Swarm
	by     core.Caller
	stream string

	mu     sync.Mutex
	room   *sync.Cond
	lines  []LogLine
	bytes  int
	closed bool
	timer  *time.Timer
	ready  chan time.Time
}

const (
	pipeLines = 2048
	pipeBytes = 1 << 20
	pipeDelay = 100 * time.Millisecond
)

func newLogPipe(s *Swarm, by core.Caller, task string) *logPipe {
	p := &logPipe{s: s, by: by, stream: task, ready: make(chan time.Time, 1)}
	p.room = sync.NewCond(&p.mu)
	return p
}

func (p *logPipe) add(level, text string) {
	text = cut(text, maxLine+1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for (len(p.lines) >= pipeLines || p.bytes >= pipeBytes) && !p.closed {
		p.signal()
		p.room.Wait()
	}
	if p.closed {
		return
	}
	if len(p.lines) == 0 {
		p.timer = time.AfterFunc(pipeDelay, func() {
			p.mu.Lock()
			p.signal()
			p.mu.Unlock()
		})
	}
	p.lines = append(p.lines, LogLine{Timestamp: p.s.ledger.Clock().Now(), Level: level, Message: text, TaskID: p.stream})
	p.bytes += len(text)
}

func (p *logPipe) signal() {
	select {
	case p.ready <- time.Time{}:
	default:
	}
}

// later tries again to write what waits, when the disk was full.
func (p *logPipe) later() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil && !p.closed && len(p.lines) > 0 {
		p.timer.Reset(fullTick)
	}
}

// due is ready when a batch wants writing.
func (p *logPipe) due() <-chan time.Time { return p.ready }

// flush writes what waits. With store.Refuse in ctx that stays where it is
// while the disk is full: the process is slowed.
func (p *logPipe) flush(ctx context.Context) {
	how, said := store.IfFullOf(ctx)
	prompt := said && how == store.Refuse
	if prompt && p.s.full() {
		p.later()
		return
	}
	p.mu.Lock()
	lines := p.lines
	p.lines, p.bytes = nil, 0
	if p.timer != nil {
		p.timer.Stop()
	}
	p.room.Broadcast()
	p.mu.Unlock()
	// A store that refuses log lines refuses the task's result too; that is
	// where it is reported.
	err := p.s.AppendLog(ctx, p.by, p.stream, lines)
	if prompt && errors.Is(err, store.ErrFull) {
		p.mu.Lock()
		p.lines = append(lines, p.lines...)
		for _, line := range lines {
			p.bytes += len(line.Message)
		}
		p.mu.Unlock()
		p.later()
	}
}

func (p *logPipe) close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.room.Broadcast()
	p.mu.Unlock()
}
