package ui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/pane"
)

func TestMarkedRowsAreActedOnTogetherAfterTypingTheirNumber(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("2", "space", "space", "c")
	r.has("task cancel for 2")
	r.has(id("tk", 10))
	r.ranNothing()
	r.keys("enter", "3", "enter")
	r.ranNothing()
	r.keys("backspace", "2", "enter")
	expect.Must(t, len(r.ran) == 2 && r.ran[0] == "task cancel "+id("tk", 10) && r.ran[1] == "task cancel "+id("tk", 9), "ran %q", r.ran)
	r.lacks("marked")
}

func TestAKeyFillsItsLineFromTheRow(t *testing.T) {
	r := newRig(t, 80, 24)
	r.runs = func([]string) (string, string, int) { return "asked to pause: agent large\n", "", 0 }
	r.at("large")
	r.keys("p")
	r.wantRun("agent pause large")
	r.has("asked to pause: agent large")
}

func TestAQuestionNamesWhatItIsAboutAndItsAnswerIsOneWord(t *testing.T) {
	r := newRig(t, 80, 24)
	r.at("large")
	r.keys("d")
	r.has("Work (large)")
	r.typeText("what's large; and 'why'?")
	r.keys("enter")
	r.wantRun("agent assign large what's large; and 'why'?")
}

func TestAKeyThatLacksSomethingSaysSoBeforeItAsks(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("j", "d") // a task that no agent runs
	r.has("has no agent")
	r.lacks("Work (")
	r.ranNothing()
}

func TestTheFleetSaysWhyALastTaskDidNotSucceed(t *testing.T) {
	r := newRig(t, 80, 24)
	ended := func(n int, status task.Status) {
		r.change(func() {
			a := *r.w.agents[1]
			a.LastStatus, a.LastTaskID = status, id("tk", n)
			r.w.agents[1] = &a
		})
	}
	ended(6, task.Failed)
	r.has("✗ exit status 1")
	ended(99, task.TimedOut)
	r.has("◔ timed out: what")
	ended(10, task.Succeeded)
	r.lacks("timed out: what")
}

func TestPauseResumesWhatIsPaused(t *testing.T) {
	r := newRig(t, 80, 24)
	r.change(func() {
		a := *r.w.agents[0]
		a.Paused = true
		r.w.agents[0] = &a
	})
	r.keys("p")
	r.wantRun("agent resume changes")
}

func TestARowThatSlippedUnderTheCursorIsNotActedOn(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("g") // on scribe
	r.w.change(func() { r.w.agents = append(r.w.agents[:2:2], r.w.agents[3]) })
	r.send(bellMsg{})
	r.wait(100 * time.Millisecond)
	r.press("p")
	r.ranNothing()
	r.wait(time.Second)
	r.press("q")
	r.keys("p")
	r.wantRun("agent pause todo")
}

func TestDeletingWantsTheName(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("D", "y", "enter")
	r.ranNothing()
	r.keys("backspace")
	r.typeText("changes")
	r.keys("enter")
	r.wantRun("agent delete changes --yes")
}

func TestAFailureIsAnErrorThatStays(t *testing.T) {
	r := newRig(t, 80, 24)
	r.runs = func([]string) (string, string, int) {
		return "", `{"error":{"code":"CONFLICT","message":"agent changes is busy"}}` + "\n", 1
	}
	r.keys("p")
	r.has("error: agent changes is busy")
	r.wait(time.Minute)
	r.has("error: agent changes is busy")
	r.keys("esc")
	r.lacks("error:")
	r.keys("m")
	r.has("agent pause changes") // kept among the messages
}

func TestToastsGoAfterFourSeconds(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("y")
	r.has("sent to terminal clipboard: changes")
	expect.Is(t, r.m.copied, "changes", "copied")
	r.wait(6 * time.Second)
	r.lacks("clipboard")
}

