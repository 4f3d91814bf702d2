package ui

import (
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestAMessageKeepsItsLinesAndTabs(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("d")
	r.has("Work (changes)")
	r.send(tea.PasteMsg{Content: "fix this:\r\n\tif x {\nq"})
	r.keys("ctrl+j")
	r.typeText("E E")
	r.ranNothing()
	r.keys("enter")
	r.wantRun("agent assign changes fix this:\n\tif x {\nq\nE E")
}

func TestAnEditorThatCannotBeOpenedIsSaidAndTheTextStays(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("d")
	r.typeText("write the docs")
	r.keys("ctrl+x", "ctrl+e")
	r.has("your editor can't be opened from here")
	r.keys("enter")
	r.wantRun("agent assign changes write the docs")
}

func TestAMessageLooksRightAsItIsTyped(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		r := newRig(t, size[0], size[1])
		r.keys("d")
		r.send(tea.PasteMsg{Content: "func f() {\n\treturn \u202e1\n}\n\nwhy?"})
		r.golden(fmt.Sprintf("compose-%dx%d", size[0], size[1]))
	}
}
