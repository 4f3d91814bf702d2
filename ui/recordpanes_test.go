package ui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
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
	views(t, [][2]int{{80, 24}, {200, 50}}, func(t testing.TB, w, h int) *rig { return rigOn(t, newRecord(t), w, h, Options{}) }, [][2]string{
		{"timeline", "1 g H"},
		{"timeline-top", "1 g H g j j"},
		{"timeline-past", "1 g H g j j j j j j j j j t"},
		{"timeline-state", "1 g H g j j j j j j j j j t l ctrl+d"},
		{"timeline-empty", "1 H"},
		{"record", "1 g H g j j j j j j j j enter"},
		{"record-message", "1 g H g j j enter"},
		{"lineage", "1 g H g j j j j j v"},
		{"lineage-on", "1 g H g j j j j j v l"},
		{"lineage-agent", "1 g enter v"},
	})
}

// TestWhatTwoDidIsComparedOnOnePage reaches it by a line, and by marks and a key.
func TestWhatTwoDidIsComparedOnOnePage(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for name, words := range map[string]string{"compare": "agent:scribe agent:scribe-2", "compare-none": "agent:scribe agent:nosuch"} {
			name = fmt.Sprintf("%s-%dx%d", name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				a := newArchive(t, nil)
				a.story()
				x := dag.NewTranscript("r-2", dag.RunInfo{AgentID: "scribe-2"}, a.at)
				x.Called("exec", "fs.write", "c-1", core.Raw(`{"path":"notes/NOTES.md","text":"3 files"}`))
				x.Returned("c-1", dag.CallOK, core.Raw(`{"wrote":"notes/NOTES.md"}`), nil)
				x.At(a.at.Add(time.Second))
				x.Called("exec", "exec.run", "c-2", core.Raw(`{"argv":["make","clean"]}`))
				x.Returned("c-2", dag.CallOK, core.Raw(`{"rc":0}`), nil)
				x.Said(dag.Spoken{Role: dag.RoleAssistant, Content: []dag.ContentPart{text("Done: 3 files changed.")}})
				events := expect.Of(x.Finish(true))(a.t)
				expect.Of(a.eng.DAG.Emit(t.Context(), ada, events...))(a.t)
				r := rigOn(t, a.world(), size[0], size[1], Options{})
				r.keys(":")
				r.typeText("open compare " + words)
				r.keys("enter")
				r.wait(deadTime)
				r.golden(name)
			})
		}
	}
	r := rigOn(t, newRecord(t), 80, 24, Options{})
	r.keys("1", "=")
	r.has("mark two")
	r.keys("j", "j", "space", "k", "=")
	r.wait(deadTime)
	r.has("compare ")
}

