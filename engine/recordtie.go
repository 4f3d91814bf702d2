package engine

import (
	"slices"
	"strings"
	"sync"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
)

// An agent that calls a tool of ours tells of the call under an id of its own, before or
// after the door asks about it. Nothing in the protocols ties the two, but the agent says
// which tool it calls, and calls are served in their order.

// ties finds which call of an agent a door asks about.
type ties struct {
	run *dag.Recording

	mu      sync.Mutex
	calls   []tellable     // of the agent, that are not tied, oldest first
	waiting []judge.Action // of doors, that are not tied, oldest first
	known   map[string]bool
}

// tellable is a call as its agent tells of it.
type tellable struct{ id, text string }

// Bounds of what is remembered.
const (
	maxTies    = 1000
	maxTieText = 16 << 10
)

// tells notes a call of the agent's that is in the record now.
func (t *ties) tells(e *fleet.Event) {
	c := tellable{callOf(*e), core.ClipTo(e.Tool+" "+e.Text+" "+e.Intent+" "+string(e.Args), maxTieText)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.waiting, func(a judge.Action) bool { return mentions(c.text, a.Tool) }); i >= 0 {
		t.run.Tie(t.waiting[i].CallID, c.id)
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return
	}
	if len(t.calls) < maxTies && !slices.ContainsFunc(t.calls, func(o tellable) bool { return o.id == c.id }) {
		t.calls = append(t.calls, c)
	}
}

// ends forgets a call that is over.
func (t *ties) ends(call string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = slices.DeleteFunc(t.calls, func(c tellable) bool { return c.id == call })
}

// asks notes a question of a door's about a call, the first of those about it.
func (t *ties) asks(a judge.Action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[a.CallID] || len(t.known) >= maxTies {
		return
	}
	if t.known == nil {
		t.known = map[string]bool{}
	}
	t.known[a.CallID] = true
	if i := slices.IndexFunc(t.calls, func(c tellable) bool { return mentions(c.text, a.Tool) }); i >= 0 {
		t.run.Tie(a.CallID, t.calls[i].id)
		t.calls = slices.Delete(t.calls, i, i+1)
		return
	}
	t.waiting = append(t.waiting, a)
}

// mentions reports whether a text names a tool, which agents put the server's name before.
func mentions(text, tool string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, tool)
		if !found {
			return false
		}
		if after == "" || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", rune(after[0])) {
			return true
		}
		rest = after
	}
}
