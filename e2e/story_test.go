package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// story is a day of the example: three real agents of different makers on a scripted
// model, and a command, in a copy of this repository. It gives the example's script, its
// first phase alone, and what plays one.
func story(t *testing.T) (script, begin string, play func(script string)) {
	t.Helper()
	run, dir, m := withModel(t, "review", "gemini-cli", "codex-acp", "opencode")
	swarm := filepath.Join(dir, "review", "swarm.yaml")
	codexOnModel(t, swarm, m)
	replaceIn(t, filepath.Join(dir, "codex-acp", "home/.codex/config.toml"), "approval_policy", strings.ReplaceAll(realAgents["codex-acp"].to, "MODEL", m.URL))
	replaceIn(t, swarm, "      GEMINI_API_KEY", "      GOOGLE_GEMINI_BASE_URL: \""+m.URL+"\"\n      GEMINI_API_KEY")
	replaceIn(t, swarm, "      OPENAI_API_KEY", "      OPENAI_BASE_URL: \""+m.URL+"/v1\"\n      OPENAI_API_KEY")
	text := expect.Of(os.ReadFile("examples/review/story.txtar"))(t)
	project := expect.Of(os.Getwd())(t)
	script = "env PROJECT=" + project + "\n" + strings.ReplaceAll(string(text), "up $HERE\n", "up $HERE/review\n")
	begin, _, _ = strings.Cut(script, "\n# Four tasks at once")
	// Where other tests keep the machine busy, agents take minutes for a step.
	patient := strings.NewReplacer("await -t 60s", "await -t 600s", "await -t 120s", "await -t 600s")
	return script, begin, func(script string) { run(patient.Replace(script)) }
}

// TestFourRealAgentsWorkIsReviewedAndTakenOver plays the story, and with
// SWARMDECK_STORY_SIZES=all by keys too, at a small screen and at a large one. One plays
// at once, as four agents are as much as a small machine bears.
func TestFourRealAgentsWorkIsReviewedAndTakenOver(t *testing.T) {
	t.Parallel()
	t.Run("script", func(t *testing.T) {
		script, _, play := story(t)
		play(script)
	})
	var sizes []string
	if os.Getenv("SWARMDECK_STORY_SIZES") == "all" {
		sizes = []string{"80x24", "200x50"}
	}
	for _, size := range sizes {
		t.Run(size, func(t *testing.T) {
			_, begin, play := story(t)
			h := hands{wide: size == "200x50"}
			h.say(begin, "await -t 120s agent scribe status=idle", "cockpit "+size, "await quiet")

			// Four tasks at once: what leaves a tree is denied, what stays asks nobody.
			h.assign("gemini", "RUN: echo Tag the commit, then push the tag. > RELEASE.md")
			h.assign("codex", "RUN: echo Tag it. > RELEASE.md")
			h.assign("opencode", "RUN: git push origin HEAD:docs")
			h.answer("git push", false)
			h.assign("scribe", "say that hands are welcome")
			h.ended("gemini", "codex", "opencode", "scribe")
			h.assign("opencode", "RUN: sed -i \"1s/.*/# Contributing by machine/\" CONTRIBUTING.md")
			h.done("agent.prompt")

			// One of two tries is sent back with a remark, tested and taken.
			h.work("codex", "Tag it.")
			h.work("gemini", "Tag the commit")
			h.keys("}", "j", "j")
			h.enter("c", "Remark", "RUN: sed -i \"s/Tag/Sign and tag/\" RELEASE.md")
			h.keys("S")
			h.done("agent.prompt")
			h.work("gemini", "Sign and tag the commit")
			h.keys("T")
			h.done("tree.check")
			h.merge("Say how a release is made")
			h.work("scribe", "Contributing by hand")
			h.merge("Welcome hands")

			// The third changed the same line: what conflicts goes to its agent.
			h.work("opencode", "Contributing by machine")
			h.keys("U")
			h.say("await -t 60s screen /both sides|<<<<<<</", "await quiet")
			h.work("opencode", "<<<<<<<")
			h.enter("c", "Remark", "RUN: sed -i -e \"1i # Contributing by hand and by machine\" -e \"/^<<<<<<< /,/^>>>>>>> /d\" CONTRIBUTING.md")
			h.keys("S")
			h.done("agent.prompt")
			h.work("opencode", "by hand and by machine")
			h.say("project remote shop origin $WORK/remote.git")
			h.enter(":", "", "push opencode --to machines")
			h.answer("machines", true)
			h.done("tree.push")
			h.work("opencode", "by hand and by machine")
			h.merge("Welcome machines")
			h.say("exec git -C $WORK/repo log --first-parent -3 --format=%s", "stdout '^Welcome machines\\nWelcome hands\\nSay how a release is made$'",
				"exec git -C $WORK/repo status --short", "! stdout .",
				"exec git -C $WORK/repo fsck --full", "exec git -C $WORK/remote.git fsck --full", "audit verify", "audit reconcile")
			play(h.String())
		})
	}
}

// hands are a person's, who has only keys: what they do is lines of a script.
type hands struct {
	strings.Builder
	wide bool // a list stands beside what is under its cursor
}

func (h *hands) say(lines ...string) {
	for _, line := range lines {
		h.WriteString(line + "\n")
	}
}

func (h *hands) keys(keys ...string) {
	for _, k := range keys {
		h.say("await quiet", "key "+k)
	}
}

// enter opens what asks for a text by a key, types it and sends it.
func (h *hands) enter(key, titled, text string) {
	h.keys(key)
	if titled != "" {
		h.say("await screen /" + titled + "/")
	}
	h.say("type '"+strings.ReplaceAll(text, "'", "''")+"'", "key enter")
}

// at finds an agent in the fleet.
func (h *hands) at(agent string) {
	h.keys("1", "/", "ctrl+u")
	h.say("type '"+agent+"'", "key enter", "await screen /fleet 1.*"+agent+"/", "await quiet")
}

func (h *hands) assign(agent, work string) {
	h.at(agent)
	h.enter("d", "Work", work)
}

// card goes to the one open question.
func (h *hands) card(about string) {
	h.say("await -t 120s approval 1", "await status /1 need you/", "await quiet", "key i", "await screen /approval . open/", "await screen '/"+about+"/'")
	if h.wide {
		h.keys("enter")
	}
}

// answer reads the one open question to its end and answers it.
func (h *hands) answer(about string, approve bool) {
	h.card(about)
	if approve {
		h.keys("G")
		h.enter("a", "Reason", "it is as it should be")
		h.say("await screen /sure/")
		h.keys("y")
	} else {
		h.enter("x", "Reason to deny", "nothing is pushed yet")
	}
	h.say("await approval 0")
}

// ended waits for the end of what agents do.
func (h *hands) ended(agents ...string) {
	for _, a := range agents {
		h.say(fmt.Sprintf("await -t 120s agent %s status=idle last_status=succeeded", a))
	}
}

// done waits for the end of the newest task of a kind.
func (h *hands) done(kind string) {
	h.say("await quiet", "task list --kind "+kind+" -o json --page-size 1", "capture T task_id", "await -t 120s task $T status=succeeded")
}

// work shows what an agent changed in its tree.
func (h *hands) work(agent, shown string) {
	h.at(agent)
	h.keys("V")
	h.say("await -t 60s screen '/"+shown+"/'", "await quiet")
}

// merge takes what is shown over.
func (h *hands) merge(message string) {
	h.enter("M", "Message of the commit", message)
	h.card("would +take")
	h.keys("G", "a")
	h.say("await -t 60s approval 0")
	h.done("tree.merge")
}
