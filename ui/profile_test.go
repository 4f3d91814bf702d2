package ui

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// openWorld has an agent of each profile.
func openWorld() *fakeWorld {
	w := newWorld()
	w.agents[0].Profile, w.agents[1].Profile, w.agents[2].Profile, w.agents[3].Profile = "worker", "reader", "open", "open"
	return w
}

func TestAnOpenAgentIsNotOverlooked(t *testing.T) {
	for _, size := range []struct {
		name string
		w, h int
	}{{"fleet-open-80x24", 80, 24}, {"fleet-open-118x24", 118, 24}} {
		r := rigOn(t, openWorld(), size.w, size.h, Options{})
		r.keys("1")
		r.golden(size.name)
	}
	r := rigOn(t, openWorld(), 80, 24, Options{})
	r.at("todo")
	r.keys("enter")
	r.has("OPEN: it reaches all that the engine's user reaches")
}

func TestTheSheetOfAnAgentSaysWhatItReachesBesides(t *testing.T) {
	w := openWorld()
	a := w.agents[0]
	a.Options = core.Raw(`{"read":["~/own"],"hide":["/work/.env"]}`)
	w.places = map[string]files.Places{a.Role: {Read: []string{"/lib/shared"}, Write: []string{"/work/out"}}}
	r := rigOn(t, w, 100, 40, Options{})
	r.keys("1", "enter")
	r.has("~/own, /lib/shared")
	r.has("/work/out")
	r.has("/work/.env")
}

func TestACardNamesTheProfileOfItsAgent(t *testing.T) {
	for profile, want := range map[string]string{"worker": "scribe (writer in quickstart), worker", "open": "scribe (writer in quickstart), OPEN: reaches all", "": "scribe (writer in quickstart) "} {
		w := openWorld()
		for _, a := range w.approvals {
			a.Agent = judge.AgentRef{Name: "scribe", Role: "writer", Project: "quickstart", Profile: profile}
		}
		r := rigOn(t, w, 100, 40, Options{})
		r.keys("i")
		r.has(want)
	}
}

func TestAnOpenAgentIsMadeOnASecondWord(t *testing.T) {
	r := newRig(t, 100, 30)
	r.keys("1", "+")
	r.wait(deadTime)
	r.typeText("bold")
	r.keys("tab")
	r.typeText("release")
	r.keys("tab", "tab")
	r.typeText("true")
	r.keys("tab", "tab", "tab", "tab", "tab", "tab", "left") // round to the last choice
	r.has("OPEN: it reaches all that the engine's user reaches")
	r.golden("create-open-100x30")
	r.keys("enter")
	r.has("choose yes, or another profile")
	expect.Must(t, len(r.ran) == 0, "ran %q", r.ran)
	r.keys("y", "enter")
	want := "--profile=open --yes"
	expect.Must(t, len(r.ran) == 1 && strings.HasSuffix(r.ran[0], want), "ran %q, want %s", r.ran, want)
}