func TestTheRecordWithoutUTF8IsASCII(t *testing.T) {
	for _, keys := range []string{"1 g H", "1 g H t", "1 g H enter", "1 g H g j j j j v", "P"} {
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
	expect.Of(a.eng.Judge.Withdraw(t.Context(), ada, old.PolicyID))(a.t)
	robot := core.Caller{Tenant: tenant, Name: "scribe", Kind: core.Agent, Door: core.DoorEngine}
	failing := a.propose(robot, "suggested", 2, 1)
	_, _, err = a.eng.Judge.TestPolicy(t.Context(), ada, failing.PolicyID)
	a.no(err)
	_, err = a.eng.Judge.Propose(t.Context(), robot, judge.Proposal{Kind: judge.KindProgram, Name: "program", Source: []byte("#!/bin/sh\necho '{}'\n"), Gates: []judge.Gate{judge.GateTool}})
	a.no(err)
	w := a.world()
	w.rec.rulings = backtested{w.rec.rulings}
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
type backtested struct{ rulings }

func (b backtested) TryBacktest(_ context.Context, _ core.Caller, of string, last int) (judge.BacktestReport, error) {
	return judge.BacktestReport{PolicyID: of, Last: last, Checked: 940, Unknown: 60, Flips: 43, Groups: []judge.Flip{
		{From: "hitl", To: "approve", Gate: judge.GateTool, Tool: "fs.write", RuleID: "writes", Reason: "mild.write", Count: 41, Examples: []string{id("gd", 6), id("gd", 5)}},
		{From: "approve", To: "deny", Gate: judge.GateStart, Tool: "exec.run", Reason: "mild.no", Count: 2, Examples: []string{id("gd", 1)}},
	}}, nil
}

func TestPoliciesLookRight(t *testing.T) {
	views(t, [][2]int{{80, 24}, {200, 50}}, func(t testing.TB, w, h int) *rig { return rigOn(t, newPolicies(t), w, h, Options{}) }, [][2]string{
		{"policies", "P"},
		{"policy", "P G k enter"},
		{"policy-agent", "P j enter"},
		{"policy-cases", "P j enter c"},
		{"policy-backtest", "P j enter b"},
		{"policy-program", "P enter"},
		{"policy-embedded", "P G enter"},
		{"policy-activate", "P a"},
	})
}

// forkable is an agent with a directory, a process and something unknown.
type forkable struct{}

func (f forkable) Plan(_ context.Context, _ string, q resource.ForkRequest) (resource.Proposal, error) {
	why := map[dag.Plan]string{dag.PlanSnapshot: "it has not the capability snapshot"}
	return resource.Proposal{
		AgentID: q.AgentID, Name: q.AgentID + "-2", FromBranch: "main", ToBranch: q.AgentID + "-2", AtEvent: q.At, Kind: dag.KindToolCall, Task: resource.GoOn,
		Parts: []resource.Part{
			{
				Resource: dag.Resource{ID: "dir-work", Kind: dag.ResourceFile, Name: "/work"}, Choice: resource.Choice{Mode: dag.PlanSnapshot},
				Allowed: []dag.Plan{dag.PlanKeep, dag.PlanSnapshot, dag.PlanDiscard}, Note: "a copy as of 11:58:03",
			},
			{
				Resource: dag.Resource{ID: "process-7", Kind: dag.ResourceURI, Name: "its server"}, Choice: resource.Choice{Mode: dag.PlanKeep, KeptBy: "main"},
				Allowed: []dag.Plan{dag.PlanKeep, dag.PlanDiscard}, Why: why,
			},
		},
	}, nil
}

func newForkable(t testing.TB) *fakeWorld {
	w := newRecord(t)
	w.rec.Forks = forkable{}
	return w
}

func TestAForkIsPlannedByResource(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		r := rigOn(t, newForkable(t), size[0], size[1], Options{})
		r.keys(strings.Fields("1 g H g j j j j j F")...)
		r.wait(deadTime)
		r.golden(fmt.Sprintf("fork-%dx%d", size[0], size[1]))
		// The name stays, the branch changes, the call has other arguments, the
		// process goes to the fork.
		r.keys("tab")
		r.wait(deadTime)
		r.typeText("x")
		r.keys("tab", "tab")
		r.typeText(`{"args":{}}`)
		r.keys("tab", "tab", "right", "enter")
		r.wait(deadTime)
		if len(r.ran) != 1 || !strings.HasPrefix(r.ran[0], "dag fork scribe --at=") || !strings.Contains(r.ran[0], " --name=scribe-2 --to=scribe-2x --task="+resource.GoOn+` --edit={"args":{}} --plan=`) ||
			!strings.Contains(r.ran[0], `[{"resource":"dir-work","mode":"snapshot"},{"resource":"process-7","mode":"keep","kept_by":"scribe-2x"}]`) {
			t.Errorf("ran %q\n%s", r.ran, r.text())
		}
	}
}

func TestARunThatGoesOnGrowsWithoutMovingTheCursor(t *testing.T) {
	a := newArchive(t, nil)
	a.story()
	w := a.world()
	r := rigOn(t, w, 80, 24, Options{})
	r.keys("1", "g", "H", "g", "j", "j", "j", "j", "j")
	at := func() string {
		for _, row := range r.m.Frame().Plain() {
			if strings.HasPrefix(row, "│▸") {
				return row
			}
		}
		return ""
	}
	before, frame := at(), r.text()
	for i := range 3 {
		r.change(func() { a.say(time.Second, "r-2", "main", fmt.Sprint("more-", i), dag.RoleUser, text("go on")) })
	}
	if r.text() == frame || at() != before || !strings.Contains(before, "fs.list") {
		t.Fatalf("the cursor moved from\n%s to\n%s\n%s", before, at(), r.text())
	}
	r.has("timeline of agent scribe  24")
	// Once it follows, the newest is under the cursor.
	r.keys("f")
	r.change(func() { a.say(time.Second, "r-2", "main", "last", dag.RoleUser, text("the last word")) })
	expect.Must(t, strings.Contains(at(), "the last word"), "it does not follow:\n%s", r.text())
	// What was so then stands still while the run goes on.
	r.keys("g", "j", "j", "j", "j", "j", "t")
	r.has("PAST: as of 11:58:02.853, event 6 of 25")
	r.has("open call    fs.list c-1")
	r.change(func() { a.tell(time.Second, "r-2", &dag.RunFinished{Exit: "error"}) })
	r.has("event 6 of 26")
	r.has("open call    fs.list c-1")
	r.keys("n")
	r.lacks("PAST")
	expect.Must(t, strings.Contains(at(), "run ends"), "not back to now:\n%s", r.text())
}

func TestALongTimelineIsReadByPage(t *testing.T) {
	a := newArchive(t, nil)
	var all []dag.Event
	for i := range 700 {
		e, err := dag.NewEvent(dag.Head{TS: dag.At(start.Add(time.Duration(i-700) * time.Second)), AgentID: "scribe", RunID: "r-1"}, &dag.ToolCall{
			Server: "exec", Tool: "fs.read", CallID: fmt.Sprint("c-", i), Args: core.Raw(fmt.Sprintf(`{"n":%d}`, i)), RequestedBy: dag.EventRef{EventID: strings.Repeat("0", 64)},
		})
		a.no(err)
		all = append(all, e)
	}
	expect.Of(a.eng.DAG.Emit(t.Context(), ada, all...))(a.t)
	r := rigOn(t, a.world(), 80, 24, Options{})
	r.keys("1", "g", "H")
	r.has("timeline of agent scribe  700")
	r.has(`{"n":699}`)
	r.keys("g")
	r.has(`{"n":0}`)
	r.keys("pgdown", "pgdown", "pgdown")
	r.has(`{"n":57}`)
	r.keys("/")
	r.typeText(`"n":5`)
	r.keys("enter")
	r.has(`{"n":599}`)
	r.lacks(`{"n":6`)
	r.has(`/"n":5`)
}

func TestWhatHasATimeline(t *testing.T) {
	for keys, want := range map[string]string{
		"1 H": "timeline of agent changes", "2 H": "timeline of task tk_", "6 H": "timeline of session se_", "3 H": "timeline of task " + id("tk", 4),
		"5 H": "timeline of task", "2 enter H": "timeline of task tk_", "1 enter H": "timeline of agent changes", "4 H": "there is no timeline of a event",
	} {
		r := rigOn(t, newRecord(t), 80, 24, Options{})
		r.keys(strings.Fields(keys)...)
		r.has(want)
	}
}

func TestSheetsAreOpenedByName(t *testing.T) {
	r := rigOn(t, newRecord(t), 80, 24, Options{})
	open := func(line string) {
		r.keys("esc", "esc", "esc", ":")
		r.wait(deadTime)
		r.send(tea.PasteMsg{Content: line})
		r.keys("enter")
	}
	open("open timeline run:r-1")
	r.has("timeline of run r-1  19")
	open("open lineage Agent:scribe")
	r.has("lineage of agent scribe")
	open("open record Message:m-1")
	r.has("user: write NOTES.md")
	open("open task " + id("tk", 4))
	r.has("write NOTES.md")
	open("open nothing x")
	r.has("there is no sheet of a nothing")
	r.ranNothing()
}

func TestKeysOfPoliciesAreCommands(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"P j a y", "policy activate " + id("pl", 3)},
		{"P j enter a y", "policy activate " + id("pl", 3)},
		{"P j t", "policy test " + id("pl", 3)},
		{"P j enter t", "policy test " + id("pl", 3)},
		{"P j x y", "policy withdraw " + id("pl", 3)},
		{"P G R y", "policy restore default"},
		{"P G enter R y", "policy restore default"},
		{"P b", "policy backtest " + id("pl", 4)},
	} {
		for _, w := range []int{80, 200} {
			r := rigOn(t, newPolicies(t), w, 50, Options{})
			for _, key := range strings.Fields(c.keys) {
				r.keys(key)
				r.wait(deadTime)
			}
			expect.True(t, len(r.ran) == 1 && r.ran[0] == c.want, "%s at %d ran %q, want %q", c.keys, w, r.ran, c.want)
		}
	}
	// Nothing rules before it is confirmed.
	r := rigOn(t, newPolicies(t), 80, 24, Options{})
	r.keys("P", "j", "a", "enter")
	r.ranNothing()
}

