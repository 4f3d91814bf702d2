package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
)

// acts follows what a run does, each of its calls from the beginning to the end, and
// writes what has changed of it.
type acts struct {
	r *run

	closes core.Condition // changes when a call is closed; taken before mu

	mu    sync.Mutex
	head  Activity
	calls map[string]*known // by id: those that are open, and the newest keptCalls
	order [keptCalls]string
	dirty map[int]Call // by slot
	diffs map[int]Diff // by slot
	spent budget.Usage // that is not on the agent's record yet
	owed  budget.Usage // of it, what the budgets do not know yet
	stale bool         // the head has changed
}

// known is what is known of a call; it has no number until it is told of.
type known struct {
	Call
	open     bool    // it waits for its answer or result: no other has its id
	unwanted *string // why, once its agent says so
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
		if e.Tool != "" && a.find(e.CallID) == nil { // nothing was heard of it before
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
	out := core.Map(e.Steps[:min(len(e.Steps), maxSteps)], func(s Step) Step {
		return Step{Text: oneLine(s.Text, maxStep), Status: oneLine(s.Status, 20)}
	})
	if len(out) > 0 {
		return out
	}
	for line := range strings.Lines(e.Text) {
		if text := oneLine(line, maxStep); text != "" && len(out) < maxSteps {
			out = append(out, Step{Text: text})
		}
	}
	return out
}

// find is what is known of a call, nil for nothing; mu is held.
func (a *acts) find(call string) *known { return a.calls[core.ClipTo(call, maxCall)] }

// reserve takes an id for a call that is about to ask: that of an open one which has not
// asked is of the same call, that of one which is over may be used again.
func (a *acts) reserve(call string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.calls[call]
	switch {
	case k != nil && k.open && k.Asked:
		return core.Invalid("call_id", call, "an id that this run has not used for another open call")
	case len(a.calls) >= maxCalls:
		return core.Errorf(core.InvalidInput, "%d tool calls have no result yet", maxCalls)
	case k == nil || k.Number > 0 && !k.open:
		k = &known{}
		a.calls[call] = k
	}
	k.open, k.Asked = true, true
	return nil
}

// alias is what a call that is refused unseen goes by until it is answered: an
// id that no open call has.
func (a *acts) alias(call string) string {
	if call = core.ClipTo(call, maxCall); call == "" || !core.Printable(call) {
		call = "call"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := 2; ; n++ {
		id := fmt.Sprintf("%s#%d", call, n)
		if k := a.calls[id]; k == nil || !k.open {
			a.calls[id] = &known{open: true}
			return id
		}
	}
}

// begin adds a call, or takes it that one that is known asks now; mu is held.
func (a *acts) begin(e *Event, now time.Time, c Call) bool {
	c.CallID, c.Tool, c.Began = core.ClipTo(e.CallID, maxCall), oneLine(e.Tool, maxCall), now
	k := a.calls[c.CallID]
	if k != nil && k.Number > 0 {
		old := k.Call
		c.Number, c.Began, c.Asked, c.Title = old.Number, old.Began, c.Asked || old.Asked, cmp.Or(c.Title, old.Title)
		if !old.Ended.IsZero() { // word of it comes late
			c.State, c.Ended, c.Error = old.State, old.Ended, old.Error
		}
		k.Call = c
		a.show(c)
		return false
	}
	if k == nil {
		k = &known{}
		a.calls[c.CallID] = k
	}
	a.head.Made++
	c.Number = a.head.Made
	slot := c.Number % keptCalls
	if old := a.calls[a.order[slot]]; old != nil && a.gone(old) {
		delete(a.calls, a.order[slot])
	}
	a.order[slot] = c.CallID
	k.Call, k.open = c, true
	a.show(c)
	return true
}

// gone reports a call that is no longer shown, and of which nobody waits for more; mu is
// held.
func (a *acts) gone(k *known) bool {
	return (!k.open || !k.Asked) && (k.Number == 0 || a.head.Made-k.Number >= keptCalls)
}

// show has a call written, unless newer ones are shown in its place; mu is held.
func (a *acts) show(c Call) {
	if a.head.Made-c.Number < keptCalls {
		a.dirty[c.Number%keptCalls] = c
	}
}

// close ends the wait for a call, whose id is free again, and says what was known of it.
func (a *acts) close(call string) (was known) {
	call = core.ClipTo(call, maxCall)
	a.closes.Change(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		k := a.calls[call]
		if k == nil {
			return
		}
		was = *k
		if k.open, k.unwanted = false, nil; a.gone(k) {
			delete(a.calls, call)
		}
	})
	return was
}

// settle waits until no call is open.
func (a *acts) settle(ctx context.Context) error {
	return a.closes.Until(ctx, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, k := range a.calls {
			if k.open {
				return false
			}
		}
		return true
	})
}

// unwant remembers that a call is no longer wanted: one that is open, or that is asked
// about at this moment and was not heard of before.
func (a *acts) unwant(call, why string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.find(call)
	if k != nil && k.Number > 0 && !k.open || k == nil && len(a.calls) >= maxCalls {
		return false
	}
	if k == nil {
		k = &known{}
		a.calls[core.ClipTo(call, maxCall)] = k
	}
	k.unwanted = &why
	return true
}

// unwanted is why a call is no longer wanted, nil for one that is.
func (a *acts) unwanted(call string) *string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := a.find(call); k != nil {
		return k.unwanted
	}
	return nil
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
	c := a.find(call)
	if c == nil || c.Number == 0 || c.State == CallDenied { // what the agent says of it comes after our no
		return
	}
	c.State, c.Error = state, oneLine(reason, maxIntent)
	if state != CallRunning && state != CallAsked {
		c.Ended = now
	}
	a.show(c.Call)
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
			all = append(all, c.Call)
		}
	}
	core.Sort(all, func(x, y Call) int { return cmp.Compare(y.Number, x.Number) })
	return all
}
