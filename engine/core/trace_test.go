package core_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestATraceparentIsReadAsItIsWritten(t *testing.T) {
	trace, span := core.NewTrace(nil), core.SpanID("t_a", "run", "tk_1", 0)
	gotTrace, gotSpan, ok := core.ParseTraceparent(core.Traceparent(trace, span))
	expect.True(t, ok && gotTrace == trace && gotSpan == span, "%s %s %v", gotTrace, gotSpan, ok)
	for header, want := range map[string]bool{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":                              true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later":                        true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more":                         false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":                              false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":                              false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":                              false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":                              false,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-" + strings.Repeat("x", 1000): false,
		"": false,
	} {
		_, _, ok := core.ParseTraceparent(header)
		expect.True(t, ok == want, "%.60s: %v", header, ok)
	}
}

func TestASpanFollowsFromWhatItIsAbout(t *testing.T) {
	seen := map[string]string{}
	for _, of := range [][]string{{"t_a", "run", "x"}, {"t_b", "run", "x"}, {"t_a", "task", "x"}, {"t_a", "run", "y"}, {"t_a", "ru", "nx"}} {
		for n := range 3 {
			id := core.SpanID(of[0], of[1], of[2], n)
			before, twice := seen[id]
			expect.True(t, !twice && len(id) == 16 && id == core.SpanID(of[0], of[1], of[2], n), "%v %d: %s, as %s", of, n, id, before)
			seen[id] = strings.Join(of, " ")
		}
	}
}