func TestAReadOnlyCockpitRunsNoPolicy(t *testing.T) {
	r := rigOn(t, newPolicies(t), 80, 24, Options{ReadOnly: true})
	r.keys("P", "j", "enter", "c")
	r.has("read-only: cases would run the policy")
	r.keys("b")
	r.lacks("deciding the past anew")
	r.keys("a")
	r.ranNothing()
}

// explained knows why anything was asked.
type explained struct{ rulings }

func (explained) Grounds(_ context.Context, _, of string) (judge.Grounds, error) {
	return judge.Grounds{
		Explanation: judge.Explanation{
			Decision: "hitl", ReasonCode: "rule.writes_ask", Rationale: "writing files asks a person", RuleID: "writes-ask", PolicyVersion: strings.Repeat("ab", 32), PolicyID: id("pl", 1),
			When: `"write" in action.effects && !agent.role.startsWith("trusted")`, Values: map[string]any{"action.effects": []string{"write"}, "agent.role": "writer\u202e"},
			Tried: []string{"catastrophe", "exec.read-only"},
		},
		DecisionID: id("gd", 1), ApprovalID: of, PolicyName: "mild", Rules: true,
	}, nil
}

func TestACardSaysWhyItWasAsked(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for name, keys := range map[string]string{"card-why": "3 enter G", "decision-why": "5 enter"} {
			w := newWorld()
			w.rec.rulings = explained{w.rec.rulings}
			r := rigOn(t, w, size[0], size[1], Options{})
			r.keys(strings.Fields(keys)...)
			r.wait(deadTime)
			r.has("which read")
			r.has(`"writer⟨U+202E⟩"`)
			r.golden(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]))
		}
	}
}
