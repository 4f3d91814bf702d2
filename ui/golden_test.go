package ui

import (
	"testing"
	"time"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/ui/screen/screentest"
)

// golden compares the screen, text and roles, with testdata/NAME.screen.
func (r *rig) golden(name string) {
	r.t.Helper()
	screentest.Golden(r.t, r.m.Frame(), name)
}

// TestEachPaneLooksRight draws every pane at both sizes that must be complete.
func TestEachPaneLooksRight(t *testing.T) {
	views(t, [][2]int{{80, 24}, {120, 40}}, newRig, [][2]string{
		{"fleet", "1"},
		{"tasks", "2 j"},
		{"approvals", "3"},
		{"audit", "4"},
		{"audit-all", "4 A"},
		{"story", "1 ."},
		{"overview", "0"},
		{"overview-projects", "0 t b"},
		{"decisions", "5"},
		{"sessions", "6"},
		{"messages", "1 p 7"},
		{"tenants", "T"},
		{"agent", "1 enter"},
		{"task", "2 enter"},
		{"task-running", "2 G enter"},
		{"card", "3 enter j k"},
		{"card-end", "3 j j enter G"},
		{"event", "4 enter"},
		{"decision", "5 enter"},
		{"session", "6 enter"},
		{"message", "1 p 7 enter"},
		{"help", "1 ?"},
		{"palette", "1 :"},
		{"filter", "1 / r e a d"},
		{"confirm", "1 c"},
		{"type-to-confirm", "1 D"},
		{"marks", "1 space space"},
		{"edit", "3 enter j k e"},
		{"deny", "3 enter j k x"},
	})
}

func TestTheCardOfAConnectionFitsASmallScreen(t *testing.T) {
	r := newRig(t, 80, 24)
	r.change(func() {
		a := approval(9, judge.Medium, "curl of scribe connects to api.example:443", `{"host":"api.example","port":443,"process":"curl"}`)
		a.Gate, a.Action.Kind, a.Action.Tool, a.Action.CallID, a.Driver = judge.GateNet, judge.KindNet, "api.example:443", "agent:t_acme:scribe", "acp"
		a.Agent.Profile, a.ReasonCode, a.Rationale, a.RuleID = "worker", "net.first_contact", "no egress rule names this host", "net.first-contact"
		a.StartBy = start.Add(50 * time.Second)
		a.During = []judge.During{{CallID: "call_7", Tool: "execute", Title: "curl -sS https://api.example/v1/notes"}}
		r.w.approvals = []*judge.Approval{a}
	})
	r.keys("3", "enter", "j", "k")
	r.wait(deadTime)
	r.golden("card-connection-80x24")
}

func TestTheWholeDeckLooksRight(t *testing.T) {
	r := newRig(t, 170, 45)
	r.golden("deck-170x45")
	r.keys("tab", "tab", "j") // to the approvals below
	r.wait(deadTime)
	r.golden("deck-approvals-170x45")
}

func TestTheEmergencyStopStandsOut(t *testing.T) {
	r := newRig(t, 80, 24)
	r.change(func() {
		r.w.estop.On, r.w.estop.By, r.w.estop.At, r.w.estop.Reason, r.w.estop.Waiting = true, "ada", start, "runaway", []string{"changes"}
	})
	r.golden("estop-80x24")
}

func TestWithoutUTF8TheScreenIsASCII(t *testing.T) {
	r := rigOn(t, newWorld(), 80, 24, Options{ASCII: true})
	r.golden("ascii-80x24")
	screentest.ASCII(t, r.m.Frame())
}

func TestAnEmptyWorldSaysWhatToDo(t *testing.T) {
	w := newWorld()
	w.agents, w.tasks, w.approvals, w.sessions, w.events, w.decisions = nil, nil, []*judge.Approval{}, nil, nil, nil
	r := rigOn(t, w, 80, 24, Options{})
	r.has("no agents yet: press B to bring in claude, codex; + for any other")
	r.keys("2")
	r.has("no tasks")
	r.keys("3")
	r.has("nothing waits for you")
	r.keys("i")
	r.has("nothing needs you")
}

func TestEverySizeIsSafe(t *testing.T) {
	r := newRig(t, 80, 24)
	for w := 0; w <= 200; w += 7 {
		for h := 0; h <= 60; h += 4 {
			r.m.resize(w, h)
			r.do(r.m.sync())
			c := r.m.Frame()
			if c.W() != w || c.H() != h {
				t.Fatalf("frame is %dx%d at %dx%d", c.W(), c.H(), w, h)
			}
		}
	}
	r.m.resize(40, 10)
	r.do(r.m.sync())
	r.has("needs 60x15 (now 40x10)")
	r.keys("a", "E", "E", "q", ":", "x")
	r.ranNothing()
	r.keys("ctrl+c", "ctrl+c")
	expect.Must(t, r.quit, "ctrl+c does not quit a small screen")
}