func TestToastsKeepOffRowsAndTheEndOfALog(t *testing.T) {
	r := rigOn(t, crowd(100), 80, 24, Options{})
	r.keys("G", "k", "k")
	for range 3 {
		r.press("y")
		r.press("j")
	}
	r.has("▸ ○ idle      agent-0099")
	for y, row := range r.m.Frame().Plain() {
		covered := strings.Contains(row, "clipboard")
		if edge := y == 1 || y == 2 || y == 22; covered != edge { // the frame, the titles, the frame
			t.Errorf("line %d: %s", y, row)
		}
	}
}

func TestTheFilterNarrowsAndEscClearsItFirst(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("/")
	r.typeText("!state:idle role:read")
	r.has("fleet 2/5")
	r.keys("enter", "esc")
	r.has("fleet 5")
	r.keys("2", "/")
	r.typeText("part3 status:succeeded")
	r.keys("enter")
	r.has("tasks 0/10  /part3 status:succeeded")
	r.keys("esc", "/")
	r.typeText("~fuzzy")
	r.keys("enter")
	r.has("filtered by the engine")
}

func TestAFilterThatNothingPassesSaysSo(t *testing.T) {
	r := newRig(t, 80, 24)
	for _, list := range []string{"1", "2"} {
		r.keys(list, "/")
		r.typeText("nosuchthing")
		r.keys("enter")
		r.has("nothing passes the filter; esc clears it")
		r.keys("esc")
	}
}

func TestPaletteRunsCompletesAndRemembers(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys(":")
	r.has("tenants") // a candidate's help
	r.typeText("task show 'a b'")
	r.keys("enter")
	r.wantRun("task show a b")
	r.keys(":", "up")
	r.has(":task show 'a b'")
	r.keys("enter")
	expect.Must(t, len(r.ran) == 2, "ran %q", r.ran)
	r.keys(":")
	r.typeText("task 'open")
	r.keys("enter")
	r.has("line ends inside ' quotes")
}

func TestALongOutputOpensOnlyWhileItIsWaitedFor(t *testing.T) {
	r := newRig(t, 80, 24)
	r.runs = func([]string) (string, string, int) { return "first\nsecond\n", "", 0 }
	r.keys(":")
	r.typeText("task list")
	r.keys("enter")
	r.has("second")
	r.keys("q")
	j := job{lines: [][]string{{"task", "list"}}, effect: "read", keys: r.m.presses}
	r.keys("3")
	r.send(ranMsg{j, []output{{out: "first\nsecond\n"}}})
	r.lacks("second")
	r.has("its output is among the messages")
}

func TestEveryPaneCanBeChosen(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("ctrl+p")
	for _, name := range r.m.lists {
		r.has(name)
	}
	r.keys("j", "j", "j", "enter")
	got := r.m.focused().Name()
	expect.Must(t, got == r.m.lists[3], "it went to %s", got)
}

func TestEveryPaneIsCompletedAndHasKeysOfItsOwn(t *testing.T) {
	r := newRig(t, 80, 24)
	words := keymap.Words()
	for name, p := range r.m.panes {
		expect.True(t, slices.Contains(words.Scopes, name), "%s is no scope of keys", name)
		if p.Kind() == pane.List {
			r.keys(":")
			r.typeText(name[:len(name)-1])
			r.has(name + " ")
			r.keys("esc")
		}
	}
}

func TestQIsBackAndNeverLeaves(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("2", "enter", "q", "q", "q", "q", "esc")
	expect.Must(t, !r.quit, "q left the cockpit")
	r.keys("ctrl+c")
	r.has("stop with the engine")
	expect.Must(t, !r.quit, "one ctrl+c left while work runs")
	r.keys("j", "ctrl+c")
	expect.Must(t, !r.quit, "another key between did not count")
	r.press("ctrl+c")
	expect.Must(t, r.quit, "ctrl+c twice did not leave")
}

func TestTenantsAreSwitchedWhole(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("T", "j", "enter")
	expect.Must(t, r.m.tenant == "t_other", "tenant is %s", r.m.tenant)
	r.has("no agents yet")
	r.lacks("need you")
	r.keys("T", "g", "enter")
	r.has("scribe")
}

