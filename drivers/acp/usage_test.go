package acp

import (
	"strings"
	"testing"

	"swarmdeck/engine/task"
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
	} {
		var s spent
		for i, figure := range c.figures {
			if got := s.read(figure, c.seen[i]); got != c.want[i] {
				t.Errorf("%s: turn %d counts %d, want %d", name, i+1, got, c.want[i])
			}
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
	if got := a.place.recall().Spent.Cost; got != 0.5 {
		t.Errorf("%g USD are remembered", got)
	}
	s.forget()
	s.ends(task.Succeeded, "", strings.Replace(context, "%", "0.75", 1))
	var cost float64
	for _, e := range s.of("usage") {
		cost += e.CostUSD
	}
	if cost != 0.25 {
		t.Errorf("%g USD more", cost)
	}
}
