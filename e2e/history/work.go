package history

import "cmp"

// work is a task with its approval, as far as the answers before tell. What the
// engine does by itself (claim, requeue after a crash, end) has no answer: it
// shows in what is read next.
type work struct {
	task     string // "" not there, maybe one whose id nobody was told
	over     string // its terminal status
	stopping bool   // it is being cancelled
	approval string
	verdict  string // of the approval; "" is that it is open
	run      string // the last that began
	ended    bool   // that run came to its end
}

// maybe is the id of a task that nobody was told.
const maybe = "?"

// step carries an operation out, and reports whether its answer fits.
func (w work) step(op Op, a Answer) (work, bool) {
	switch op.Verb {
	case Begin:
		ok := w.task != "" && w.over == "" && w.released(op)
		w.run, w.ended = op.ID, false
		return w, ok
	case Work: // a run that another took the place of does nothing any more
		return w, w.over == "" && w.run == op.ID && !w.ended
	case End:
		ok := w.over == "" && w.run == op.ID && !w.ended
		w.ended = true
		return w, ok
	case Dispatch:
		return w.dispatched(op, a)
	case Show:
		if a.Outcome != Done {
			return w, a.Outcome == Refused && w.task == ""
		}
		return w.known(op, a)
	case Cancel:
		return w.cancelled(op, a)
	case ShowApproval:
		next, ok := w.asked(op)
		if !ok || a.Outcome != Done {
			return w, false
		}
		return next.stands(op, a)
	case Approve, Deny:
		return w.answered(op, a)
	default:
		return w, false
	}
}

func (w work) dispatched(op Op, a Answer) (work, bool) {
	if w.task == "" {
		w.task = maybe
	}
	if a.Outcome != Done {
		return w, a.Outcome == Unknown
	}
	return w.known(op, a)
}

// known fits what was read of a task to what is known of it.
func (w work) known(op Op, a Answer) (work, bool) {
	if w.task == maybe {
		w.task = a.Task
	}
	if w.task == "" || w.task != a.Task {
		return w, false
	}
	if op.Asks && a.Approval != "" {
		op.ID = a.Approval
		next, ok := w.asked(op)
		if !ok {
			return w, false
		}
		w = next
	}
	return w.is(op, a)
}

// is fits a status that was read.
func (w work) is(op Op, a Answer) (work, bool) {
	if w.over != "" {
		return w, a.Status == w.over
	}
	switch a.Status {
	case "queued": // one that runs is queued again when its engine died
		return w, !w.stopping
	case "running":
		return w, w.stopping == a.Stopping && w.released(op)
	case "succeeded", "failed":
		w.over = a.Status
		return w, !w.stopping && w.ended && w.released(op) && op.Fails == (a.Status == "failed")
	case "cancelled":
		w.over = a.Status
		return w, w.stopping
	case "blocked": // a denial is a step of its own; a deadline has none
		ok := w.open(op)
		w.over, w.verdict = a.Status, "expired"
		return w, ok
	default:
		return w, false
	}
}

func (w work) cancelled(op Op, a Answer) (work, bool) {
	switch {
	case a.Outcome == Refused && a.Stopping:
		return w, w.over == "" && w.stopping
	case a.Outcome == Refused:
		next, ok := w.is(op, a)
		return next, ok && w.task != "" && next.over != ""
	case a.Outcome == Unknown && (w.over != "" || w.task == ""):
		return w, true
	}
	ok := a.Outcome == Unknown || w.task == a.Task && w.over == "" && !w.stopping
	if w.stopping = true; w.verdict == "" {
		w.verdict = "void"
	}
	switch {
	case a.Outcome == Unknown:
	case a.Status == "cancelled":
		w.over = a.Status
	default:
		ok = ok && a.Status == "running" && a.Stopping && w.released(op)
	}
	return w, ok
}

// asked fits the approval that an operation names: the first, or one that was asked
// anew when an approved run was cut off. A cancellation since then made it void.
func (w work) asked(op Op) (work, bool) {
	if !op.Asks || w.task == "" {
		return w, false
	}
	switch {
	case w.approval == "":
		w.approval = op.ID
	case w.approval == op.ID || w.verdict != "approved":
	case w.over == "" && !w.stopping:
		w.approval, w.verdict = op.ID, ""
	case w.stopping:
		w.approval, w.verdict = op.ID, "void"
	}
	return w, w.approval == op.ID
}

func (w work) answered(op Op, a Answer) (work, bool) {
	next, ok := w.asked(op)
	if a.Outcome == Refused {
		next, fits := next.stands(op, a)
		return next, ok && fits && a.Verdict != "open"
	}
	if !ok || !next.open(op) {
		return w, a.Outcome == Unknown
	}
	next.verdict = "approved"
	if op.Verb == Deny {
		next.verdict, next.over = "denied", "blocked"
	}
	return next, a.Outcome == Unknown || a.Verdict == next.verdict
}

// stands fits how an approval was read to stand.
func (w work) stands(op Op, a Answer) (work, bool) {
	if a.Verdict == "expired" && w.open(op) {
		w.over, w.verdict = "blocked", a.Verdict
	}
	return w, a.Verdict == cmp.Or(w.verdict, "open")
}

// open reports whether the approval may still be answered.
func (w work) open(op Op) bool { return op.Asks && w.over == "" && !w.stopping && w.verdict == "" }

// released reports whether the task may go on.
func (w work) released(op Op) bool { return !op.Asks || w.verdict == "approved" }
