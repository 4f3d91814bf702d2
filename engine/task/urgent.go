package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// mostUrgent bounds how many tasks of each rank are put before the others.
const mostUrgent = 200

// Urgent are the numbers of the tasks that a list by need begins with: those that wait
// for a person, whose ids are given in their order; then the newest that failed and
// were not tried again, that run and that are queued, at most 200 of each. All others are over, or stand behind
// those in the queue.
func (b *Table) Urgent(ctx context.Context, tenant string, waiting []string) (head []uint64, err error) {
	for _, id := range waiting[:min(len(waiting), mostUrgent)] {
		head = append(head, Seq(id))
	}
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		newest, left := allTasks().Gapless(tx)
		var failed []uint64
		for _, st := range []Status{Failed, TimedOut, Blocked} {
			seqs, err := newestOf(tx, st)
			if err != nil {
				return err
			}
			failed = append(failed, seqs...)
		}
		slices.SortFunc(failed, func(a, b uint64) int { return cmp.Compare(b, a) })
		for _, seq := range failed[:min(len(failed), mostUrgent)] {
			var t Task
			if b.Load(tx, seq, &t) != nil || t.RetriedAs == "" { // one that can't be read needs somebody too
				head = append(head, seq)
			}
		}
		for _, st := range []Status{Running, Queued} {
			seqs, err := newestOf(tx, st)
			if err != nil {
				return err
			}
			head = append(head, seqs...)
		}
		seen := make(map[uint64]bool, len(head))
		head = slices.DeleteFunc(head, func(seq uint64) bool {
			again := seen[seq] || seq <= left || seq > newest
			seen[seq] = true
			return again
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the tasks that need somebody: %w", err)
	}
	return head, nil
}

// newestOf are the newest tasks of a status that has an index.
func newestOf(tx *audit.Tx, st Status) (seqs []uint64, err error) {
	bucket, from, to := bRare, []byte(nil), []byte(nil)
	if st.Terminal() {
		from, to = record.Key(st[:2]).Under()
	} else {
		bucket = bLive
		from, to = record.Key{st[0]}.Under()
	}
	err = tx.Scan(bucket, from, to, true, func(key, _ []byte) (bool, error) {
		seqs = append(seqs, record.LastSeq(key))
		return len(seqs) < mostUrgent, nil
	})
	return seqs, err
}

// ListFrom is List with what Urgent found before all others. Of a list that a filter
// narrows it changes nothing.
func (b *Table) ListFrom(ctx context.Context, tenant string, head []uint64, f core.Filter) (page core.Page[Task], err error) {
	if f.Narrows() || len(head) == 0 {
		return b.List(ctx, tenant, f)
	}
	if f, err = f.Check(); err != nil {
		return page, err
	}
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		l := lister{Gather: core.Gather[Task]{Filter: f}, tx: tx, unread: func(err error) { b.report(tenant, err) }}
		for _, seq := range head[min(len(head), f.Offset()):] {
			if err := l.take(seq); err != nil || len(l.Items) == f.Size {
				page = core.NewPage(l.Items, f, int(allTasks().Total(tx)))
				return err
			}
		}
		var bad error
		err := allTasks().BackWithout(tx, head, max(0, f.Offset()-len(head)), func(seq uint64) bool {
			if len(l.Items) < f.Size {
				bad = l.take(seq)
			}
			return bad == nil && len(l.Items) < f.Size
		})
		page = core.NewPage(l.Items, f, int(allTasks().Total(tx)))
		if bad != nil {
			return bad
		}
		return err
	})
	if err != nil {
		return page, fmt.Errorf("list tasks: %w", err)
	}
	return page, nil
}

// take puts a task on the page, but for one that can't be read.
func (l *lister) take(seq uint64) error {
	var t Task
	ok, err := l.load(seq, &t)
	if ok {
		l.Items = append(l.Items, t)
	}
	return err
}
