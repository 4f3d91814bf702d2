package dag

import (
	"context"

	"swarmdeck/engine/core"
)

// JudgedCall is a tool call with what was first decided about it.
type JudgedCall struct {
	Recorded
	Call    *ToolCall
	Decided Decided // without Decision when the record has none
}

// JudgedCalls are the tool calls of run:ID, task:ID, agent:NAME, session:ID or of
// the newest run of an agent, the oldest first and at most so many; more says that
// there are others. Calls that a person edited are there as they were asked for.
func (d *DAG) JudgedCalls(ctx context.Context, tenant, subject string, most int) (all []JudgedCall, more bool, err error) {
	var q Query
	if err := d.Subject(ctx, tenant, subject, &q); err != nil {
		return nil, false, err
	}
	var l listed
	err = d.view(ctx, tenant, "read the calls of "+subject, func(r reader) error {
		lists, err := r.lists(&q)
		if err == nil && lists[0].n == 0 {
			err = core.Missing("record", subject)
		}
		l = lists[0]
		return err
	})
	newest := map[string]int{} // call of an id in a run
	edited := map[string]bool{}
	for from := uint64(0); err == nil && from < l.n; from += slice {
		err = d.view(ctx, tenant, "read the calls of "+subject, func(r reader) error {
			return r.walk(l, true, from, slice, func(e Recorded) error {
				switch b := e.Event.Body.(type) {
				case *ToolCall:
					if len(all) == most {
						more = true
						return nil
					}
					newest[e.Event.RunID+"\x00"+b.CallID] = len(all)
					all = append(all, JudgedCall{Recorded: e, Call: b})
				case *Substitution:
					edited[b.ReplacementEvent.EventID] = true
				case *HistoryAppend:
					if m := e.Event.states(b.MessageRef); m != nil && b.List == ListDecisions {
						if told, is := m.Decision(); is {
							if i, asked := newest[e.Event.RunID+"\x00"+m.Content[0].ID]; asked && all[i].Decided.Decision == "" {
								all[i].Decided = told
							}
						}
					}
				}
				return ctx.Err()
			})
		})
	}
	kept := all[:0]
	for _, c := range all {
		if !edited[c.Event.EventID] {
			kept = append(kept, c)
		}
	}
	return kept, more, err
}
