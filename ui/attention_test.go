package ui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// told is what a Cmd of alert sends to the terminal, "" for nothing.
func told(cmd tea.Cmd) string {
	if cmd == nil {
		return ""
	}
	raw, _ := cmd().(tea.RawMsg)
	s, _ := raw.Msg.(string)
	return s
}

// needy is a rig whose agents ask and are stuck, with no approval open.
func needy(t *testing.T, w, h int) *rig {
	r := newRig(t, w, h)
	r.change(func() {
		r.w.approvals = nil
		a := *r.w.agents[0]
		a.Stuck = &fleet.Stuck{Kind: fleet.Loop, Text: "called read with the same arguments, 5 times or more in a row", Since: start}
		b := *r.w.agents[2]
		b.Waiting, b.Attention = "", "which licence?"
		r.w.agents[0], r.w.agents[2] = &a, &b
	})
	return r
}

func TestWhatNeedsMeIsGoneThroughInOrder(t *testing.T) {
	r := needy(t, 120, 40)
	r.change(func() { r.w.approvals = []*judge.Approval{approval(1, judge.Low, "list", `{}`)} })
	walk := func(n int) string {
		var went []string
		for range n {
			r.keys("i")
			went = append(went, r.m.focused().Selected(r.m.env()).ID)
		}
		return strings.Join(went, " ")
	}
	r.keys("2", "j")
	row := id("tk", 9)
	expect.Is(t, walk(5), id("ap", 1)+" scribe changes "+row+" "+id("ap", 1), "went to")
	r.has("that was all that needs you: 3")
	expect.Is(t, r.m.View().WindowTitle, "(3) swarmdeck", "title")
	r.has("3 need you · 12m")
	r.keys("5", "j") // elsewhere: another walk begins
	expect.Is(t, walk(4), id("ap", 1)+" scribe changes "+id("gd", 5), "went to")
}

func TestWhoNeedsSomebodyStandsFirstAndNoRowJumpsUnderTheCursor(t *testing.T) {
	r := newRig(t, 80, 24)
	order := func(want string) {
		t.Helper()
		var got []string
		for _, line := range r.m.Frame().Plain()[3:8] {
			for _, name := range []string{"scribe", "todo", "changes", "large", "0001", "late"} {
				if strings.Contains(line, name) {
					got = append(got, name)
					break
				}
			}
		}
		expect.Is(t, strings.Join(got, " "), want)
	}
	r.wait(2 * time.Second)
	order("scribe todo changes 0001 large")
	fails := func() {
		a := *r.w.agents[1] // large
		a.Status, a.Reason = fleet.Failed, "registry refused 403"
		late := *r.w.agents[0]
		late.Name, late.Waiting, late.CreatedAt = "late", id("ap", 2), start
		r.w.agents[1] = &a
		r.w.agents = append(r.w.agents, &late)
	}
	r.keys("j")
	r.change(fails)
	r.has("registry")
	r.keys("k", "j", "k")
	order("scribe todo changes 0001 large")
	r.wait(stillFor + time.Second) // nobody moves
	order("scribe late large todo changes")
	r.keys("j")
	r.change(func() { r.w.agents = r.w.agents[:4] })
	order("scribe large todo changes 0001")
	r.keys("ctrl+l")
	order("scribe large todo changes 0001")
}

func TestAFailureNeedsMeUntilItWasLookedAt(t *testing.T) {
	r := rigOn(t, newTalk(), 120, 40, Options{})
	r.change(func() { r.w.approvals = nil })
	before := len(r.m.queue())
	expect.Must(t, before != 0, "no subagent of the small world has failed")
	for range before {
		r.keys("i")
		it := r.m.focused().Selected(r.m.env())
		expect.Must(t, it.Kind == "subagent", "at %+v", it)
	}
	r.keys("i")
	r.has("nothing needs you")
}

func TestAStuckAgentSaysWhy(t *testing.T) {
	r := needy(t, 160, 30)
	r.golden("stuck-160x30")
}

