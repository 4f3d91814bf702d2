package ui

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/expect"
	"swarmdeck/ui/term"
)

// stands is the cell at which a text stands.
func (r *rig) stands(text string) (x, y int) {
	r.t.Helper()
	for y, row := range r.m.Frame().Plain() {
		for i := range row {
			if len(row[i:]) >= len(text) && row[i:i+len(text)] == text {
				return term.Width(row[:i]), y
			}
		}
	}
	r.t.Fatalf("the screen lacks %q", text)
	return 0, 0
}

func (r *rig) click(text string) {
	r.t.Helper()
	x, y := r.stands(text)
	r.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
	r.send(tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft})
}

func TestAClickSelectsAndOneOnWhatIsSelectedOpens(t *testing.T) {
	r := newRig(t, 80, 24)
	r.click("scribe")
	expect.Is(t, r.m.focused().Selected(r.m.env()).ID, "scribe", "selected")
	expect.Is(t, r.m.focused().Name(), "fleet", "one click has opened it")
	r.click("scribe")
	expect.Is(t, r.m.focused().Name(), "agent", "the second opens it")
	r.keys("q")
	r.click("i needs me")
	expect.Is(t, r.m.focused().Name(), "card", "the footer's key")
	r.keys("q", "1")
	r.click("need you")
	expect.Is(t, r.m.focused().Name(), "card", "the header's count goes to what needs somebody")
}

func TestAClickGivesAPaneTheKeysAndTheWheelScrollsAnother(t *testing.T) {
	r := newRig(t, 170, 45)
	r.click("approvals ")
	expect.Is(t, r.m.focused().Name(), "approvals", "the border's title")
	was := r.m.focused().Selected(r.m.env()).ID
	x, y := r.stands("fleet ")
	before := r.m.fleet.Selected(r.m.env()).ID
	r.send(tea.MouseWheelMsg{X: x + 3, Y: y + 3, Button: tea.MouseWheelDown})
	expect.True(t, r.m.fleet.Selected(r.m.env()).ID != before, "the wheel has moved nothing")
	expect.Is(t, r.m.focused().Name(), "approvals", "the wheel takes no keys")
	expect.Is(t, r.m.focused().Selected(r.m.env()).ID, was, "nor does it move what has them")
}

func TestABorderIsDragged(t *testing.T) {
	r := newRig(t, 140, 40)
	left := r.m.place.shown[0].rect
	x := left.X + left.W - 1
	r.send(tea.MouseClickMsg{X: x, Y: 10, Button: tea.MouseLeft})
	r.send(tea.MouseMotionMsg{X: x - 20, Y: 11, Button: tea.MouseLeft})
	r.send(tea.MouseReleaseMsg{X: x - 20, Y: 11, Button: tea.MouseLeft})
	expect.Is(t, r.m.place.shown[0].rect.W, left.W-20, "its width")
	r.send(tea.MouseMotionMsg{X: 3, Y: 11, Button: tea.MouseLeft})
	expect.Is(t, r.m.place.shown[0].rect.W, left.W-20, "after it was let go")
}

func TestAClickAnswersNoSoonerThanAKeyAndConfirmsNothing(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("3", "enter")
	r.click("approve")
	r.ranNothing()
	r.keys("q", "q", "1", "X")
	r.has("sure?")
	r.wait(deadTime)
	r.click("do it")
	r.ranNothing()
}

func TestTheMouseIsTheTerminalsWhereOneWants(t *testing.T) {
	r := newRig(t, 80, 24)
	expect.True(t, r.m.View().MouseMode == tea.MouseModeCellMotion, "it is not taken")
	r.keys("ctrl+t")
	expect.True(t, r.m.View().MouseMode == tea.MouseModeNone, "it is taken")
	far := rigOn(t, newWorld(), 80, 24, Options{Remote: true})
	expect.True(t, far.m.View().MouseMode == tea.MouseModeNone, "it is taken over a link that may be slow")
}

func TestAMenuIsClicked(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("ctrl+p")
	r.click("decisions")
	expect.Is(t, r.m.focused().Name(), "decisions", "chosen")
}

func TestAClickOnALineOfTheHelpPressesItsKey(t *testing.T) {
	r := newRig(t, 80, 24)
	r.click("? help")
	r.typeText("filter")
	r.click("Filter the list")
	r.typeText("scribe")
	r.has("fleet 1/5")
	r.keys("esc", "3", "enter", "?")
	r.typeText("Approve what")
	r.click("Approve what")
	r.has("search a key") // what it answers is out of sight
	r.keys("esc", "esc", "?")
	r.typeText("other colours")
	r.click("theme NAME")
	r.has(":theme")
}

func TestTheRightButtonMarksARow(t *testing.T) {
	r := newRig(t, 80, 24)
	x, y := r.stands("scribe")
	r.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseRight})
	r.has("1 marked")
	r.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseRight})
	r.lacks("1 marked")
}
