package task

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Results lists results, by task, newest task first. Those that can't be read
// are left out and told of.
func (b *Table) Results(ctx context.Context, tenant string, f core.Filter) (core.Page[Result], error) {
	f, err := b.checkFilter(ctx, tenant, f)
	if err != nil {
		return core.Page[Result]{}, err
	}
	var items []Result
	n := 0
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return tx.Scan(bResult, nil, nil, true, func(key, value []byte) bool {
			var r Result
			if err := core.DecodeStored(value, &r); err != nil {
				b.report(tenant, &core.Damaged{Noun: "result", Key: core.NewID(core.TaskPrefix, tenant, record.LastSeq(key)), Err: err})
				return true
			}
			if r.matches(f) {
				if n >= f.Offset() && len(items) < f.Size {
					items = append(items, r)
				}
				n++
			}
			return true
		})
	})
	if err != nil {
		return core.Page[Result]{}, fmt.Errorf("list results: %w", err)
	}
	return core.NewPage(items, f, n), nil
}

func (r *Result) matches(f core.Filter) bool {
	text := ""
	if r.Error != nil {
		text = r.Error.Code + " " + r.Error.Message
	}
	return is(f.Task, r.TaskID) && is(f.Status, string(r.Status)) && is(f.Agent, r.ProducedBy) && is(f.Kind, "") &&
		is(f.Session, "") && is(f.Trace, r.TraceID) && f.Within(r.CompletedAt) && f.Finds(r.TaskID, text)
}
