package fleet

import (
	"bytes"
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

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
