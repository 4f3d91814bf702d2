package ui

import (
	"strings"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestLogsOfAnyLengthAreReadInWindows(t *testing.T) {
	w := newWorld()
	var lines []task.LogLine
	for i := range 5000 {
		lines = append(lines, task.LogLine{Seq: uint64(i + 1), Timestamp: start, Level: "INFO", Message: "line " + strings.Repeat("i", i%7) + string(rune('a'+i%26)) + "." + itoa(i+1)})
	}
	w.logs["agent:changes"] = lines
	r := rigOn(t, w, 80, 24, Options{})
	r.keys("enter")
	r.has(".5000")
	r.keys("l", "g")
	r.has(".1")
	r.lacks(".5000")
	r.keys("ctrl+d", "ctrl+d", "pgdown")
	r.change(func() {
		w.logs["agent:changes"] = append(w.logs["agent:changes"], task.LogLine{Seq: 5001, Message: "newest.5001", Level: "INFO"})
	})
	r.lacks(".5001")
	r.keys("G")
	r.has(".5001")
	r.keys("h")
	r.has("history")
}

func TestASearchThatFindsNothingMoreSaysSo(t *testing.T) {
	r := newRig(t, 80, 24)
	r.w.logs["agent:changes"] = []task.LogLine{{Seq: 1, Message: "one needle"}, {Seq: 2, Message: "hay"}, {Seq: 3, Message: "another needle"}}
	r.keys("enter", "l", "g", "/")
	r.typeText("needle")
	r.keys("enter")
	r.lacks("no more")
	r.keys("n", "n", "n")
	r.has("/needle: no more in the lines at hand")
	r.keys("N")
	r.lacks("no more")
}

func TestMessagesOpenAtTheNewest(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("y")
	r.at("large")
	r.keys("y", "m")
	r.has("▸ 12:00:02 info    sent to terminal clipboard: large")
}

func itoa(n int) string {
	var b [8]byte
	i := len(b)
	for ; n > 0; n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}

func TestALongHistoryIsReadInPages(t *testing.T) {
	w := newWorld()
	one := w.tasks[0]
	w.tasks = nil
	for i := 10_000; i > 0; i-- {
		one.TaskID = id("tk", i)
		w.tasks = append(w.tasks, one)
	}
	r := rigOn(t, w, 80, 24, Options{})
	r.keys("2")
	r.has("tasks 10000")
	r.has(" 10000 ")
	r.keys("G")
	r.has(" 0001 ")
	n := w.reads
	expect.Must(t, n <= 12, "%d pages were read", n)
	r.keys("k", "k")
	r.change(func() { // one more comes in front: the cursor stays on its task
		one.TaskID = id("tk", 10_001)
		w.tasks = append([]task.Task{one}, w.tasks...)
	})
	got := r.m.focused().Selected(r.m.env()).ID
	expect.Must(t, got == id("tk", 3), "the cursor went to %s", got)
}

func TestAnAgentThatAsksIsTheNextNeed(t *testing.T) {
	r := newRig(t, 80, 24)
	r.change(func() {
		r.w.approvals = nil
		r.w.agents = append(r.w.agents, &fleet.Agent{Name: "zed", TenantID: tenant, Status: fleet.Busy, Attention: "which branch?"})
	})
	r.keys("i")
	r.has("▸ ◆ needs you zed")
}
