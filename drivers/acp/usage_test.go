package acp

import (
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// TestWhatPassedToTheModelTellsWhichSumAFigureIs has agents that count a turn, and
// agents that count their session, both with a growing context.
func TestWhatPassedToTheModelTellsWhichSumAFigureIs(t *testing.T) {
	for name, c := range map[string]struct{ figures, seen, want []int64 }{
		"turns, equal":                {[]int64{120, 120, 120}, []int64{120, 120, 120}, []int64{120, 120, 120}},
		"turns, growing":              {[]int64{120, 240, 360}, []int64{120, 240, 360}, []int64{120, 240, 360}},
		"a session":                   {[]int64{120, 240, 360}, []int64{120, 120, 120}, []int64{120, 120, 120}},
		"a session, growing":          {[]int64{120, 360, 720}, []int64{120, 240, 360}, []int64{120, 240, 360}},
		"a session that began anew":   {[]int64{120, 240, 100}, []int64{120, 120, 100}, []int64{120, 120, 100}},
		"nothing seen":                {[]int64{120, 240, 360}, []int64{0, 0, 0}, []int64{120, 240, 360}},
		"a session, seen once":        {[]int64{120, 240, 360}, []int64{120, 120, 0}, []int64{120, 120, 120}},
		"turns, after what was known": {[]int64{500, 120}, []int64{0, 120}, []int64{500, 120}},
		// One without a figure was cancelled: what was seen of it is counted.
		"turns, one untold":                       {[]int64{120, 0, 120, 240}, []int64{120, 120, 120, 240}, []int64{120, 0, 120, 240}},
		"turns, one told with the next":           {[]int64{0, 240, 120}, []int64{120, 120, 120}, []int64{0, 120, 120}},
		"a session, one told with the next":       {[]int64{120, 0, 360, 480}, []int64{120, 120, 120, 120}, []int64{120, 0, 120, 120}},
		"turns, one told with the next, unseen":   {[]int64{0, 240, 120}, []int64{0, 0, 0}, []int64{0, 240, 120}},
		"turns, two told with the one after that": {[]int64{0, 0, 360}, []int64{120, 120, 120}, []int64{0, 0, 120}},
	} {
		var s spent
		for i, figure := range c.figures {
			got := s.read(figure, c.seen[i], "")
			expect.True(t, got == c.want[i], "%s: turn %d counts %d, want %d", name, i+1, got, c.want[i])
		}
	}
}

// TestASumGoesOnInAnotherProcess has an agent that tells what its session cost, killed
// and taken up.
func TestASumGoesOnInAnotherProcess(t *testing.T) {
	s, _ := newStand(t, traits{Load: true}, settings{})
	context := `raw {"sessionUpdate":"usage_update","cost":{"amount":%,"currency":"USD"}}`
	s.ends(task.Succeeded, "", "say one", strings.Replace(context, "%", "0.5", 1))
	s.ends(task.Failed, "agent_killed", "crash")
	a := s.handle.(*agent)
	expect.Is(t, a.place.recall().Spent.Cost, 0.5, "USD are remembered")
	s.forget()
	s.ends(task.Succeeded, "", strings.Replace(context, "%", "0.75", 1))
	var cost float64
	for _, e := range s.of("usage") {
		cost += e.CostUSD
	}
	expect.Is(t, cost, 0.25)
}

// TestAContextCountsWithinItsTurn has a budget see what is spent before the turn ends,
// and the figure of its end add only what is beyond it.
func TestAContextCountsWithinItsTurn(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	used := `raw {"sessionUpdate":"usage_update","used":%,"size":1000}`
	for _, n := range []string{"100", "100", "150"} {
		s.ends(task.Succeeded, "", strings.Replace(used, "%", n, 1), "tokens 400")
	}
	var sum []int64
	for _, e := range s.of("usage") {
		if e.Tokens > 0 {
			sum = append(sum, e.Tokens)
		}
		expect.True(t, e.Context.Used <= 0 || e.Context.Size == 1000, "%+v", e.Context)
	}
	expect.True(t, slices.Equal(sum, []int64{100, 300, 100, 300, 150, 250}), "%v", sum)
}

func TestTheSettingSaysWhichSumAFigureIs(t *testing.T) {
	for setting, want := range map[string]int64{"turn": 360, "session": 240} {
		s, _ := newStand(t, traits{}, settings{Usage: setting})
		s.ends(task.Succeeded, "", "tokens 120")
		s.ends(task.Succeeded, "", "tokens 240")
		var sum int64
		for _, e := range s.of("usage") {
			sum += e.Tokens
		}
		expect.Is(t, sum, want, setting)
	}
}

func TestAFigureIsSplit(t *testing.T) {
	for _, c := range []struct {
		given reported
		want  fleet.Split
	}{
		{reported{Total: 120, Input: 100, Output: 20, Read: 80}, fleet.Split{Input: 100, Output: 20, Cached: 80}}, // within the input
		{reported{Total: 200, Input: 100, Output: 20, Read: 80}, fleet.Split{Input: 180, Output: 20, Cached: 80}}, // beside it
		{reported{Total: -1}, fleet.Split{}},
	} {
		expect.Is(t, c.given.split(), c.want, c.given, "is")
	}
}
