package task

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// LogLine is one line of a task's or an agent's log.
type LogLine struct {
	Seq       uint64    `json:"seq"` // 1-based within its stream
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"` // DEBUG, INFO, WARN, ERROR
	Message   string    `json:"message"`
	TaskID    string    `json:"task_id,omitempty"`
	TraceID   string    `json:"trace_id,omitempty"` // of the task that caused it
	Source    string    `json:"source,omitempty"`   // "message", "tool", "stderr", …
}

// MaxLine bounds one log line; longer ones are cut, and say so.
const MaxLine = 64 << 10

// AppendLog adds lines to a stream (a task id or "agent:NAME"). Their Seq is
// given here; a zero Timestamp takes now.
func (b *Table) AppendLog(ctx context.Context, by core.Caller, stream string, lines []LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	if err := b.checkStream(ctx, by, stream); err != nil {
		return err
	}
	over := false
	err := b.ledger.Append(ctx, by, func(tx *audit.Tx) (err error) {
		over, err = b.LogIn(tx, stream, lines)
		return err
	})
	if err == nil && over {
		err = b.TrimLog(ctx, by.Tenant, stream)
	}
	if err != nil {
		return fmt.Errorf("append to log %s: %w", stream, err)
	}
	return nil
}

// LogIn adds lines to a stream of the transaction's tenant, inside it. over says that
// the stream is larger than it may be: TrimLog then.
func (b *Table) LogIn(tx *audit.Tx, stream string, lines []LogLine) (over bool, err error) {
	traces, size := map[string]string{}, int64(0)
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
		if len(line.Message) > MaxLine {
			line.Message = core.Cut(line.Message, MaxLine) + " … (line cut)"
		}
		line.Message = strings.ToValidUTF8(line.Message, "\uFFFD")
		line.Source = core.Cut(line.Source, 64)
		b.trace(tx, &line, traces)
		tx.Trace = cmp.Or(tx.Trace, line.TraceID)
		data := core.MustEncode(line)
		if err := tx.Put(bLog, lineKey(stream, line.Seq), data); err != nil {
			return false, err
		}
		size += int64(len(data))
	}
	if bounded(stream) {
		over = tx.Derived().Add(countBytes(stream), size) > b.mostBytes(tx.Tenant())
	}
	tx.Changed("log", stream)
	return over, nil
}

// trace gives a line about a task that task's trace id. A task id that is none
// of this tenant is taken off.
func (b *Table) trace(tx *audit.Tx, line *LogLine, known map[string]string) {
	if line.TaskID == "" {
		return
	}
	id, ok := known[line.TaskID]
	if !ok {
		var t Task
		if seq, err := core.LocalSeq(core.TaskPrefix, tx.Tenant(), line.TaskID); err == nil && b.Load(tx, seq, &t) == nil {
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
func (b *Table) checkStream(ctx context.Context, by core.Caller, stream string) error {
	if name, ok := strings.CutPrefix(stream, "agent:"); ok && core.IsAgent(name) {
		return nil
	}
	if !strings.HasPrefix(stream, core.TaskPrefix+"_") {
		return core.Invalid("stream", stream, "a task id or agent:NAME")
	}
	_, err := b.ledger.LocalSeq(ctx, by, core.TaskPrefix, stream)
	return err
}

func countLog(stream string) string { return "log." + stream }

func lineKey(stream string, seq uint64) record.Key { return record.Text(stream).Seq(seq) }

// Log returns up to n lines (at most 1000) of a stream from seq from on,
// oldest first, and the newest seq. from 0 means the first line.
func (b *Table) Log(ctx context.Context, tenant, stream string, from uint64, n int) (lines []LogLine, last uint64, err error) {
	if err := b.checkStream(ctx, core.Self(tenant, "reader"), stream); err != nil {
		return nil, 0, err
	}
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		last = uint64(tx.Counter(countLog(stream)))
		_, to := record.Text(stream).Under()
		if n <= 0 {
			return nil
		}
		return tx.Scan(bLog, lineKey(stream, from), to, false, func(_, value []byte) (bool, error) {
			var line LogLine
			err := core.DecodeStored(value, &line)
			if err == nil {
				lines = append(lines, line)
			}
			return len(lines) < min(n, 1000), err
		})
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read log %s: %w", stream, err)
	}
	return lines, last, nil
}
