package engine

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// approvals lists a tenant's open approvals in order. last is the former list:
// most of it is as it was, in its order.
func (w *world) approvals(tenant string, last []*judge.Approval) []*judge.Approval {
	next := merged(w.e.Judge.Live(tenant), last)
	core.Sort(next, judge.MoreUrgent)
	return next
}

// merged has those that last had first, in its order.
func merged(open map[string]*judge.Approval, last []*judge.Approval) []*judge.Approval {
	next := make([]*judge.Approval, 0, len(open))
	for _, was := range last {
		if ask := open[was.ApprovalID]; ask != nil {
			next = append(next, ask)
		}
	}
	if len(next) == len(open) {
		return next
	}
	known := make(map[string]bool, len(next))
	for _, ask := range next {
		known[ask.ApprovalID] = true
	}
	for id, ask := range open {
		if !known[id] {
			next = append(next, ask)
		}
	}
	return next
}
