package engine

import (
	"swarmdeck/engine/egress"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
)

// workOf is what a connection of an agent's process may be part of.
func (e *Engine) workOf(tenant, agent string) (egress.Work, bool) {
	if e.Fleet == nil { // it is opened later
		return egress.Work{}, false
	}
	now, ok := e.Fleet.Now(tenant, agent)
	w := egress.Work{Project: now.Agent.Project, Runtime: now.Agent.Runtime, Task: now.TaskID}
	switch now.Agent.Status {
	case fleet.Starting, fleet.Offline, fleet.Failed:
		w.Unready = true
	case fleet.Busy: // its program may start for its task
		w.Unready = now.Starts
	case fleet.Idle: // one without a login takes tasks, and says what is wrong
		w.Unready = now.Agent.Reason != ""
	}
	for _, c := range now.Calls {
		w.Calls = append(w.Calls, judge.During{CallID: c.CallID, Tool: c.Tool, Title: c.Title})
	}
	return w, ok
}
