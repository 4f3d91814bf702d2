package task

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Counts are the totals of a tenant's tasks, kept by counters.
type Counts struct {
	Total    int64            `json:"total"`
	ByStatus map[Status]int64 `json:"by_status"`
	Waiting  int64            `json:"waiting"` // queued or running, with an open approval
}

// Counts reads the totals.
func (b *Table) Counts(ctx context.Context, tenant string) (c Counts, err error) {
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		c = counted(tx)
		return nil
	})
	return c, err
}

// Held are the totals from memory, as the ledger holds them.
func (b *Table) Held(ctx context.Context, tenant string) (Counts, error) {
	held, err := b.ledger.Counts(ctx, tenant)
	if err != nil {
		return Counts{}, err
	}
	return counted(held), nil
}

func counted(by record.Counters) Counts {
	c := Counts{Total: allTasks().Total(by), Waiting: by.Counter(countWaiting), ByStatus: map[Status]int64{}}
	for _, st := range Statuses() {
		c.ByStatus[st] = by.Counter(countStatus(st))
	}
	return c
}

// checkFilter refuses what a list of tasks or results can't be narrowed by, and
// takes a live session's name for its id. Another tenant's ids are refused and
// audited.
func (b *Table) checkFilter(ctx context.Context, tenant string, f core.Filter) (core.Filter, error) {
	f, err := f.Check()
	if err != nil {
		return f, err
	}
	for status := range strings.SplitSeq(f.Status, ",") {
		if err := Status(status).Check(); f.Status != "" && err != nil {
			return f, err
		}
	}
	by := core.Self(tenant, "reader")
	if f.Session != "" {
		if b.opt.Session != nil {
			if id, ok := b.opt.Session(tenant, f.Session); ok {
				f.Session = id
			}
		}
		if _, err := b.ledger.LocalSeq(ctx, by, core.SessionPrefix, f.Session); err != nil {
			return f, err
		}
	}
	if f.Task != "" {
		if _, err := b.ledger.LocalSeq(ctx, by, core.TaskPrefix, f.Task); err != nil {
			return f, err
		}
	}
	return f, nil
}

// List lists tasks, newest first. The page of an unfiltered list is found by
// its number, whatever the size of the history; one by status, agent or
// session reads an index; other filters read the history newest first.
func (b *Table) List(ctx context.Context, tenant string, f core.Filter) (core.Page[Task], error) {
	f, err := b.checkFilter(ctx, tenant, f)
	if err != nil {
		return core.Page[Task]{}, err
	}
	var page core.Page[Task]
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		var all []Task
		total, each := 0, f
		if strings.Contains(f.Status+f.Agent, ",") { // the newest of each, along its own index
			each.Page, each.Size = 1, f.Page*f.Size
		}
		for status := range strings.SplitSeq(f.Status, ",") {
			for agent := range strings.SplitSeq(f.Agent, ",") {
				each.Status, each.Agent = status, agent
				l := lister{Gather: core.Gather[Task]{Filter: each}, tx: tx, unread: func(err error) { b.report(tenant, err) }}
				if err := l.read(); err != nil {
					return err
				}
				if page = l.Result(); each == f {
					return nil
				}
				all, total = append(all, page.Items...), total+page.Info.Total
			}
		}
		core.Sort(all, func(a, b Task) int { return strings.Compare(b.TaskID, a.TaskID) })
		page = core.NewPage(all[min(len(all), f.Offset()):min(len(all), f.Offset()+f.Size)], f, total)
		return nil
	})
	if err != nil {
		return page, fmt.Errorf("list tasks: %w", err)
	}
	return page, nil
}

// lister reads one page of tasks along the narrowest index. Those that can't be
// read are left out and told of.
type lister struct {
	core.Gather[Task]
	tx     *audit.Tx
	unread func(error)
}

// load reads a task; false is one that is left out.
func (l *lister) load(seq uint64, t *Task) (bool, error) {
	err := load(l.tx, seq, t)
	if len(core.DamagedIn(err)) > 0 {
		l.unread(err)
		return false, nil
	}
	return err == nil, err
}

