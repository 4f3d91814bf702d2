package fleet

import (
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// Log is the conversation log of an agent, newest first, one line a page
// unless asked otherwise (seed 2). The total counts all lines that are kept of
// those since the agent was created. f.Status is a level, f.Task a task; a filtered log is read
// through from its end.
func (f *Fleet) Log(ctx context.Context, tenant, name string, q core.Filter) (core.Page[task.LogLine], error) {
	var none core.Page[task.LogLine]
	if q.Size == 0 {
		q.Size = 1
	}
	q, err := q.Check()
	if err != nil {
		return none, err
	}
	m, err := f.find(ctx, reader(tenant), name)
	if err != nil {
		return none, err
	}
	base := m.rec.Load().LogFrom
	first, err := f.opt.Tasks.LogFirst(ctx, tenant, stream(name))
	if err != nil {
		return none, fmt.Errorf("read the log of agent %s: %w", name, err)
	}
	base = max(base, first-1)
	last, err := f.logEnd(ctx, tenant, name)
	if err != nil {
		return none, err
	}
	if q.Narrows() {
		return f.searchLog(ctx, tenant, name, q, base, last)
	}
	total := int(last - min(base, last))
	upto := last - min(uint64(q.Offset()), last)
	items, err := f.logTail(ctx, tenant, name, base, upto, q.Size)
	return core.NewPage(items, q, total), err
}

// logEnd is the newest line's number in an agent's log, 0 when it is empty.
func (f *Fleet) logEnd(ctx context.Context, tenant, name string) (uint64, error) {
	_, last, err := f.opt.Tasks.Log(ctx, tenant, stream(name), 0, 0)
	if err != nil {
		return 0, fmt.Errorf("read the log of agent %s: %w", name, err)
	}
	return last, nil
}

// logTail returns up to n lines of (base, upto], newest first.
func (f *Fleet) logTail(ctx context.Context, tenant, name string, base, upto uint64, n int) ([]task.LogLine, error) {
	if upto <= base {
		return nil, nil
	}
	n = int(min(uint64(n), upto-base))
	lines, _, err := f.opt.Tasks.Log(ctx, tenant, stream(name), upto-uint64(n)+1, n)
	if err != nil {
		return nil, fmt.Errorf("read the log of agent %s: %w", name, err)
	}
	slices.Reverse(lines)
	return lines, nil
}

// searchLog pages through the lines that match.
func (f *Fleet) searchLog(ctx context.Context, tenant, name string, q core.Filter, base, last uint64) (core.Page[task.LogLine], error) {
	const chunk = 1000
	var items []task.LogLine
	total := 0
	for upto := last; upto > base; {
		lines, err := f.logTail(ctx, tenant, name, base, upto, chunk)
		if err != nil {
			return core.Page[task.LogLine]{}, err
		}
		if len(lines) == 0 {
			break
		}
		upto = lines[len(lines)-1].Seq - 1
		for _, l := range lines {
			if !core.Wants(q.Status, l.Level) || !core.Wants(q.Task, l.TaskID) ||
				!q.Within(l.Timestamp) || !q.Finds(l.Message) {
				continue
			}
			if total++; total > q.Offset() && len(items) < q.Size {
				items = append(items, l)
			}
		}
	}
	return core.NewPage(items, q, total), nil
}
