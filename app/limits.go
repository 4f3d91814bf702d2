//go:build linux

package app

import (
	"strconv"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

// What the environment sets beside the flags. "off" switches a thing off.
const (
	stuckAfter   = "SWARMDECK_STUCK_AFTER"   // time without an event from which on a busy agent counts as stuck: 10m
	stuckRepeats = "SWARMDECK_STUCK_REPEATS" // equal calls or messages in a row from which on it does: 5
	slots        = "SWARMDECK_SLOTS"         // tasks without an agent that run at once: 8
	deadline     = "SWARMDECK_DEADLINE"      // how long what a run asks waits for an answer: by its risk
	off          = "off"
)

// slotsFrom is how many tasks run at once, as the flag or the environment has it;
// 0 leaves it to the engine.
func slotsFrom(flag int, getenv func(string) string) (n int, err error) {
	text := getenv(slots)
	if flag > 0 || text == "" {
		return flag, nil
	}
	if n, err = strconv.Atoi(text); err != nil {
		return 0, core.Invalid(slots, text, "a number, 1-"+strconv.Itoa(swarm.MaxSlots))
	}
	return n, swarm.CheckSlots(slots, n)
}

// deadlineFrom is how long what a run asks waits, as the flag or the environment has it; 0 is
// by its risk.
func deadlineFrom(flag time.Duration, getenv func(string) string) (time.Duration, error) {
	text := getenv(deadline)
	if flag > 0 || text == "" {
		return flag, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, core.Invalid(deadline, text, judge.DeadlineAllowed)
	}
	return d, judge.CheckDeadline(deadline, d)
}

// stuckLimits are the fleet's, as the environment has them.
func stuckLimits(getenv func(string) string) (l fleet.StuckLimits, err error) {
	switch s := getenv(stuckAfter); s {
	case "":
	case off:
		l.Quiet = -1
	default:
		if l.Quiet, err = time.ParseDuration(s); err != nil || l.Quiet < time.Second {
			return l, core.Invalid(stuckAfter, s, "a time from 1s on, such as 10m, or off")
		}
	}
	switch s := getenv(stuckRepeats); s {
	case "":
	case off:
		l.Repeats = -1
	default:
		if l.Repeats, err = strconv.Atoi(s); err != nil || l.Repeats < 2 {
			return l, core.Invalid(stuckRepeats, s, "a number from 2 on, or off")
		}
	}
	return l, nil
}
