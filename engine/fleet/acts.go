package fleet

import (
	"cmp"
	"maps"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
)

// acts follows what a run does, and writes what has changed of it.
type acts struct {
	r *run

	mu    sync.Mutex
	head  Activity
	calls map[string]*Call // by id, the newest keptCalls
	order [keptCalls]string
	dirty map[int]Call // by slot
	diffs map[int]Diff // by slot
	spent budget.Usage // that is not on the agent's record yet
	owed  budget.Usage // of it, what the budgets do not know yet
	stale bool         // the head has changed
}

// did is what has changed of a run's activity.
type did struct {
	head  Activity
	calls map[int]Call
	diffs map[int]Diff
	spent budget.Usage
	owed  budget.Usage
}

// take follows one event, and reports whether it begins a tool call.
func (a *acts) take(e *Event) (begins bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.r.f.opt.Ledger.Clock().Now()
	switch e.Type {
	case "plan":
		a.head.Plan, a.head.PlanAt = steps(e), now
	case "mode":
		a.head.Mode = oneLine(e.Text, maxIntent)
	case "tool_request":
		begins = a.begin(e, now, Call{Asked: true, State: CallAsked, Title: oneLine(e.Intent, maxIntent), Args: core.ClipTo(string(e.Args), maxArgs)})
	case "tool_call":
		begins = a.begin(e, now, Call{State: CallRunning, Title: oneLine(e.Text, maxIntent)})
	case "tool_result":
		if e.Tool != "" && a.calls[core.ClipTo(e.CallID, maxCall)] == nil { // nothing was heard of it before
			begins = a.begin(e, now, Call{State: CallRunning, Title: oneLine(e.Text, maxIntent)})
		}
		state := CallFailed
		if e.Status == "ok" {
			state = CallDone
		}
		a.move(e.CallID, state, e.Error, now)
	case "diff":
		d := Diff{CallID: core.ClipTo(e.CallID, maxCall), Path: oneLine(e.Path, maxURI), Text: core.ClipTo(e.Text, maxDiff), At: now}
		a.head.Drew++
		d.Number = a.head.Drew
		a.diffs[d.Number%keptDiffs] = d
	default:
		return false
	}
	a.changed()
	return begins
}

// steps is the plan of an event: its steps, or the lines of its text.
func steps(e *Event) []Step {
	var out []Step
	for _, s := range e.Steps[:min(len(e.Steps), maxSteps)] {
		out = append(out, Step{Text: oneLine(s.Text, maxStep), Status: oneLine(s.Status, 20)})
	}
	if len(e.Steps) > 0 {
		return out
	}
	for line := range strings.Lines(e.Text) {
		if text := oneLine(line, maxStep); text != "" && len(out) < maxSteps {
			out = append(out, Step{Text: text})
		}
	}
	return out
}

// begin adds a call, or takes it that one that is known asks now; mu is held.
func (a *acts) begin(e *Event, now time.Time, c Call) bool {
	c.CallID, c.Tool, c.Began = core.ClipTo(e.CallID, maxCall), oneLine(e.Tool, maxCall), now
	if old := a.calls[c.CallID]; old != nil {
		c.Number, c.Began, c.Asked, c.Title = old.Number, old.Began, c.Asked || old.Asked, cmp.Or(c.Title, old.Title)
		if !old.Ended.IsZero() { // word of it comes late
			c.State, c.Ended, c.Error = old.State, old.Ended, old.Error
		}
		*old = c
		a.dirty[c.Number%keptCalls] = c
		return false
	}
	a.head.Made++
	c.Number = a.head.Made
	slot := c.Number % keptCalls
	delete(a.calls, a.order[slot])
	a.order[slot] = c.CallID
	a.calls[c.CallID] = &c
	a.dirty[slot] = c
	return true
}

// heard says whether a call is known.
func (a *acts) heard(call string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[core.ClipTo(call, maxCall)] != nil
}

// asked says whether a call is known to have asked.
func (a *acts) asked(call string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.calls[core.ClipTo(call, maxCall)]
	return c != nil && c.Asked
}

// answered notes the judge's word on a call.
func (a *acts) answered(call, decision, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := CallDenied
	if decision == approve {
		state, reason = CallRunning, ""
	}
	a.move(call, state, reason, a.r.f.opt.Ledger.Clock().Now())
	a.changed()
}

