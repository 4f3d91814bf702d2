package dag

// A call of a tool of ours has two ids: the one under which its agent tells of it, and the
// one under which the door that it came to had it judged. The record has one call, which
// the decisions are about.

// loose is a decision about a call that the record does not have yet.
type loose struct {
	event   string
	message NodeRef
}

// maxTied bounds the ids of a run that stand for other calls, and what waits for some.
const maxTied = 1000

// Tie has decisions about one call, by its id, be about another: those to come, and those
// that were told before the other was.
func (r *Recording) Tie(call, to string) {
	call, to = fit(call), fit(to)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tied) >= maxTied || call == to {
		return
	}
	if r.tied == nil {
		r.tied = map[string]string{}
	}
	r.tied[call] = to
	early := r.early[call]
	delete(r.early, call)
	if c, open := r.calls[to]; open && len(early) > 0 {
		c.decided, c.early = early[len(early)-1].event, append(c.early, early...)
		r.calls[to] = c
	}
}

// told says that a decision is in the record, which a call's result follows.
func (r *Recording) told(call, event string, message NodeRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, open := r.calls[call]; open {
		c.decided = event
		r.calls[call] = c
		return
	}
	if r.early == nil {
		r.early = map[string][]loose{}
	}
	if r.ended[call] == "" && len(r.early) < maxTied {
		r.early[call] = append(r.early[call], loose{event, message})
	}
}
