package ui

import (
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// openCard goes to the approval with this number on a narrow screen and lets
// the screen settle.
func openCard(t *testing.T, n int) *rig {
	t.Helper()
	r := newRig(t, 80, 24)
	r.keys("3")
	for range n - 1 {
		r.keys("j")
	}
	r.keys("enter")
	r.wait(deadTime)
	return r
}

func (r *rig) wantRun(want string) {
	r.t.Helper()
	expect.Must(r.t, len(r.ran) == 1 && r.ran[0] == want, "ran %q, want only %q\n%s", r.ran, want, r.text())
}

func TestApproveActsOnTheIDAndDigestThatWereDrawn(t *testing.T) {
	r := openCard(t, 1)
	a := r.w.approvals[0]
	shown := r.clock.Now().Add(-deadTime).Format(time.RFC3339Nano)
	r.press("a")
	r.wantRun("approval approve " + a.ApprovalID + " --digest " + a.Digest + " --pressed a --shown " + shown)
}

func TestKeysAreDeadAfterACardIsDrawn(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("3", "enter")
	r.press("a")
	r.ranNothing()
	r.wait(deadTime - time.Millisecond)
	r.press("x")
	r.ranNothing()
	expect.Must(t, !r.m.over.Open(), "a dead key opened a prompt")
}

func TestAHeldKeyAnswersOnce(t *testing.T) {
	r := openCard(t, 1)
	r.press("a")
	r.w.change(func() { r.w.approvals = r.w.approvals[1:] })
	r.send(bellMsg{})
	r.wait(500 * time.Millisecond) // the usual delay before a key repeats
	r.m.openItem(r.m.list.Selected(r.m.env()))
	for range 100 {
		r.press("a")
		r.wait(33 * time.Millisecond)
	}
	expect.Must(t, len(r.ran) == 1, "a held key answered %d times: %q", len(r.ran), r.ran)
}

func TestAToldRepeatNeverAnswers(t *testing.T) {
	r := openCard(t, 1)
	r.wait(5 * time.Second)
	k, _ := Key("a")
	k.IsRepeat = true
	r.send(k)
	r.ranNothing()
}

func TestPastedTextNeverAnswers(t *testing.T) {
	r := openCard(t, 1)
	for _, text := range []string{"a", "y", "aaaa\ny\r", ":approval approve " + id("ap", 1) + "\r"} {
		r.wait(2 * time.Second)
		r.send(tea.PasteMsg{Content: text})
	}
	r.ranNothing()
}

func TestEnterNeverApproves(t *testing.T) {
	r := openCard(t, 1)
	for _, k := range []string{"enter", "enter"} {
		r.keys(k)
	}
	r.ranNothing()
	r.keys("e", "ctrl+x", "enter", "enter") // edit, done, sure?
	r.ranNothing()
	r.keys("A", "enter", "enter", "enter", "enter") // always, scope, terms, sure?
	r.ranNothing()
	r.keys(":")
	r.typeText("approval approve " + id("ap", 1))
	r.keys("enter", "enter")
	r.ranNothing()
}

func TestTheListMovingUnderTheCursorMakesKeysDead(t *testing.T) {
	r := newRig(t, 120, 40)
	r.keys("3", "j")
	r.wait(deadTime)
	r.has("list /tmp")
	second := r.w.approvals[1].ApprovalID
	r.change(func() {
		r.w.approvals = append([]*judge.Approval{approval(9, judge.Critical, "new and urgent", `{}`)}, r.w.approvals...)
	})
	for at := r.m.list.Position(); r.m.list.Position() == at; { // nobody moves, so the list is put in order
		r.wait(100 * time.Millisecond)
	}
	r.press("a")
	r.ranNothing()
	got := r.m.list.Selected(r.m.env()).ID
	expect.Must(t, got == second, "the selection went from %s to %s", second, got)
	r.wait(1100 * time.Millisecond)
	r.press("a")
	expect.Must(t, len(r.ran) == 1 && strings.Contains(r.ran[0], second), "ran %q, want an answer to %s", r.ran, second)
}

func TestKeysThatComeTogetherApproveNothing(t *testing.T) {
	r := openCard(t, 1)
	for _, c := range "aaaa yyyy aay" {
		name := string(c)
		if c == ' ' {
			name = "space"
		}
		r.hit(name)
	}
	r.wait(together)
	r.ranNothing()
	r.has("nothing was approved")
	r.keys("esc")
	r.wait(2 * time.Second)
	r.press("a")
	expect.Is(t, len(r.ran), 1, "ran", r.ran)
}

// manyMarked is a list of approvals, the last at high risk, with marks on the first few.
func manyMarked(t *testing.T, marks int) *rig {
	t.Helper()
	r := newRig(t, 120, 40)
	r.change(func() {
		r.w.approvals = []*judge.Approval{
			approval(1, judge.Low, "read a", `{"path":"a"}`), approval(2, judge.Low, "read b", `{"path":"b"}`), approval(3, judge.High, "remove c", `{"path":"c"}`),
		}
	})
	r.keys("3")
	for range marks {
		r.keys("space")
	}
	r.wait(deadTime)
	return r
}

func TestMarkedApprovalsAreAnsweredTogetherEachForItself(t *testing.T) {
	for _, c := range []struct {
		key, verb string
		marks     int
	}{{"a", "approve", 2}, {"a", "approve", 1}, {"x", "deny", 3}} {
		t.Run(c.verb, func(t *testing.T) {
			r := manyMarked(t, c.marks)
			if c.key == "a" {
				r = manyMarked(t, 3)
				r.press("a")
				r.ranNothing()
				r.has("is approved one at a time")
				r = manyMarked(t, c.marks)
			}
			r.press(c.key)
			r.wait(deadTime)
			r.typeText("they are all the same")
			r.press("enter")
			r.ranNothing()
			r.has(c.verb + " " + strconv.Itoa(c.marks))
			r.has("they are all the same")
			for _, a := range r.w.approvals[:c.marks] {
				r.has(a.ApprovalID)
				r.has(a.Digest[:12])
				r.has(a.Subject.Headline) // and not what its agent calls it
			}
			r.wait(deadTime)
			r.press("y")
			r.press("enter")
			r.ranNothing() // the number is typed, and nothing else is a yes
			r.press("backspace")
			r.typeText(strconv.Itoa(c.marks))
			r.press("enter")
			expect.Must(t, len(r.ran) == c.marks, "ran %q", r.ran)
			for _, line := range r.ran {
				if !strings.HasPrefix(line, "approval "+c.verb+" ap_") || !strings.Contains(line, "--digest") || !strings.Contains(line, "--shown") || !strings.HasSuffix(line, "--reason they are all the same") {
					t.Errorf("ran %q", line)
				}
			}
		})
	}
}

func TestMarkedApprovalsThatChangedAreReadAgain(t *testing.T) {
	r := manyMarked(t, 2)
	r.change(func() {
		for _, a := range r.w.approvals {
			a.Digest = strings.Repeat("9", 64)
		}
	})
	r.wait(repeatGap)
	r.press("x")
	r.ranNothing()
	r.has("has changed since it was marked")
	for _, key := range []string{"e", "A", "z"} {
		r.wait(repeatGap)
		r.press(key)
		r.ranNothing()
		r.has("are approved or denied")
	}
}

func TestTheSelectedApprovalVanishingMakesKeysDead(t *testing.T) {
	r := newRig(t, 120, 40)
	r.keys("3")
	r.wait(deadTime)
	r.change(func() { r.w.approvals = r.w.approvals[1:] })
	r.press("a")
	r.ranNothing()
}

func TestHighRiskIsArmedOnlyAfterTheEndOfItsArguments(t *testing.T) {
	r := newRig(t, 80, 24)
	args := `{"argv":["rm"` + strings.Repeat(`,"some/long/path/to/remove"`, 60) + `]}`
	r.change(func() { r.w.approvals[2] = approval(3, judge.High, "remove the build directory", args) })
	r.keys("3", "j", "j", "enter")
	r.wait(deadTime)
	r.keys("a")
	r.ranNothing()
	r.has("scroll to the end")
	expect.Must(t, !r.m.over.Open(), "an unarmed approval asked for its reason")
	r.keys("G", "a")
	r.typeText("the build is stale")
	r.keys("enter")
	r.ranNothing()
	r.keys("enter")
	r.ranNothing()
	r.keys("a")
	r.typeText("the build is stale")
	r.press("enter")
	r.press("y") // typed ahead: the question has only just appeared
	r.ranNothing()
	r.wait(2 * time.Second)
	r.press("y")
	expect.Must(t, len(r.ran) == 1 && strings.Contains(r.ran[0], "approve "+id("ap", 3)) && strings.HasSuffix(r.ran[0], "--reason the build is stale"),
		"ran %q\n%s", r.ran, r.text())
}

func TestChangedArgumentsMustBeSeenAnew(t *testing.T) {
	r := openCard(t, 1)
	r.change(func() {
		r.w.approvals[0] = approval(1, judge.Medium, "write NOTES.md in the current directory", `{"path":"/etc/passwd"}`)
	})
	r.press("a")
	r.ranNothing()
	r.has("/etc/passwd")
	r.wait(1100 * time.Millisecond)
	r.press("a")
	expect.Must(t, len(r.ran) == 1 && strings.Contains(r.ran[0], r.w.approvals[0].Digest), "ran %q, want the digest that is drawn", r.ran)
}

func TestAnAnsweredApprovalSaysWhoAndCannotBeAnswered(t *testing.T) {
	r := openCard(t, 1)
	r.change(func() {
		a := *r.w.approvals[0]
		a.Status, a.AnsweredBy, a.AnsweredAt, a.AnswerReason = judge.Refused, "bob", start.Add(2*time.Second), "no"
		r.w.approvals, r.w.answered = r.w.approvals[1:], []judge.Approval{a}
	})
	r.lacks("x deny") // the footer offers no answer any more
	r.keys("a")
	r.ranNothing()
	r.has("denied by bob 12:00:02: no")
}

func TestTheFooterOffersAnswersWhileThereIsSomethingToAnswer(t *testing.T) {
	r := openCard(t, 1)
	r.has("x deny")
	r = newRig(t, 80, 24)
	r.keys("3")
	r.has("x deny")
	r.change(func() { r.w.approvals = nil })
	r.lacks("x deny")
}

func TestAHintIsNoError(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("3", "enter")
	r.press("a")
	r.has("too early: what is shown has just changed")
	r.lacks("error:")
	r.wait(5 * time.Second)
	r.lacks("too early")                  // it goes by itself
	for _, width := range []int{80, 40} { // where there is no room for panes too
		r = newRig(t, width, 10)
		r.keys("ctrl+c")
		r.has("press ctrl+c again to quit")
		r.lacks("error:")
	}
}

func TestTheListAloneAnswersNothing(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("3", "a")
	r.ranNothing()
	r.has("arguments") // it shows the card instead
}

func TestDenyWantsAReason(t *testing.T) {
	r := openCard(t, 1)
	r.keys("x", "enter", "space", "enter")
	r.ranNothing()
	r.keys("q")
	r.keys("x")
	r.typeText("not today")
	r.keys("enter")
	expect.Must(t, len(r.ran) == 1 && strings.HasPrefix(r.ran[0], "approval deny "+id("ap", 1)) && strings.HasSuffix(r.ran[0], "--reason not today"),
		"ran %q", r.ran)
}

func TestAbortSaysSo(t *testing.T) {
	r := openCard(t, 1)
	r.keys("X")
	r.has("end the task")
	r.typeText("stop")
	r.keys("enter")
	expect.Must(t, len(r.ran) == 1 && strings.HasSuffix(r.ran[0], "--reason stop --abort"), "ran %q", r.ran)
}

func TestEditedArgumentsAreSentOnceConfirmed(t *testing.T) {
	r := openCard(t, 1)
	r.keys("e")
	r.has("Edit the arguments")
	r.keys("ctrl+x", "y")
	expect.Must(t, len(r.ran) == 1 && strings.Contains(r.ran[0], "--edit {") && strings.Contains(r.ran[0], r.w.approvals[0].Digest),
		"ran %q\n%s", r.ran, r.text())
}

func TestAlwaysOffersNarrowScopesFirstAndAsks(t *testing.T) {
	r := openCard(t, 1)
	a := *r.w.approvals[0]
	rule := a.Offer(judge.Always{For: a.For()[0], Expires: time.Hour, MaxUses: 5})
	r.keys("A", "1", "1")
	r.has("From now on: let")
	r.keys("y")
	expect.Must(t, len(r.ran) == 1 && strings.Contains(r.ran[0], "--always "+a.For()[0]+" --expires 1h0m0s --max-uses 5 --rule-digest "+rule.Digest),
		"ran %q\n%s", r.ran, r.text())
}

func TestReadOnlyOffersNoKeysThatChangeSomething(t *testing.T) {
	r := rigOn(t, newWorld(), 80, 24, Options{ReadOnly: true})
	for _, key := range []string{"p pause", "d assign", "stop all"} {
		r.lacks(key)
	}
	r.has("enter open")
	r.keys("i")
	r.lacks("a approve")
}

func TestReadOnlyAnswersNothing(t *testing.T) {
	r := rigOn(t, newWorld(), 80, 24, Options{ReadOnly: true})
	r.keys("3", "enter")
	r.wait(time.Second)
	r.keys("a", "x", "X", "e", "A", "z")
	r.keys("E", "E")
	r.ranNothing()
	r.has("read-only")
	expect.Must(t, len(r.w.shown) == 0, "a read-only screen recorded that it showed the card")
}

func TestWhoMayNotAnswerIsToldWhichRoleMay(t *testing.T) {
	for _, role := range []command.Role{command.Viewer, command.Operator} {
		r := rigOn(t, newWorld(), 80, 24, Options{Role: role, ReadOnly: role == command.Viewer})
		r.keys("3", "enter")
		r.wait(time.Second)
		r.press("a")
		r.ranNothing()
		r.has("your role " + string(role) + " can't answer approvals; approver can")
	}
}

func TestHiddenCharactersAreShownOnTheCard(t *testing.T) {
	r := newRig(t, 80, 24)
	r.change(func() {
		r.w.approvals[0] = approval(1, judge.Medium, "write \u202etxt.exe", "{\"path\":\"a\u200bb\",\"esc\":\"\\u001b[31m\"}")
	})
	r.keys("3", "enter")
	r.has("⟨U+202E⟩")
	r.has("a⟨U+200B⟩b")
	r.has(`\u001b[31m`)
	expect.Must(t, strings.Contains(strings.Join(r.m.Frame().Roles(), ""), "h"), "revealed characters do not stand out")
}

func TestShowingACardIsRecordedOnce(t *testing.T) {
	r := openCard(t, 1)
	r.keys("j", "k")
	r.change(func() {})
	expect.Must(t, len(r.w.shown) == 1 && r.w.shown[0] == id("ap", 1), "recorded %q", r.w.shown)
}

func TestEmergencyStopIsOneChordAndThawWantsAReason(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("E", "j")
	r.ranNothing()
	r.press("E")
	r.press("E")
	expect.Must(t, len(r.ran) == 1 && strings.HasPrefix(r.ran[0], "estop on --reason "), "ran %q", r.ran)
	r.change(func() {
		r.w.estop.On, r.w.estop.By, r.w.estop.At, r.w.estop.Reason, r.w.estop.Waiting = true, "ada", start, "test", []string{"changes"}
	})
	r.has("● working   changes") // has not acknowledged
	r.has("‖ frozen    task 0001")
	r.has("EMERGENCY STOP: 1 NOT acknowledged, E E thaws: changes (ada")
	r.ran = nil
	r.press("E")
	r.press("E")
	r.ranNothing()
	r.typeText("all clear")
	r.keys("enter")
	r.wantRun("estop off --reason all clear")
}
