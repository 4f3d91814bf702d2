package fleet

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// Overheard is a Handle whose agent is talked to elsewhere too.
type Overheard interface {
	// Overhear has the handle tell from now on, until it is closed, what is said that no
	// prompt of ours asked for: events of type prompt, message, log and, at the end of an
	// answer, result, in order. What hear returns an error for was not kept.
	Overhear(hear func(context.Context, Event) error)
}

// overhear has what is said elsewhere kept in the agent's log, with no task.
func (f *Fleet) overhear(m *member, h Handle) {
	o, ok := h.(Overheard)
	if !ok {
		return
	}
	o.Overhear(func(ctx context.Context, e Event) error {
		line := task.LogLine{Timestamp: f.opt.Ledger.Clock().Now(), Level: "INFO", Message: core.ClipTo(e.Text, maxLine), Source: e.Type}
		switch e.Type {
		case "prompt", "result":
			line.Message = core.ClipTo("told elsewhere: "+e.Text, maxLine)
			return f.overheard(ctx, m, e, line)
		case "log":
			line.Level = e.Level
		case "message":
		default:
			return fmt.Errorf("keep what agent %s says: a %s belongs to a prompt", m.name, core.ClipTo(e.Type, maxCall))
		}
		return f.opt.Tasks.AppendLog(ctx, m.speaker(), stream(m.name), []task.LogLine{line})
	})
}

// overheard keeps a turn's beginning or end, and the former in the log, once.
func (f *Fleet) overheard(ctx context.Context, m *member, e Event, line task.LogLine) error {
	lines := []task.LogLine{line}
	if e.Type != "prompt" {
		lines = nil
	}
	if f.opt.Observer == nil || e.Turn == "" {
		return f.opt.Tasks.AppendLog(ctx, m.speaker(), stream(m.name), lines)
	}
	return f.opt.Ledger.Append(ctx, m.speaker(), func(tx *audit.Tx) error {
		fresh, err := f.opt.Observer.Overheard(tx, *m.rec.Load(), e)
		if err != nil || !fresh || len(lines) == 0 {
			return err
		}
		_, err = f.opt.Tasks.LogIn(tx, stream(m.name), lines)
		return err
	})
}
