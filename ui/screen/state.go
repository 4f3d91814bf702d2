package screen

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

// StateOf reads a status word of the engine, such as "running" or
// "timed_out"; an unfamiliar word is Unknown.
func StateOf(word string) State {
	switch word {
	case "idle", "created", "ready", "healthy":
		return Idle
	case "running", "busy", "starting", "working":
		return Working
	case "queued", "claimed", "pending", "scheduled":
		return Queued
	case "open", "waiting", "waiting for you", "needs you", "awaiting_approval", "hitl", "deferred", "escalated", "attention":
		return Waiting
	case "paused", "pausing", "stopping":
		return Paused
	case "blocked":
		return Blocked
	case "succeeded", "approved", "approve", "allow", "ok", "done", "completed", "success", "read", "answered":
		return Succeeded
	case "failed", "denied", "deny", "error", "abort", "refused":
		return Failure
	case "cancelled", "void":
		return Cancelled
	case "offline", "stale", "interrupted":
		return Offline
	case "timed_out", "timeout", "expired":
		return TimedOut
	case "stopped":
		return Stopped
	}
	return Unknown
}

// Role is how the state is coloured.
func (s State) Role() Role {
	switch s {
	case Succeeded:
		return Good
	case Working:
		return Busy
	case Waiting, Paused, Blocked, TimedOut:
		return Warn
	case Failure, Offline:
		return Bad
	case Stopped:
		return Danger
	case Cancelled, Queued, Unknown:
		return Dim
	}
	return Text
}

// Glyph is the state's sign in a glyph set.
func (s State) Glyph(g *Glyphs) string {
	if s >= States {
		s = Unknown
	}
	return string(g.State[s])
}

// Label is the sign and the word, such as "● running".
func (g *Glyphs) Label(word string) string { return StateOf(word).Glyph(g) + " " + word }
