package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
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

func TestTabOffersTheAgentsCommandsAndItsFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"main.go", "docs/a b.md", ".git/config", "node_modules/x.js"} {
		expect.No(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		expect.No(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	r := newRig(t, 80, 24)
	r.change(func() {
		a := *r.w.agents[0]
		a.Runtime, a.Dir = "acp", dir
		a.Offers = &fleet.Offers{Commands: []fleet.Command{{Name: "plan", Description: "Make a plan", Hint: "what for"}, {Name: "web", Description: "Search\x1b[31m"}}}
		r.w.agents[0] = &a
	})
	r.keys("d")
	r.typeText("/")
	r.has("tab: /plan /web")
	r.typeText("p")
	r.has("tab: /plan Make a plan (what for)")
	r.golden("compose-offers-80x24")
	r.keys("tab")
	r.typeText("@")
	r.has("@docs/a b.md")
	r.typeText("d")
	r.keys("tab")
	r.typeText("@m")
	r.keys("tab", "enter")
	r.wantRun(`agent assign changes /plan @"docs/a b.md" @main.go `)
}
