package ui

import (
	"testing"

	"swarmdeck/engine/fleet"
)

func TestThePageOfAnAgentTellsItsModesAndModels(t *testing.T) {
	for name, size := range map[string][2]int{"80x24": {80, 24}, "200x50": {200, 50}} {
		r := newRig(t, size[0], size[1])
		openScribe(r)
		r.change(func() {
			a := *r.w.agents[2]
			a.Offers = &fleet.Offers{
				Mode: "ask", Modes: []fleet.Choice{{ID: "ask", Name: "Always ask"}, {ID: "plan"}, {ID: "auto", Name: "Accept \x1b[31medits"}},
				Model: "large", Models: []fleet.Choice{{ID: "small"}, {ID: "large", Name: "Large 2"}},
			}
			r.w.agents[2] = &a
		})
		r.keys("G")
		r.has("of small, large (Large 2)")
		r.golden("agent-offers-" + name)
	}
}
