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
func (f *roster) Activity(ctx context.Context, tenant, name string, known time.Time) (*Activity, error) {
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

// Erasers erase what agents keep of the newest task of theirs; the plans, calls and
// diffs of runs for the subject, or by an agent of that name; and why runs asked
// for a person. What waits to be given they name: it is the subject's to withdraw.
func (f *Fleet) Erasers() []record.Eraser {
	return []record.Eraser{
		f.agents.Eraser("agents"),
		record.Sweep{Ledger: f.opt.Ledger, Kind: "activity", Bucket: store.Bucket(activities), Erase: eraseActivity}.Eraser(),
		f.messages.Eraser("queue"),
		record.Sweep{Ledger: f.opt.Ledger, Kind: "attention", Bucket: store.Bucket(attention), Erase: eraseAttention}.Eraser(),
	}
}

func (a *Agent) erase(e *record.Erasure) {
	if whose, over := e.Whose(a.LastTaskID); whose == record.Theirs && over {
		e.Wipe(&a.LastTask)
	}
}

func eraseActivity(e *record.Erasure, key, value []byte) {
	var did struct { // an Activity, or what a slot keeps
		TaskID string   `json:"task_id"`
		Record core.Raw `json:"record"`
		Plan   core.Raw `json:"plan"`
	}
	if core.DecodeStored(value, &did) != nil {
		e.Waits("what an agent did (it can't be read)")
		return
	}
	name, _, _ := bytes.Cut(key, []byte{0})
	e.ID = string(name)
	whose, over := e.Whose(did.TaskID)
	var a Activity
	var c kept[Call]
	switch {
	case !over || len(did.Record) == 0 && len(did.Plan) == 0:
	case whose == record.NotTheirs && e.ID != e.Of.Name: // a call that the subject denied may repeat their reason
		if len(e.Of.Said) > 0 && core.DecodeStored(value, &c) == nil && e.Of.SaidIn(c.TaskID, c.Record.Error) {
			e.ID = c.Record.CallID
			e.Wipe(&c.Record.Error)
			e.Then(func() error { return calls.Put(e.Tx, key, c) })
		}
	case len(did.Record) > 0:
		e.Some = true
		e.Then(func() error { return activities.Delete(e.Tx, key) })
	case e.Check(core.DecodeStored(value, &a)):
		a.Plan, e.Some = nil, true
		e.Then(func() error { return activities.Put(e.Tx, key, a) })
	}
}

func eraseAttention(e *record.Erasure, key, value []byte) {
	e.ID = string(key)
	why := string(value)
	if whose, over := e.Whose(e.ID); whose != record.NotTheirs && over && e.Wipe(&why) {
		e.Then(func() error { return attention.Put(e.Tx, key, why) })
	}
}
