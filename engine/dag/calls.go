package dag

import (
	"cmp"
	"context"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Call is a tool call with what came of it.
type Call struct {
	CallID      string   `json:"call_id"`
	Server      string   `json:"server"`
	Tool        string   `json:"tool"`
	RunID       string   `json:"run_id"`
	AgentID     string   `json:"agent_id"`
	Status      string   `json:"status"` // a ToolCallStatus, open, or replaced by a later call of the same id
	CallEvent   string   `json:"call_event"`
	ResultEvent string   `json:"result_event,omitempty"`
	CalledAt    Time     `json:"called_at"`
	ReturnedAt  Time     `json:"returned_at,omitzero"`
	DurationMS  int64    `json:"duration_ms,omitzero"`
	Args        core.Raw `json:"args"`
	Result      core.Raw `json:"result,omitzero"`
	Error       *Fault   `json:"error,omitzero"`
	TaskID      string   `json:"task_id,omitempty"`
	TraceID     string   `json:"trace_id,omitempty"`
	RequestedBy EventRef `json:"requested_by"`
}

// What a call without a result is.
const (
	callOpen     = "open"
	callReplaced = "replaced"
)

// CallStatuses are the values of Call.Status.
func CallStatuses() []string {
	return append([]string{callOpen, callReplaced}, core.Strings(callStatuses()...)...)
}

// Calls lists tool calls with their results: those of a run in their order,
// all others newest first.
func (d *DAG) Calls(ctx context.Context, tenant string, q Query) (core.Page[Call], error) {
	if q.Status != "" && !slices.Contains(CallStatuses(), q.Status) {
		return core.Page[Call]{}, core.Invalid("status", q.Status, words(CallStatuses()))
	}
	q.returned, q.Status = q.Status, "" // which is not on the events
	q.Kind = ""                         // calls are of one kind
	var keep func(reader, Recorded) (bool, error)
	if q.returned != "" {
		keep = func(r reader, e Recorded) (bool, error) {
			c, err := r.call(e)
			return c.Status == q.returned, err
		}
	}
	return list(ctx, d, tenant, q, func(r reader, q *Query) ([]listed, error) {
		l, err := r.callsOf(q.Run)
		if err != nil {
			return nil, err
		}
		all := []listed{l}
		if q.Run = ""; q.Agent != "" || q.Task != "" || q.Session != "" {
			others, err := r.lists(q)
			if all = append(all, others...); err != nil {
				return nil, err
			}
		}
		core.Sort(all, func(a, b listed) int { return cmp.Compare(a.n, b.n) })
		return all, nil
	}, keep, reader.call)
}

// callsOf is the list of a run's calls, or of all.
func (r reader) callsOf(run string) (listed, error) {
	if run == "" {
		return r.ofKind(KindToolCall)
	}
	num, _, err := r.num(nameKey(NodeRef{TypeRun, run}))
	if err != nil || num == 0 {
		return listed{rows: runCalls, under: record.Seq(num)}, err
	}
	n, err := r.last(runCalls, record.Seq(num))
	return listed{runCalls, record.Seq(num), n}, err
}

// call finds what came of a tool call: the last result before the next call of
// the same id.
func (r reader) call(e Recorded) (Call, error) {
	b := e.Event.Body.(*ToolCall)
	c := Call{
		CallID: b.CallID, Server: b.Server, Tool: b.Tool, RunID: e.Event.RunID, AgentID: e.Event.AgentID,
		CallEvent: e.Event.EventID, CalledAt: e.Event.TS, Args: b.Args, TaskID: e.Event.TaskID, TraceID: e.Event.TraceID,
		RequestedBy: b.RequestedBy,
	}
	stream, _, err := r.num(nameKey(NodeRef{TypeRun, e.Event.RunID}))
	if err != nil {
		return c, err
	}
	result, without, err := r.resultOf(stream, e.Pos, b.CallID)
	if c.Status = without; err != nil || result == 0 {
		return c, err
	}
	res, err := r.event(result)
	if err != nil {
		return c, err
	}
	t := res.Event.Body.(*ToolResult)
	c.Status, c.Result, c.Error, c.ResultEvent, c.ReturnedAt = string(t.Status), t.Result, t.Error, res.Event.EventID, res.Event.TS
	c.DurationMS = max(0, res.Event.TS.at.Sub(e.Event.TS.at).Milliseconds())
	return c, nil
}

// resultOf is the pos of a call's result, 0 when it has none, and the status that the
// call has without one.
func (r reader) resultOf(stream, call uint64, id string) (result uint64, without string, err error) {
	without = callOpen
	err = callIDs.Within(r, record.Seq(stream).Text(id), record.Seq(call+1), nil, false, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		if kindOf(found) == KindToolCall.code() {
			without = callReplaced
			return false, nil
		}
		result = rest.Seq()
		return true, nil
	})
	return result, without, err
}

// kindOf is the code of the kind of event that an entry of callIDs is for.
func kindOf(found record.Found[[]byte]) byte {
	at := record.Parts(found.Data)
	return at.Byte()
}

// Pos is the place of the newest event of a tenant's record.
func Pos(tx store.Tx) uint64 { return uint64(tx.Counter(countEvents)) }

// Called reports whether an agent made a tool call after a place in the record
// and before another.
func (d *DAG) Called(ctx context.Context, tenant, agent string, after, before uint64) (found bool, err error) {
	err = d.view(ctx, tenant, "look for calls", func(r reader) error {
		l, err := r.of(typeCode(TypeAgent), agent)
		if err != nil || before == 0 {
			return err
		}
		if l.n, err = r.upto(l, before-1); err != nil {
			return err
		}
		for i := l.n; i > 0 && !found; i-- {
			pos, err := r.entry(l, i)
			if err != nil || pos <= after {
				return err
			}
			kind, err := r.kind(pos)
			if err != nil {
				return err
			}
			found = kind == KindToolCall.code()
		}
		return nil
	})
	return found, err
}

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
	return slices.DeleteFunc(all, func(c JudgedCall) bool { return edited[c.Event.EventID] }), more, err
}
