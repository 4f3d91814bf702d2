package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/ui"
)

// What the environment sets beside the flags. "off" switches a thing off.
const (
	stuckAfter   = "SWARMDECK_STUCK_AFTER"   // time without an event from which on a busy agent counts as stuck: 10m
	stuckRepeats = "SWARMDECK_STUCK_REPEATS" // equal calls or messages in a row from which on it does: 5
	notify       = "SWARMDECK_NOTIFY"        // how a terminal out of focus is told: bell, osc9, osc777, off
)

const off = "off"

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

// notice is how the cockpit tells somebody who looks elsewhere.
func notice(getenv func(string) string) (ui.Notice, error) {
	switch n := ui.Notice(getenv(notify)); n {
	case "":
		return ui.NoticeBell, nil
	case ui.NoticeBell, ui.NoticeOSC9, ui.NoticeOSC777, ui.NoticeOff:
		return n, nil
	default:
		return "", core.Invalid(notify, string(n), "bell, osc9, osc777 or off")
	}
}

// pager shows a text the way the operator reads long texts: $PAGER through the
// shell, as other programs do, or less.
func pager(getenv func(string) string) func(text string) *exec.Cmd {
	return func(text string) *exec.Cmd {
		program := getenv("PAGER")
		if strings.TrimSpace(program) == "" {
			program = "less"
		}
		cmd := exec.Command("sh", "-c", program)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), os.Stdout, os.Stderr
		return cmd
	}
}
