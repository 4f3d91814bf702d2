package trace

import (
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
)

// An agent that calls a tool of ours tells of the call under an id of its own, before or
// after the door asks about it. Nothing in the protocols ties the two, but the agent says
// which tool it calls, and calls are served in their order.

// doors are questions of doors about calls.
type doors struct {
	known map[string]bool // by the door's id of the call
	asked []judge.Action  // that are not tied, oldest first
}

// maxText bounds what is looked through of a call for the name of a tool.
const maxText = 16 << 10

// tells notes what the agent tells of a call that is in the record now.
func (o *run) tells(e *fleet.Event) {
	id, text := callOf(*e), core.ClipTo(e.Tool+" "+e.Text+" "+e.Intent+" "+string(e.Args), maxText)
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.doors.asked, func(a judge.Action) bool { return mentions(text, a.Tool) }); i >= 0 {
		o.rec.Tie(o.doors.asked[i].CallID, id)
		o.doors.asked = slices.Delete(o.doors.asked, i, i+1)
	} else if i := o.find(id); i >= 0 {
		o.calls[i].text = text
	}
}

// asks notes a question of a door's about a call, the first of those about it.
func (o *run) asks(a judge.Action) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := &o.doors
	if d.known[a.CallID] || len(d.known) >= maxCalls {
		return
	}
	if d.known == nil {
		d.known = map[string]bool{}
	}
	d.known[a.CallID] = true
	if i := slices.IndexFunc(o.calls, func(c call) bool { return mentions(c.text, a.Tool) }); i >= 0 {
		o.rec.Tie(a.CallID, o.calls[i].id)
		o.calls[i].text = ""
		return
	}
	d.asked = append(d.asked, a)
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
