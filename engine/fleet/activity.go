package fleet

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Bounds of what is kept of an agent's newest run.
const (
	keptCalls = 100
	keptDiffs = 50
	maxSteps  = 200
	maxStep   = 500      // bytes of one step
	maxArgs   = 500      // bytes of a call's arguments
	maxDiff   = 16 << 10 // bytes of a diff
)

// Activity is what an agent did in its newest run: its plan as it is now, its
// newest tool calls and changes of files. Earlier runs are in the log.
type Activity struct {
	TaskID  string       `json:"task_id,omitempty"` // "" when there was no run
	At      time.Time    `json:"at,omitzero"`       // of the last change
	Plan    []Step       `json:"plan,omitempty"`
	PlanAt  time.Time    `json:"plan_at,omitzero"`
	Calls   []Call       `json:"calls,omitempty"`  // by their beginning, the newest 100
	Diffs   []Diff       `json:"diffs,omitempty"`  // the newest 50
	Mode    string       `json:"mode,omitempty"`   // of its own permissions, where it told of one
	Usage   budget.Usage `json:"usage"`            // tokens and cost of this run
	Split   Split        `json:"split,omitzero"`   // of these tokens, as far as it is known
	Context Context      `json:"context,omitzero"` // of its conversation
	Made    int          `json:"made,omitzero"`    // calls so far, those that are no longer kept too
	Drew    int          `json:"drew,omitzero"`    // diffs so far
}

// Step is one step of a plan.
type Step struct {
	Text   string `json:"text"`
	Status string `json:"status"` // pending, in_progress, completed, or the agent's own word; "" when it told of none
}

// CallState is how far a tool call is.
type CallState string

// The states of a call.
const (
	CallAsked   CallState = "asked"   // the judge or a person has to say
	CallRunning CallState = "running" // it may, or did not ask
	CallDenied  CallState = "denied"
	CallDone    CallState = "ok"
	CallFailed  CallState = "error"
)

// Call is a tool call of a run.
type Call struct {
	CallID string    `json:"call_id"`
	Tool   string    `json:"tool"`
	Title  string    `json:"title,omitempty"`
	Args   string    `json:"args,omitempty"` // JSON, cut at 500 bytes
	Asked  bool      `json:"asked,omitzero"` // it passed the gate; else the agent approved it itself
	State  CallState `json:"state"`
	Error  string    `json:"error,omitempty"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`

	Number int `json:"n"` // of the run's calls, from 1
}

// Diff is how a file changes.
type Diff struct {
	CallID string    `json:"call_id,omitempty"`
	Path   string    `json:"path,omitempty"`
	Text   string    `json:"text"` // cut at 16 KiB
	At     time.Time `json:"at"`

	Number int `json:"n"`
}

// What agents do is kept under name, kind and slot. The slots are used in turn,
// so an agent's part never grows; what is of an earlier run bears another
// task's id.
const (
	activities record.Rows[Activity]   = "agent.activity"
	calls      record.Rows[kept[Call]] = "agent.activity"
	diffs      record.Rows[kept[Diff]] = "agent.activity"
)

// kept is a record of a run in its slot.
type kept[T any] struct {
	TaskID string `json:"task_id"`
	Record T      `json:"record"`
}

// Where the parts of an agent's activity are: the first has one slot.
func activityKey(name string) record.Key { return record.Text(name).Byte('a').Byte(0) }
func callKey(name string) record.Key     { return record.Text(name).Byte('c') }
func diffKey(name string) record.Key     { return record.Text(name).Byte('d') }

// Activity returns what an agent does or did last; nil when that is what the
// caller knows, by its At. A zero known is nothing.
func (f *Fleet) Activity(ctx context.Context, tenant, name string, known time.Time) (*Activity, error) {
	m, err := f.find(ctx, reader(tenant), name)
	if err != nil {
		return nil, err
	}
	var out Activity
	same := false
	err = f.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		if out, _, err = activities.Get(tx, activityKey(m.name)); err != nil {
			return err
		}
		if same = !known.IsZero() && out.At.Equal(known); same {
			return nil
		}
		if out.Calls, err = slots(tx, calls, callKey(m.name), out.TaskID); err == nil {
			out.Diffs, err = slots(tx, diffs, diffKey(m.name), out.TaskID)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what agent %s does: %w", name, err)
	}
	if same {
		return nil, nil
	}
	core.Sort(out.Calls, func(a, b Call) int { return a.Number - b.Number })
	core.Sort(out.Diffs, func(a, b Diff) int { return a.Number - b.Number })
	return &out, nil
}

