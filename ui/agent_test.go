package ui

import (
	"strings"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// openScribe opens the sheet of the agent that does the most.
func openScribe(r *rig) {
	r.change(func() {
		a := *r.w.agents[2]
		a.Usage.Tokens, a.Usage.CostUSD, a.Usage.Tasks = 123_456, 1.5, 3
		r.w.agents[2] = &a
	})
	r.keys("1", "g", "enter") // it waits for somebody, so it is first
}

func TestTheAgentSheetLooksRight(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 60}} {
		r := newRig(t, size[0], size[1])
		openScribe(r)
		if size[0] == 160 {
			r.keys("G")
		}
		r.golden("agent-busy-" + map[int]string{80: "80x24", 120: "120x40", 160: "160x60"}[size[0]])
	}
}

func TestACallChangesItsLine(t *testing.T) {
	r := newRig(t, 160, 60)
	openScribe(r)
	r.has("asked 2m")
	r.change(func() {
		r.w.acts = map[string]fleet.Activity{"scribe": {TaskID: id("tk", 4), Made: 1, Calls: []fleet.Call{
			{CallID: "c4", Tool: "edit", Title: "write NOTES.md", Asked: true, State: fleet.CallDone, Began: start, Ended: start, Number: 1},
		}}}
		r.w.approvals = []*judge.Approval{}
	})
	r.has("edit  write NOTES.md")
	r.has("tool calls (1)")
	expect.True(t, !strings.Contains(strings.Join(r.m.Frame().Plain(), "\n"), "docs/index.md"), "the diffs of before are still there")
}