// move brings a call into another state; mu is held.
func (a *acts) move(call string, state CallState, reason string, now time.Time) {
	c := a.calls[core.ClipTo(call, maxCall)]
	if c == nil || c.State == CallDenied { // what the agent says of it comes after our no
		return
	}
	c.State, c.Error = state, oneLine(reason, maxIntent)
	if state != CallRunning && state != CallAsked {
		c.Ended = now
	}
	a.dirty[c.Number%keptCalls] = *c
}

// used adds what the run has spent; owed says that the budgets do not know of it.
func (a *acts) used(e *Event, owed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.head.Usage.Tokens += e.Tokens
	a.head.Usage.CostUSD += e.CostUSD
	a.head.Split = a.head.Split.Plus(e.Split)
	if e.Context.Used > 0 {
		a.head.Context = e.Context
	}
	a.spent.Tokens += e.Tokens
	a.spent.CostUSD += e.CostUSD
	if owed {
		a.owed.Tokens += e.Tokens
		a.owed.CostUSD += e.CostUSD
	}
	a.changed()
}

// changed has it written soon; mu is held.
func (a *acts) changed() {
	a.stale = true
	a.r.soon()
}

// taken is what has changed since the last that was taken; nil for nothing.
func (a *acts) taken() *did {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stale {
		return nil
	}
	d := &did{a.head, a.dirty, a.diffs, a.spent, a.owed}
	a.dirty, a.diffs, a.spent, a.owed, a.stale = map[int]Call{}, map[int]Diff{}, budget.Usage{}, budget.Usage{}, false
	return d
}

// back takes back what could not be written: what is newer holds.
func (a *acts) back(d *did) {
	if d == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stale = true
	a.spent.Tokens += d.spent.Tokens
	a.spent.CostUSD += d.spent.CostUSD
	a.owed.Tokens += d.owed.Tokens
	a.owed.CostUSD += d.owed.CostUSD
	maps.Copy(d.calls, a.dirty)
	maps.Copy(d.diffs, a.diffs)
	a.dirty, a.diffs = d.calls, d.diffs
}

func (a *acts) write(tx *audit.Tx, d *did) error {
	if d.owed != (budget.Usage{}) {
		a.r.job.UseIn(tx, d.owed.Tokens, d.owed.CostUSD)
	}
	head, made, drew, spent := d.head, d.calls, d.diffs, d.spent
	m, task := a.r.m, head.TaskID
	old, err := a.r.f.agents.Load(tx, m.name)
	if err != nil || old == nil || old.TaskID != task || a.r.f.member(m.tenant, m.name) != m {
		return err // it is gone, or works on something else
	}
	head.At = tx.Now()
	if err := activities.Put(tx, activityKey(m.name), head); err != nil {
		return err
	}
	for slot, c := range made {
		if err := calls.Put(tx, callKey(m.name).Byte(byte(slot)), kept[Call]{task, c}); err != nil {
			return err
		}
	}
	for slot, d := range drew {
		if err := diffs.Put(tx, diffKey(m.name).Byte(byte(slot)), kept[Diff]{task, d}); err != nil {
			return err
		}
	}
	tx.Changed("activity", m.name)
	rec := *old
	if head.Context.Used > 0 {
		rec.Context = head.Context
	}
	if spent == (budget.Usage{}) && rec.Context == old.Context {
		return nil
	}
	rec.Usage.Tokens += spent.Tokens
	rec.Usage.CostUSD += spent.CostUSD
	return a.r.f.agents.Write(tx, old, &rec)
}

// started has the run's first record written: what is shown is of this run
// from now on.
func (a *acts) started() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed()
}

// Now is what an agent does at this moment.
type Now struct {
	Agent  Agent
	TaskID string // that it works on, "" for none
	Starts bool   // its program is not up yet
	Calls  []Call // of that task, which run as far as the agent has told, the newest first; at most 100
}

// Now tells what an agent does, from memory; false where there is no such agent.
func (f *Fleet) Now(tenant, name string) (Now, bool) {
	m := f.member(tenant, name)
	if m == nil {
		return Now{}, false
	}
	now := Now{Agent: *m.rec.Load(), Starts: m.look().health.Status == Starting}
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
	core.Sort(all, func(x, y Call) int { return cmp.Compare(y.Number, x.Number) })
	return all
}
