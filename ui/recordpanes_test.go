package ui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen/screentest"
)

// newRecord is a world in which scribe's run is recorded.
func newRecord(t testing.TB) *fakeWorld {
	a := newArchive(t, nil)
	a.story()
	return a.world()
}

// TestTheRecordLooksRight draws the panes of the record at both sizes that must
// be complete, and at one that shows more at once.
func TestTheRecordLooksRight(t *testing.T) {
	views := []struct {
		name string
		keys string
	}{
		{"timeline", "1 j j H"},
		{"timeline-top", "1 j j H g j j"},
		{"timeline-past", "1 j j H g j j j j j j j j j t"},
		{"timeline-state", "1 j j H g j j j j j j j j j t l ctrl+d"},
		{"timeline-empty", "1 H"},
		{"record", "1 j j H g j j j j j j j j enter"},
		{"record-message", "1 j j H g j j enter"},
		{"lineage", "1 j j H g j j j j j v"},
		{"lineage-on", "1 j j H g j j j j j v l"},
		{"lineage-agent", "1 j j enter v"},
	}
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for _, v := range views {
			name := fmt.Sprintf("%s-%dx%d", v.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				r := rigOn(t, newRecord(t), size[0], size[1], Options{})
				r.keys(strings.Fields(v.keys)...)
				r.wait(deadTime)
				r.golden(name)
			})
		}
	}
}

func TestTheRecordWithoutUTF8IsASCII(t *testing.T) {
	for _, keys := range []string{"1 j j H", "1 j j H t", "1 j j H enter", "1 j j H g j j j j v", "P"} {
		for _, w := range []int{80, 160} {
			r := rigOn(t, newRecord(t), w, 40, Options{ASCII: true})
			r.keys(strings.Fields(keys)...)
			screentest.ASCII(t, r.m.Frame())
		}
	}
}

// newPolicies is a world with a policy that rules, one of an agent that fails
// its case, one without cases, one withdrawn, and decisions to hold them
// against.
func newPolicies(t testing.TB) *fakeWorld {
	a := newArchive(t, unjailed{})
	first := a.propose(ada, "mild", 2, 0)
	_, err := a.eng.Judge.Activate(t.Context(), ada, first.PolicyID)
	a.no(err)
	old := a.propose(ada, "older", 1, 0)
	_, err = a.eng.Judge.Withdraw(t.Context(), ada, old.PolicyID)
	a.no(err)
	robot := core.Caller{Tenant: tenant, Name: "scribe", Kind: core.Agent, Door: core.DoorEngine}
	failing := a.propose(robot, "suggested", 2, 1)
	_, _, err = a.eng.Judge.TestPolicy(t.Context(), ada, failing.PolicyID)
	a.no(err)
	_, err = a.eng.Judge.Propose(t.Context(), robot, judge.Proposal{Kind: judge.KindProgram, Name: "program", Source: []byte("#!/bin/sh\necho '{}'\n"), Gates: []judge.Gate{judge.GateTool}})
	a.no(err)
	w := a.world()
	w.RecordWorld = backtested{w.RecordWorld}
	return w
}

// unjailed runs no program and has no jail.
type unjailed struct{}

func (unjailed) Decide(context.Context, *judge.Program, []byte) judge.Reply {
	return judge.FaultReply(judge.ReasonError, "nothing runs here")
}

func (unjailed) Release(*judge.Program) {}

func (unjailed) Jailed(context.Context) (bool, string) {
	return false, "user namespaces are switched off"
}

// backtested has a past that some policy would have decided otherwise.
type backtested struct{ pane.RecordWorld }

func (b backtested) Backtest(_ context.Context, _ core.Caller, of string, last int) (judge.BacktestReport, error) {
	return judge.BacktestReport{PolicyID: of, Last: last, Checked: 940, Unknown: 60, Flips: 43, Groups: []judge.Flip{
		{From: "hitl", To: "approve", Gate: judge.GateTool, Tool: "fs.write", RuleID: "writes", Reason: "mild.write", Count: 41, Examples: []string{id("gd", 6), id("gd", 5)}},
		{From: "approve", To: "deny", Gate: judge.GateStart, Tool: "exec.run", Reason: "mild.no", Count: 2, Examples: []string{id("gd", 1)}},
	}}, nil
}

func TestPoliciesLookRight(t *testing.T) {
	views := []struct {
		name string
		keys string
	}{
		{"policies", "P"},
		{"policy", "P G k enter"},
		{"policy-agent", "P j enter"},
		{"policy-cases", "P j enter c"},
		{"policy-backtest", "P j enter b"},
		{"policy-program", "P enter"},
		{"policy-embedded", "P G enter"},
		{"policy-activate", "P a"},
	}
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for _, v := range views {
			name := fmt.Sprintf("%s-%dx%d", v.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				r := rigOn(t, newPolicies(t), size[0], size[1], Options{})
				r.keys(strings.Fields(v.keys)...)
				r.wait(deadTime)
				r.golden(name)
			})
		}
	}
}
