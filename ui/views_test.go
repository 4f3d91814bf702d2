package ui

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// say types a line into the palette.
func (r *rig) say(line string) {
	r.t.Helper()
	r.keys(":")
	r.typeText(line)
	r.keys("enter")
}

// titles are those that the list in focus shows.
func (r *rig) titles() string {
	return strings.Join(strings.Fields(strings.Trim(r.m.Frame().Plain()[2], "│ ")), " ")
}

func TestColumnsAreChosenAndSortedByAndKeptAsAView(t *testing.T) {
	r := newRig(t, 100, 24)
	own := r.titles()
	r.say("columns age,name,profile")
	expect.Is(t, r.titles(), "AGE NAME PROFILE")
	r.say("sort -name")
	expect.Is(t, r.titles(), "AGE NAME ↓ PROFILE")
	expect.Has(t, r.m.Frame().Plain()[3], "todo")
	for line, want := range map[string]string{
		"columns name,nosuch": `column: "nosuch" is not allowed; allowed: of fleet: state, name, task`,
		"columns name,name":   "each column once",
		"sort nosuch":         `column: "nosuch" is not allowed`,
	} {
		r.say(line)
		r.has(want)
		expect.Is(t, r.titles(), "AGE NAME ↓ PROFILE", line)
		r.keys("esc")
	}
	r.keys("/")
	r.typeText("!large")
	r.keys("enter")
	r.ran = nil
	r.say("view save mine")
	expect.Is(t, strings.Join(r.ran, "\n"), "view save mine --list fleet --columns=age,name,profile --sort=-name --match=!large")
	r.say("columns")
	r.say("sort")
	expect.Is(t, r.titles(), own)
	r.say("sort age") // a list in pages keeps its order
	r.keys("4")
	r.say("sort time")
	r.has("audit keep their own order")
	r.keys("esc")

	r.runs = func(args []string) (string, string, int) {
		expect.Is(t, strings.Join(args, " "), "view use mine -o json")
		return `{"name":"mine","list":"fleet","columns":["name","cost"],"sort":"-name","match":"!todo"}`, "", 0
	}
	for _, line := range []string{"view mine", "view use mine"} {
		r.keys("2")
		r.say(line)
		expect.Is(t, r.titles(), "NAME ↓ COST")
		expect.Has(t, r.m.Frame().Plain()[3], "task 0001")
		r.lacks("│  todo")
	}
	r.runs = func([]string) (string, string, int) {
		return `{"name":"mine","list":"fleet","columns":["nosuch"]}`, "", 0
	}
	r.say("view mine")
	r.has(`column: "nosuch" is not allowed`)
}

func TestAnyPaneTakesTheWholeScreenAndGivesItBack(t *testing.T) {
	for _, keys := range []string{"", "enter", "tab tab", "3", "3 enter", "2 / g o enter"} {
		r := newRig(t, 170, 45)
		r.keys(strings.Fields(keys)...)
		was, before := r.m.focused(), fmt.Sprint(r.m.place.bound, len(r.m.place.shown))
		r.keys("O")
		expect.Must(t, len(r.m.place.shown) == 1 && r.m.focused() == was, "%q: %d panes, focus on %s", keys, len(r.m.place.shown), r.m.focused().Name())
		r.keys("O")
		expect.Is(t, fmt.Sprint(r.m.place.bound, len(r.m.place.shown)), before, keys)
		expect.Must(t, r.m.focused() == was, "%q: focus on %s", keys, r.m.focused().Name())
	}
	r := newRig(t, 100, 24)
	r.keys("O")
	r.has("others stand beside it from 120 columns on")
}

func TestEachListLooksRightOnAWideScreen(t *testing.T) {
	views(t, [][2]int{{200, 24}}, func(t testing.TB, w, h int) *rig {
		r := newRig(t, w, h)
		r.change(func() {
			a := *r.w.agents[0]
			a.Usage.Tokens, a.Usage.CostUSD, a.Context.Used, a.Context.Size, a.Profile = 123_456, 1.5, 84_000, 200_000, "worker"
			a.LastTask = "what changed since yesterday, and 世界 who did it: one line for each of the commits"
			r.w.agents[0] = &a
		})
		return r
	}, [][2]string{{"fleet", "1"}, {"fleet-alone", "1 O"}, {"tasks", "2"}, {"approvals", "3"}, {"audit", "4"}, {"decisions", "5"}, {"sessions", "6"}, {"messages", "1 y p 7"}, {"tenants", "T"}})
	views(t, [][2]int{{200, 24}}, func(t testing.TB, w, h int) *rig { return rigOn(t, newTalk(), w, h, Options{}) }, [][2]string{
		{"skills", "8"}, {"executions", "8 R"}, {"subagents", "8 A"}, {"bus", "9"}, {"subscriptions", "9 L"},
	})
}

func TestThePalettesOwnCommandsAreFoundByWhatTheyDo(t *testing.T) {
	for line, want := range map[string]string{"colours": "theme", "session script": "record", "mess": "messages", "order list": "sort"} {
		r := newRig(t, 80, 24)
		r.keys(":")
		r.typeText(line)
		r.has(want)
	}
	r := newRig(t, 80, 24)
	r.keys(":")
	r.typeText("theme dark")
	r.lacks("other colours")
}
