package ui

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/screen/screentest"
)

// TestSkillsAndMessagesLookRight draws every pane of skills, subagents and the
// bus at both sizes that must be complete.
func TestSkillsAndMessagesLookRight(t *testing.T) {
	views(t, [][2]int{{80, 24}, {120, 40}}, func(t testing.TB, w, h int) *rig { return rigOn(t, newTalk(), w, h, Options{}) }, [][2]string{
		{"skills", "8"},
		{"skill", "8 j j enter"},
		{"skill-composite", "8 j enter z"},
		{"skill-form", "8 j j r"},
		{"executions", "8 R"},
		{"execution", "8 R j enter"},
		{"execution-failed", "8 R j j enter"},
		{"fleet-subagents", "1 j j j j"},
		{"subagents", "8 A"},
		{"subagent", "8 A enter"},
		{"subagent-failed", "8 A j j j enter"},
		{"bus", "9"},
		{"bus-held", "9 f"},
		{"bus-message", "9 j j enter"},
		{"bus-message-expired", "9 enter"},
		{"subscriptions", "9 L"},
	})
}

func TestSkillsAndMessagesWithoutUTF8AreASCII(t *testing.T) {
	for _, keys := range []string{"1", "8", "8 j enter", "8 j j r", "8 R", "8 A", "8 A enter", "9", "9 enter", "9 u", "9 L"} {
		r := rigOn(t, newTalk(), 120, 40, Options{ASCII: true})
		r.keys(strings.Fields(keys)...)
		screentest.ASCII(t, r.m.Frame())
	}
}

func TestASkillIsInvokedByItsForm(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("8", "G", "k", "r") // navigate: one step, so its schema is checked here
	r.has("invoke navigate@2.0.0")
	r.wait(deadTime)
	r.keys("enter")
	r.has("! is required")
	r.ranNothing()
	r.wait(deadTime)
	r.typeText("hall")
	r.keys("tab", "x", "enter")
	r.has("is no number")
	r.ranNothing()
	r.keys("backspace", "enter")
	want := `skill invoke navigate@2.0.0 --params {"location":"hall","speed":1}`
	expect.Must(t, len(r.ran) == 1 && r.ran[0] == want, "ran %q, want %q", r.ran, want)
}

func TestTheFormOfAChainAsksForWhatItsStepsNeed(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.runs = func([]string) (string, string, int) {
		return "", `{"error":{"code":"INVALID_INPUT","message":"params.area: no such place","details":{"field":"params.area"}}}`, 1
	}
	r.keys("8", "j", "j", "enter", "r") // from the sheet of grasp
	r.wait(deadTime)
	r.has("area*")
	r.has("location*")
	r.lacks("object_id*") // detect brings it
	r.keys("down", "down")
	r.typeText("attic")
	r.keys("down", "down")
	r.typeText("attic")
	r.keys("enter")
	want := `skill invoke grasp@1.0.0 --params {"force":3,"area":"attic","mode":"fast","location":"attic","speed":1}`
	expect.Must(t, len(r.ran) == 1 && r.ran[0] == want, "ran %q, want %q", r.ran, want)
	r.has("! no such place") // at its field
}

func TestSkillsAreNarrowedByTag(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("8", "/")
	r.typeText("tag:motion")
	r.keys("enter")
	r.has("skills 3  /tag:motion")
	r.lacks("detect@1.2.0")
	r.keys("esc")
	r.has("detect@1.2.0")
}

func TestEnterWalksTheGraphOfSkills(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("8", "j", "j", "enter")
	for range 30 {
		if r.m.focused().Selected(r.m.env()).Row == "detect@1.2.0" {
			break
		}
		r.keys("j")
	}
	r.keys("enter")
	r.has("skill detect@1.2.0")
	r.keys("q")
	r.has("skill grasp@1.0.0")
}

func TestAnExecutionATaskAndASubagentLeadToEachOther(t *testing.T) {
	w := newTalk()
	for i := range w.tasks {
		if w.tasks[i].TaskID == id("tk", 1) {
			w.tasks[i].Kind, w.tasks[i].Agent = "skill.invoke", uuid(1)
		}
	}
	r := rigOn(t, w, 80, 24, Options{})
	follow := func(row string) {
		t.Helper()
		for range 40 {
			if r.m.focused().Selected(r.m.env()).Row == row {
				r.keys("enter")
				return
			}
			r.keys("j")
		}
		t.Fatalf("no line %q on\n%s", row, r.text())
	}
	r.keys("8", "R", "j", "enter")
	r.has("navigate ✓ success")
	follow(id("tk", 1))
	r.has("skill.invoke")
	follow(uuid(1))
	r.has("subagent Grasper-1")
	follow("grasp")
	r.has("skill grasp@1.0.0")
}

func TestThoseWhoOnlyReadAreNotOfferedToRunASkill(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{ReadOnly: true})
	r.keys("8")
	r.lacks("r run")
	r.keys("9")
	r.lacks("R resend")
}