func (l *lister) read() error {
	only := func(g core.Filter) bool { // the filter has no other fields than g's
		g.Page, g.Size = l.Page, l.Size
		return l.Filter == g
	}
	st := Status(l.Status)
	switch {
	case !l.Narrows():
		return l.dense()
	case l.Session != "":
		from, to := record.Text(l.Session).Under()
		return l.along(bOfSes, from, to, l.known(only(core.Filter{Session: l.Session}), countOf(bOfSes, l.Session)))
	case l.Agent != "":
		from, to := record.Text(l.Agent).Under()
		return l.along(bOfAgent, from, to, l.known(only(core.Filter{Agent: l.Agent}), countOf(bOfAgent, l.Agent)))
	case st == Queued || st == Running:
		from, to := record.Key{st[0]}.Under()
		return l.along(bLive, from, to, l.known(only(core.Filter{Status: l.Status}), countStatus(st)))
	case st != "" && rare(st):
		from, to := record.Key(st[:2]).Under()
		return l.along(bRare, from, to, l.known(only(core.Filter{Status: l.Status}), countStatus(st)))
	case only(core.Filter{Status: string(Succeeded)}):
		return l.history(l.known(true, countStatus(st)))
	}
	return l.history(-1)
}

// known is the total by a counter, or -1 when it must be counted.
func (l *lister) known(pure bool, counter string) int {
	if !pure {
		return -1
	}
	return int(l.tx.Counter(counter))
}

// dense reads a page of all tasks, which begins at a known key.
func (l *lister) dense() error {
	l.Total = int(allTasks().Total(l.tx))
	var bad error
	err := allTasks().Back(l.tx, l.Offset(), func(seq uint64) bool {
		if len(l.Items) == l.Size {
			return false
		}
		var t Task
		var ok bool
		if ok, bad = l.load(seq, &t); ok {
			l.Items = append(l.Items, t)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}

// along follows an index whose keys end in the task's number.
func (l *lister) along(b store.Bucket, from, to []byte, total int) error {
	pure := total >= 0
	err := l.tx.Scan(b, from, to, true, func(key, _ []byte) (bool, error) {
		if pure && !l.Shows() {
			l.Total++
			return true, nil
		}
		var t Task
		if ok, err := l.load(record.LastSeq(key), &t); !ok {
			return true, err
		}
		return !pure && !l.match(&t) || l.Add(t) || !pure, nil
	})
	if pure {
		l.Total = total
	}
	return err
}

// history reads all tasks, newest first, and counts what matches.
func (l *lister) history(total int) error {
	err := l.tx.Scan(bTask, nil, nil, true, func(key, value []byte) (bool, error) {
		var t Task
		if err := core.DecodeStored(value, &t); err != nil {
			l.unread(Damaged(l.tx.Tenant(), record.LastSeq(key), err))
			return true, nil
		}
		if !l.Since.IsZero() && t.CreatedAt.Before(l.Since) {
			return false, nil // older ones are older still
		}
		return !l.match(&t) || l.Add(t) || total < 0, nil
	})
	if total >= 0 {
		l.Total = total
	}
	return err
}

func (l *lister) match(t *Task) bool {
	f := l.Filter
	return is(f.Task, t.TaskID) && is(f.Status, string(t.Status)) && is(f.Agent, t.Agent) && is(f.Kind, t.Kind) &&
		is(f.Session, t.SessionID) && is(f.Trace, t.TraceID) &&
		f.Within(t.CreatedAt) && (f.Finds(t.TaskID, t.Title, t.Kind, t.Agent, t.ErrorCode, t.named()) || f.Finds(l.said(t)))
}

// said is why a task did not succeed.
func (l *lister) said(t *Task) string {
	if !t.Status.Terminal() || t.Status == Succeeded {
		return ""
	}
	var r Result
	if record.Fetch(l.tx, bResult, keyIn(l.tx, t.Seq()), "result of task", t.TaskID, &r) != nil || r.Error == nil {
		return ""
	}
	return r.Error.Message
}

// named are the words that lists have for how a task is.
func (t *Task) named() string {
	switch {
	case t.Status.Terminal():
	case t.Waiting != "":
		return string(t.Status) + " needs you"
	case t.Paused:
		return string(t.Status) + " paused"
	}
	return core.Named(string(t.Status))
}

// is reports whether a field of a filter takes a value.
func is(want, value string) bool { return want == "" || want == value }
