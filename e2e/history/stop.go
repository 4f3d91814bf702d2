package history

// stopped is the emergency stop of a tenant: a register. While it is on no work is
// started.
type stopped bool

// step carries an operation out, and reports whether its answer fits.
func (on stopped) step(op Op, a Answer) (stopped, bool) {
	switch op.Verb {
	case StopOn:
		return true, a.Outcome != Refused
	case StopOff:
		if a.Outcome == Refused {
			return on, !bool(on)
		}
		return false, bool(on) || a.Outcome == Unknown
	case StopShow:
		return on, a.Outcome == Done && a.On == bool(on)
	case Start:
		return on, !bool(on)
	default:
		return on, false
	}
}