func TestSubagentsHaveKeysOfTheirOwnInTheFleet(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("1", "p") // an agent
	r.at(uuid(1))
	r.keys("p")
	r.at(uuid(2)) // paused
	r.keys("p", "X")
	r.has("subagent stop")
	r.wait(deadTime)
	r.keys("y")
	r.at(uuid(1))
	r.keys("c")
	r.wait(deadTime)
	r.keys("y")
	want := []string{
		"agent pause changes", "subagent pause " + uuid(1), "subagent resume " + uuid(2), "subagent stop " + uuid(2), "subagent cancel " + uuid(1),
	}
	expect.Must(t, strings.Join(r.ran, "\n") == strings.Join(want, "\n"), "ran %q, want %q", r.ran, want)
	r.at(uuid(6)) // Asker
	r.keys("enter")
	r.has("asks: run skill grasp@1.0.0")
	r.keys("j", "enter")
	r.has("run skill grasp@1.0.0")
	r.has("risk")
}

func TestASubagentThatFailsStaysInSightForAWhile(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.has("✗ failed    Looker")
	r.change(func() {
		r.w.subagents[0].State, r.w.subagents[0].Error, r.w.subagents[0].CompletedAt = "failed", "the arm is stuck", r.clock.Now()
	})
	r.has("the arm is stuck")
	r.clock.add(11 * 60e9)
	r.change(func() {})
	r.lacks("the arm is stuck")
	r.lacks("Looker")
}

func TestMessagesFollowAndStandStill(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	more := func(n int) {
		r.change(func() {
			m := r.w.messages[0]
			m.Seq = uint64(len(r.w.messages) + 1)
			m.MessageID, m.Topic, m.Timestamp = uuid(500+n), fmt.Sprintf("news.n%d", n), r.clock.Now()
			r.w.messages = append(r.w.messages, m)
		})
	}
	r.keys("9")
	more(1)
	got := r.m.focused().Selected(r.m.env()).ID
	expect.Must(t, got == uuid(501), "on the newest it follows: %s", got)
	r.keys("j")
	under := r.m.focused().Selected(r.m.env()).ID
	more(2)
	got = r.m.focused().Selected(r.m.env()).ID
	expect.Must(t, got == under, "the cursor left %s for %s", under, got)
	r.keys("f")
	r.has("held still")
	more(3)
	r.lacks("news.n3")
	r.keys("f")
	r.has("news.n3")
	reads := r.w.reads
	r.change(func() {}) // something else happened
	expect.Must(t, r.w.reads == reads, "%d reads though no message changed", r.w.reads-reads)
}

func TestMessagesAreNarrowedByTopic(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("9", "/")
	r.typeText("topic:*.failed")
	r.keys("enter")
	r.has("topic:*.failed")
	r.has("detection.failed")
	r.lacks("@todo")
	r.change(func() {
		m := r.w.messages[2]
		m.Seq, m.MessageID, m.Topic = uint64(len(r.w.messages)+1), uuid(501), "motion.failed"
		r.w.messages = append(r.w.messages, m)
	})
	r.has("motion.failed")
	r.has("detection.failed")
	r.keys("/")
	for range 20 {
		r.press("backspace")
	}
	r.typeText("topic:a..b")
	r.keys("enter")
	r.has("a..b") // why it is none
	r.keys("esc", "esc", "esc", "9")
	r.has("@todo")
}

func TestWhatDidNotArriveIsSentAgain(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("9", "R")
	r.keys("space", "space", "R")
	r.has("2")
	r.wait(deadTime)
	r.keys("2", "enter")
	want := []string{"bus resend " + uuid(206), "bus resend " + uuid(206), "bus resend " + uuid(205)}
	expect.Must(t, strings.Join(r.ran, "\n") == strings.Join(want, "\n"), "ran %q, want %q", r.ran, want)
}

func TestAnUnansweredRequestIsAnsweredByKey(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("9", "j")
	r.has("no answer 3")
	r.keys("r")
	r.wait(deadTime)
	r.typeText(`{"place":"sink"}`)
	r.keys("enter")
	want := `bus reply ` + uuid(205) + ` {"place":"sink"}`
	expect.Must(t, len(r.ran) == 1 && r.ran[0] == want, "ran %q, want %q", r.ran, want)
}

func TestTheHeaderCountsMessagesInTroubleOnly(t *testing.T) {
	r := rigOn(t, newTalk(), 160, 40, Options{})
	r.has("1 unanswered · 2 dead msgs")
	r.change(func() { r.w.messages = nil })
	r.lacks("unanswered")
	r.lacks("dead")
}

func TestAnotherTenantsSkillsAndMessagesAreNotShown(t *testing.T) {
	r := rigOn(t, newTalk(), 80, 24, Options{})
	r.keys("9", "8", "1", "T", "j", "enter")
	r.lacks("Grasper")
	r.keys("8")
	r.has("no skills")
	r.keys("9")
	r.has("no messages yet")
	r.keys("L")
	r.has("nobody reads the bus")
}
