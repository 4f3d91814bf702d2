package task

import (
	"cmp"
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Results lists results, the last that came first. Those that can't be read are
// left out and told of.
func (b *Table) Results(ctx context.Context, tenant string, f core.Filter) (core.Page[Result], error) {
	f, err := b.checkFilter(ctx, tenant, f)
	if err != nil {
		return core.Page[Result]{}, err
	}
	type came struct {
		at  int64
		seq uint64
	}
	var found []came
	var items []Result
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		err := tx.Scan(bResult, nil, nil, true, func(key, value []byte) (bool, error) {
			var r Result
			seq := record.LastSeq(key)
			if err := core.DecodeStored(value, &r); err != nil {
				b.report(tenant, &core.Damaged{Noun: "result", Key: core.NewID(core.TaskPrefix, tenant, seq), Err: err})
			} else if r.matches(f) {
				found = append(found, came{r.CompletedAt.UnixNano(), seq})
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		core.Sort(found, func(a, b came) int { return cmp.Compare(b.at, a.at) })
		from := min(f.Offset(), len(found))
		for _, c := range found[from:min(from+f.Size, len(found))] {
			r, err := b.ResultIn(tx, core.NewID(core.TaskPrefix, tenant, c.seq))
			if err != nil {
				return err
			}
			items = append(items, r)
		}
		return nil
	})
	if err != nil {
		return core.Page[Result]{}, fmt.Errorf("list results: %w", err)
	}
	return core.NewPage(items, f, len(found)), nil
}

func (r *Result) matches(f core.Filter) bool {
	text := ""
	if r.Error != nil {
		text = r.Error.Code + " " + r.Error.Message
	}
	return is(f.Task, r.TaskID) && is(f.Status, string(r.Status)) && is(f.Agent, r.ProducedBy) && is(f.Kind, "") &&
		is(f.Session, "") && is(f.Trace, r.TraceID) && f.Within(r.CompletedAt) && f.Finds(r.TaskID, text)
}
