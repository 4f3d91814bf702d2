package ui

import (
	"strings"
	"testing"

	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/ui/pane"
)

// hasTalked gives the agent scribe a log of what it said, thought and planned.
func hasTalked(r *rig) {
	r.change(func() {
		r.w.logs["agent:scribe"] = nil
		for _, l := range [][2]string{
			{"task", "explain the build"},
			{"thought", "The person wants the build.\nI look at the \x1b[31mMakefile first."},
			{"plan", "[x] read the Makefile\n[>] explain it\n[ ] offer help"},
			{"message", "## The build\n\nIt has **two** steps,\nboth in the `Makefile`:\n\n1. `make lint`\n2. `make test`, see [the docs](https://docs.example/test)\n\n```go\nfunc main() { // starts\n\treturn\n}\n```\n> \u202eno more\x1b]8;;http://evil.example\x1b\\ today"},
			{"tool", "runs make"},
		} {
			r.w.logs["agent:scribe"] = append(r.w.logs["agent:scribe"], task.LogLine{Seq: uint64(len(r.w.logs["agent:scribe"]) + 1), Timestamp: start, Level: "INFO", Source: l[0], Message: l[1]})
		}
	})
}

func TestWhatAnAgentSaysIsLaidOutAsMarkdown(t *testing.T) {
	for name, size := range map[string][2]int{"80x24": {80, 24}, "200x50": {200, 50}} {
		r := newRig(t, size[0], size[1])
		hasTalked(r)
		openScribe(r)
		r.keys("l")
		r.has("It has two steps,")
		r.has("both in the Makefile:")
		r.has("the docs (https://docs.example/test)")
		r.golden("agent-talk-" + name)
	}
}

func TestThoughtsAndPlansAreFoldedUntilAKeyOpensThem(t *testing.T) {
	r := newRig(t, 120, 50)
	hasTalked(r)
	openScribe(r)
	r.keys("l")
	folded := "a thought of 2 lines, 11 words"
	r.has(folded)
	r.has("1 of 3 done, now: explain it")
	text := strings.Join(r.m.Frame().Plain(), "\n")
	expect.Must(t, !strings.Contains(text, "Makefile first") && !strings.Contains(text, "offer help"), "shown without being asked for:\n%s", text)
	r.keys("z")
	r.has("I look at the Makefile first.")
	r.has("[ ] offer help")
	r.keys("z")
	text = strings.Join(r.m.Frame().Plain(), "\n")
	expect.Must(t, !strings.Contains(text, "Makefile first"), "still open:\n%s", text)
	r.keys("enter")
	r.has("I look at the Makefile first.")
}

func TestTheAgentsPlanIsALineThatOpens(t *testing.T) {
	r := newRig(t, 160, 60)
	openScribe(r)
	r.has("plan (1 of 3 done)")
	r.has("write NOTES.md")
	text := strings.Join(r.m.Frame().Plain(), "\n")
	expect.Must(t, !strings.Contains(text, "read it again"), "the plan is open:\n%s", text)
	for range 40 {
		if r.m.focused().(pane.Opener).Open(r.m.env()).Kind == "plan" {
			break
		}
		r.keys("j")
	}
	r.keys("enter")
	r.has("read it again")
	r.keys("z")
	text = strings.Join(r.m.Frame().Plain(), "\n")
	expect.Must(t, !strings.Contains(text, "read it again"), "the plan is still open:\n%s", text)
}

func TestATerminalThatOpensLinksGetsThem(t *testing.T) {
	r := newRig(t, 120, 50)
	r.m.opt.Links = true
	hasTalked(r)
	openScribe(r)
	r.keys("l")
	r.has("see the docs")
	out := r.m.Frame().Render(r.m.theme)
	n := strings.Count(out, "\x1b]8;;https://docs.example/test\x1b\\the docs\x1b]8;;\x1b\\")
	expect.True(t, n == 1 && !strings.Contains(out, "evil.example"), "%d links in %q", n, out)
}

func TestALinkOnTheScreenIsChosenByKeyAndCopied(t *testing.T) {
	r := newRig(t, 80, 24)
	hasTalked(r)
	openScribe(r)
	r.keys("l")
	r.has("see the docs")
	expect.True(t, !strings.Contains(r.m.Frame().Render(r.m.theme), "\x1b]8;"), "a terminal that opens no links is told of one")
	r.keys("ctrl+o")
	r.has("Copy a link")
	r.has("https://docs.example/test")
	r.keys("enter")
	expect.Is(t, r.m.copied, "https://docs.example/test", "copied")
}
