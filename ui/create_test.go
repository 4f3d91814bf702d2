package ui

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestAnAgentIsMadeByAForm(t *testing.T) {
	r := newRig(t, 100, 30)
	r.keys("1", "+")
	r.wait(deadTime)
	r.has("new agent")
	r.golden("create-agent-100x30")
	r.typeText("helper")
	r.keys("tab")
	r.typeText("re")
	r.keys("right") // completes the known project
	r.has("release")
	r.keys("tab", "tab")
	r.typeText("sh -c 'cat'")
	r.keys("tab", "tab", "right", "right") // the second role that is known
	r.keys("tab", "tab")
	r.typeText("tidy up")
	r.keys("enter")
	want := "agent create helper --project=release --runtime=exec --role=writer --task=tidy up --command=sh -c 'cat'"
	expect.Must(t, len(r.ran) == 1 && r.ran[0] == want, "ran %q", r.ran)
}

func TestARefusedAgentKeepsItsForm(t *testing.T) {
	r := newRig(t, 100, 30)
	r.runs = func([]string) (string, string, int) {
		return "", `{"error":{"code":"INVALID_INPUT","message":"name: \"a b\" is not allowed; 1-20 of a-z A-Z 0-9 -","details":{"field":"name"}}}`, 2
	}
	r.keys("1", "+")
	r.wait(deadTime)
	r.typeText("a b")
	r.keys("tab")
	r.typeText("p")
	r.keys("enter")
	r.wait(deadTime)
	r.has("new agent")
	r.has("1-20 of a-z")
}

func TestAReadOnlyCockpitMakesNoAgent(t *testing.T) {
	r := rigOn(t, newWorld(), 100, 30, Options{ReadOnly: true})
	r.keys("1", "+")
	r.wait(deadTime)
	r.typeText("x")
	r.keys("tab", "y", "enter")
	expect.True(t, !strings.Contains(strings.Join(r.ran, " "), "create"), "ran %q", r.ran)
}