func slots[T any](tx store.Tx, rows record.Rows[kept[T]], under record.Key, task string) (out []T, err error) {
	err = rows.Each(tx, under, func(_ record.Parts, k kept[T]) (bool, error) {
		if k.TaskID == task {
			out = append(out, k.Record)
		}
		return true, nil
	})
	return out, err
}

// EraseAgents is a record.Erase: what agents keep of the newest task of theirs.
func (f *Fleet) EraseAgents(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return f.agents.Erase(ctx, by, of, from, "agents", func(tx *audit.Tx, _ *record.Erasure, a *Agent) (bool, error) {
		whose, over, err := of.Task(tx, a.LastTaskID)
		erased := core.EraseText(a.LastTask)
		if err != nil || whose != record.Theirs || !over || erased == a.LastTask {
			return false, err
		}
		a.LastTask = erased
		return true, nil
	})
}

// EraseActivity is a record.Erase: the plans, calls and diffs of runs for the
// subject, or by an agent of that name, leave.
func (f *Fleet) EraseActivity(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return record.Sweep{
		Ledger: f.opt.Ledger, Kind: "activity", Bucket: store.Bucket(activities),
		Erase: func(tx *audit.Tx, e *record.Erasure, key, value []byte) (bool, error) {
			var did struct { // an Activity, or what a slot keeps
				TaskID string   `json:"task_id"`
				Record core.Raw `json:"record"`
				Plan   core.Raw `json:"plan"`
			}
			if core.DecodeStored(value, &did) != nil {
				of.Leave("what an agent did (it can't be read)")
				return false, nil
			}
			if len(did.Record) == 0 && len(did.Plan) == 0 {
				return false, nil
			}
			name, _, _ := bytes.Cut(key, []byte{0})
			whose, over, err := of.Task(tx, did.TaskID)
			if err != nil || !over {
				return false, err
			}
			if whose == record.NotTheirs && string(name) != of.Name {
				return eraseDenial(tx, of, e, key, value)
			}
			if e == nil {
				return true, nil
			}
			e.Add(string(name), value)
			if len(did.Record) > 0 {
				return true, activities.Delete(tx, bytes.Clone(key))
			}
			var a Activity
			if err := core.DecodeStored(value, &a); err != nil {
				return true, err
			}
			a.Plan = nil
			return true, activities.Put(tx, bytes.Clone(key), a)
		},
	}.Slice(ctx, by, of, from)
}

// eraseDenial takes a reason of the subject's out of a call that they denied.
func eraseDenial(tx *audit.Tx, of *record.Subject, e *record.Erasure, key, value []byte) (bool, error) {
	var k kept[Call]
	if len(of.Said) == 0 || core.DecodeStored(value, &k) != nil || !of.SaidIn(k.TaskID, k.Record.Error) {
		return false, nil
	}
	if e == nil {
		return true, nil
	}
	e.Add(k.Record.CallID, value)
	k.Record.Error = core.EraseText(k.Record.Error)
	return true, calls.Put(tx, bytes.Clone(key), k)
}

// EraseAttention is a record.Erase: why runs for the subject asked for a person.
func (f *Fleet) EraseAttention(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return record.Sweep{
		Ledger: f.opt.Ledger, Kind: "attention", Bucket: store.Bucket(attention),
		Erase: func(tx *audit.Tx, e *record.Erasure, key, value []byte) (bool, error) {
			whose, over, err := of.Task(tx, string(key))
			erased := core.EraseText(string(value))
			if err != nil || whose == record.NotTheirs || !over || erased == string(value) {
				return false, err
			}
			if e == nil {
				return true, nil
			}
			e.Add(string(key), value)
			return true, attention.Put(tx, bytes.Clone(key), erased)
		},
	}.Slice(ctx, by, of, from)
}
