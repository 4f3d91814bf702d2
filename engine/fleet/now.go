package fleet

import (
	"cmp"
	"slices"
)

// Now is what an agent does at this moment.
type Now struct {
	Agent  Agent
	TaskID string // that it works on, "" for none
	Calls  []Call // of that task, which run as far as the agent has told, the newest first; at most 100
}

// Now tells what an agent does, from memory; false where there is no such agent.
func (f *Fleet) Now(tenant, name string) (Now, bool) {
	m := f.member(tenant, name)
	if m == nil {
		return Now{}, false
	}
	now := Now{Agent: *m.rec.Load()}
	if _, r := m.now(); r != nil {
		now.TaskID, now.Calls = r.job.Task.TaskID, r.acts.running()
	}
	return now, true
}

// running are the calls that are not over and wait for nobody's word.
func (a *acts) running() (all []Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if c.State == CallRunning && c.Ended.IsZero() {
			all = append(all, *c)
		}
	}
	slices.SortFunc(all, func(x, y Call) int { return cmp.Compare(y.Number, x.Number) })
	return all
}
