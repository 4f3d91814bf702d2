package history

import "slices"

// stopped is the emergency stop of a tenant: a register. While it is on no work is
// started.
type stopped bool

// telling leaves out the starts during which something else tells that the stop was off:
// they tell no more than that, and an order of all those of a long stop takes for ever to find.
func telling(calls []Call) (rest []Call) {
	for i, start := range calls {
		told := start.Op.Verb == Start && slices.ContainsFunc(calls, func(c Call) bool {
			return c.off() && c.From >= start.From && c.To <= start.To && (c.Op.Verb != Start || c.From > start.From || c.To < start.To)
		})
		told = told || start.Op.Verb == Start && slices.ContainsFunc(calls[:i], func(c Call) bool {
			return c.Op.Verb == Start && c.From == start.From && c.To == start.To
		})
		if !told {
			rest = append(rest, start)
		}
	}
	return rest
}

// off reports whether the stop was off at some instant of a call.
func (c Call) off() bool {
	switch c.Op.Verb {
	case Start:
		return true
	case StopShow:
		return c.Answer.Outcome == Done && !c.Answer.On
	case StopOff:
		return c.Answer.Outcome != Unknown
	default:
		return false
	}
}

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