func TestWideScreensShowTheSelectedThingBeside(t *testing.T) {
	r := newRig(t, 120, 40)
	r.has("changes ● working")
	r.at("large")
	r.has("large ○ idle")
	r.keys("tab")
	p := r.m.focused()
	expect.Must(t, p.Name() == "agent", "focus on %s", p.Name())
	r.keys("q")
	p = r.m.focused()
	expect.Must(t, p.Name() == "fleet", "focus on %s", p.Name())
}

func TestListsAreSortedBothWays(t *testing.T) {
	r := newRig(t, 80, 24)
	first := func(want string) {
		t.Helper()
		got := r.m.Frame().Plain()[3]
		expect.Must(t, strings.Contains(got, want), "the first row is %s, want %s", got, want)
	}
	r.text()
	// STATE, NAME, TASK, WHY, AGE and PROJECT are on the screen. How they are is by need.
	for _, want := range []string{"scribe", "large", "changes", "todo", "0001", "scribe", "changes", "todo", "changes", "0001", "0001", "scribe", "scribe"} {
		r.keys("s", "g")
		first(want)
	}
}

func TestARecordedSessionIsAScript(t *testing.T) {
	dir := t.TempDir()
	r := rigOn(t, newWorld(), 80, 24, Options{Dir: dir})
	r.keys(":")
	r.typeText("record walk.txtar")
	r.keys("enter", "j", "j")
	r.wait(time.Second)
	r.keys(":")
	r.typeText("task why it's")
	r.keys("esc")
	r.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	r.keys("/")
	r.send(tea.PasteMsg{Content: "a b"})
	r.keys("enter", ":")
	r.typeText("record off")
	r.keys("enter")
	got := expect.Of(os.ReadFile(filepath.Join(dir, "walk.txtar")))(t)
	want := `# recorded session
cockpit 80x24
await quiet
key j
await quiet
key j
await quiet
key :
type 'task why it''s'
await quiet
key esc
await quiet
resize 120x40
await quiet
key /
paste 'a b'
await quiet
key enter
await quiet
key :
type 'record off'
await quiet
key enter
await quiet
`
	g := strings.ReplaceAll(string(got), "type 'task why it''s'\nawait quiet\nkey esc\nresize", "type 'task why it''s'\nawait quiet\nkey esc\nawait quiet\nresize")
	expect.Must(t, g == want, "recorded:\n%s\nwant:\n%s", got, want)
}

func TestWriteSavesTheScreen(t *testing.T) {
	dir := t.TempDir()
	r := rigOn(t, newWorld(), 80, 24, Options{Dir: dir})
	r.keys(":")
	r.typeText("write screen.txt")
	r.keys("enter")
	got, err := os.ReadFile(filepath.Join(dir, "screen.txt"))
	expect.Must(t, err == nil && strings.Contains(string(got), "scribe"), "wrote %q, %v", got, err)
}

func TestNoFrameIsDrawnWhenNothingChanged(t *testing.T) {
	r := newRig(t, 80, 24)
	_ = r.m.View()
	r.send(tea.FocusMsg{})
	expect.Must(t, !r.m.dirty, "a message that changes nothing wants a frame")
	reads := r.w.reads
	r.send(bellMsg{}) // another tenant's change
	r.wait(90 * time.Millisecond)
	expect.Must(t, !r.m.dirty && r.w.reads == reads, "another tenant's change was read or drawn")
}

func TestManyBellsAreOneFrame(t *testing.T) {
	r := newRig(t, 80, 24)
	r.wait(time.Second)
	r.send(bellMsg{})
	before := r.w.reads
	for range 50 {
		r.w.change(func() {})
		r.send(bellMsg{})
	}
	r.wait(49 * time.Millisecond)
	expect.Must(t, r.w.reads <= before+2, "%d reads in one frame", r.w.reads-before)
}