func TestSomethingNewIsToldOnlyWhenNobodyLooks(t *testing.T) {
	r := rigOn(t, newWorld(), 80, 24, Options{Notice: NoticeBell})
	add := func() {
		r.w.approvals = append(r.w.approvals, approval(50+len(r.w.approvals), judge.Low, "more", `{}`))
	}
	change := func() string {
		r.w.change(add)
		r.m.look()
		return told(r.m.alert())
	}
	expect.Must(t, change() == "", "rang while the screen has the focus")
	r.send(tea.BlurMsg{})
	expect.Must(t, change() == "\a", "did not ring")
	expect.Must(t, change() == "", "rang twice within seconds")
	r.clock.add(alertGap)
	r.m.now = r.clock.Now()
	expect.Must(t, told(r.m.alert()) == "\a", "what came too soon was never told")
	r.clock.add(time.Minute)
	expect.Must(t, told(r.m.alert()) == "", "told the same twice")
}

func TestANotificationIsOneCleanSequence(t *testing.T) {
	evil := "4;100;x\x07\x1b]0;owned\x1b\\\u009c\u202e;\nrm -rf /"
	for notice, want := range map[Notice]string{
		NoticeOff: "", "": "", NoticeBell: "\a",
		NoticeOSC9:   "\x1b]9;swarmdeck: 4,100,x",
		NoticeOSC777: "\x1b]777;notify;swarmdeck;4,100,x",
	} {
		got := notice.sequence(evil)
		expect.True(t, strings.HasPrefix(got, want) && (want != "" || got == ""), "%s: %q", notice, got)
		if want == "" || notice == NoticeBell {
			continue
		}
		body := strings.TrimSuffix(strings.TrimPrefix(got, want), "\a")
		if strings.ContainsFunc(body, func(r rune) bool { return r < ' ' || r == ';' || r >= 0x7f && r < 0xa0 || r == '\u202e' }) || !strings.HasSuffix(got, "\a") {
			t.Errorf("%s: %q", notice, got)
		}
	}
}

func TestANotificationSaysWhatIsNeeded(t *testing.T) {
	r := rigOn(t, newWorld(), 80, 24, Options{Notice: NoticeOSC777})
	r.send(tea.BlurMsg{})
	r.w.change(func() {
		a := *r.w.agents[1]
		a.Status, a.TaskID = fleet.Busy, id("tk", 2)
		a.Stuck = &fleet.Stuck{Kind: fleet.NoProgress, Text: "nothing heard for 10m0s", Since: start}
		r.w.agents[1] = &a
	})
	r.m.look()
	expect.Is(t, told(r.m.alert()), "\x1b]777;notify;swarmdeck;large is stuck: nothing heard for 10m0s\a")
}

func TestTasksThatNeedSomebodyStandFirstAndSayWhy(t *testing.T) {
	r := newRig(t, 80, 24)
	order := func(want string) {
		t.Helper()
		var got []string
		for _, line := range r.m.Frame().Plain()[3:7] {
			got = append(got, strings.Fields(strings.Trim(line, "│▸ "))[1])
		}
		expect.Is(t, strings.Join(got, " "), want)
	}
	r.change(func() { r.w.urgent = []uint64{4, 6, 1} })
	r.keys("2")
	order("needs failed running succeeded")
	r.has("asks: write")
	r.has("exit status 1")
	r.keys("j", "j")
	r.change(func() { r.w.urgent = []uint64{4, 8, 6} })
	order("needs failed running succeeded")
	r.wait(stillFor + time.Second)
	order("needs blocked failed succeeded")
	expect.Is(t, r.m.focused().Selected(r.m.env()).ID, id("tk", 1), "under the cursor")
}

func TestAnAgentWhoseTaskWaitsForAnAnswerNeedsSomebody(t *testing.T) {
	r := newRig(t, 80, 24)
	r.has("○ idle      large")
	r.change(func() {
		ask := *r.w.approvals[0]
		ask.ApprovalID, ask.Gate, ask.TaskID, ask.Agent.Name = id("ap", 9), judge.GateStart, id("tk", 9), "large"
		ask.Subject.Headline = "tell agent large: go on"
		nobodys := ask
		nobodys.ApprovalID, nobodys.TaskID, nobodys.Agent.Name = id("ap", 8), id("tk", 8), ""
		r.w.approvals = append(r.w.approvals, &nobodys, &ask)
	})
	r.has("asks: tell agent lar")
	r.keys("ctrl+l")
	r.has("◆ needs you large")
	r.change(func() { r.w.approvals = r.w.approvals[:len(r.w.approvals)-1] })
	r.keys("ctrl+l")
	r.has("○ idle      large")
}
