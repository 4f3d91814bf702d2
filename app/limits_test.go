//go:build linux

package app

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestTheEnvironmentSaysWhenAnAgentIsStuck(t *testing.T) {
	for _, c := range []struct {
		after, repeats string
		want           fleet.StuckLimits
		bad            string
	}{
		{"", "", fleet.StuckLimits{}, ""},
		{"90s", "3", fleet.StuckLimits{Quiet: 90 * time.Second, Repeats: 3}, ""},
		{"off", "off", fleet.StuckLimits{Quiet: -1, Repeats: -1}, ""},
		{"10", "", fleet.StuckLimits{}, stuckAfter},
		{"-1m", "", fleet.StuckLimits{}, stuckAfter},
		{"", "1", fleet.StuckLimits{}, stuckRepeats},
		{"", "many", fleet.StuckLimits{}, stuckRepeats},
	} {
		got, err := stuckLimits(func(name string) string { return map[string]string{stuckAfter: c.after, stuckRepeats: c.repeats}[name] })
		switch {
		case c.bad == "" && (err != nil || got != c.want):
			t.Errorf("%q %q: %+v, %v", c.after, c.repeats, got, err)
		case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%q %q: %v", c.after, c.repeats, err)
		}
	}
}

func TestTheEnvironmentSaysHowManyTasksRunAtOnce(t *testing.T) {
	for _, c := range []struct {
		flag int
		env  string
		want int
		bad  bool
	}{{0, "", 0, false}, {0, "3", 3, false}, {5, "3", 5, false}, {0, "none", 0, true}, {0, "0", 0, true}, {0, "10001", 0, true}} {
		got, err := slotsFrom(c.flag, func(string) string { return c.env })
		expect.True(t, c.bad == (err != nil) && (c.bad || got == c.want) && (!c.bad || strings.Contains(err.Error(), slots)),
			"%d %q: %d, %v", c.flag, c.env, got, err)
	}
}

func TestTheEnvironmentSaysHowLongWhatARunAsksWaits(t *testing.T) {
	for _, c := range []struct {
		flag time.Duration
		env  string
		want time.Duration
		bad  bool
	}{{0, "", 0, false}, {0, "8h", 8 * time.Hour, false}, {time.Hour, "8h", time.Hour, false}, {0, "soon", 0, true}, {0, "30s", 0, true}, {0, "25h", 0, true}} {
		got, err := deadlineFrom(c.flag, func(string) string { return c.env })
		expect.True(t, c.bad == (err != nil) && (c.bad || got == c.want) && (!c.bad || strings.Contains(err.Error(), deadline) && strings.Contains(err.Error(), c.env)),
			"%s %q: %s, %v", c.flag, c.env, got, err)
	}
}
