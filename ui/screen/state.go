package screen

import "strings"

// State is what something is doing, as far as its sign and role go. Colour
// never stands alone: draw the glyph and the word.
type State uint8

// The states.
const (
	Unknown State = iota
	Idle
	Working
	Queued
	Waiting // for a person
	Paused
	Blocked
	Succeeded
	Failure
	Cancelled
	Offline
	TimedOut
	Stopped
	States // how many there are
)

// states are the states that the engine's words stand for.
var states = func() map[string]State {
	of := map[string]State{}
	for state, words := range map[State]string{
		Idle:      "idle created ready healthy",
		Working:   "running busy starting working",
		Queued:    "queued claimed pending scheduled",
		Waiting:   "open waiting awaiting_approval hitl deferred escalated attention",
		Paused:    "paused pausing stopping",
		Blocked:   "blocked",
		Succeeded: "succeeded approved approve allow ok done completed success read answered",
		Failure:   "failed denied deny error abort refused",
		Cancelled: "cancelled void",
		Offline:   "offline stale interrupted",
		TimedOut:  "timed_out timeout expired",
		Stopped:   "stopped",
	} {
		for word := range strings.FieldsSeq(words) {
			of[word] = state
		}
	}
	of["waiting for you"], of["needs you"] = Waiting, Waiting
	return of
}()

// StateOf reads a status word of the engine, such as "running" or
// "timed_out"; an unfamiliar word is Unknown.
func StateOf(word string) State { return states[word] }

// roles are how states are coloured; what is not in it is Text.
var roles = map[State]Role{
	Succeeded: Good, Working: Busy, Waiting: Warn, Paused: Warn, Blocked: Warn, TimedOut: Warn,
	Failure: Bad, Offline: Bad, Stopped: Danger, Cancelled: Dim, Queued: Dim, Unknown: Dim,
}

// Role is how the state is coloured.
func (s State) Role() Role { return roles[s] }

// Glyph is the state's sign in a glyph set.
func (s State) Glyph(g *Glyphs) string {
	if s >= States {
		s = Unknown
	}
	return string(g.State[s])
}

// Step is how many lines a named action moves, down from 0, where so many are a page;
// ok is false for an action that is no step.
func Step(action string, page int) (lines int, ok bool) {
	page = max(page, 1)
	half := max(page/2, 1)
	lines, ok = map[string]int{"up": -1, "down": 1, "half-up": -half, "half-down": half, "page-up": -page, "page-down": page}[action]
	return lines, ok
}

// Window is the first of n rows to show in h lines so that row at is in sight
// and as little as possible moves.
func Window(top, at, h, n int) int {
	if at < top {
		top = at
	}
	if h > 0 && at >= top+h {
		top = at - h + 1
	}
	return max(0, min(top, n-h))
}
