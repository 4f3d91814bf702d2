package acp

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// TestTheRecordOfRecordedWiresIsTrue plays what the real agents once said, to an engine
// that does what was done then. What its record says is what the wire shows.
func TestTheRecordOfRecordedWiresIsTrue(t *testing.T) {
	for name, mode := range playedAs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, wires := newPlayedDesk(t, name, mode, scenarios())
			for i, sc := range scenarios() {
				d.run(t, sc, wires[i])
			}
			expect.Of(d.eng.Audit.Reconcile(t.Context(), d.by.Tenant))(t)
		})
	}
}

// playedAs is the mode that each recorded agent is set to.
func playedAs() map[string]string {
	return map[string]string{
		"gemini-cli": "default", "codex-acp": "", "opencode": "build", "qwen-code": "default", "claude-agent-acp": "default", "codex-acp-2": "read-only",
	}
}

// played is an agent that plays the wire of a directory.
func played(t *testing.T, name, dir, mode string) fleet.Agent {
	t.Helper()
	self := expect.Of(os.Executable())(t)
	return fleet.Agent{
		Name: name, Dir: t.TempDir(), Command: []string{self}, Env: map[string]string{"ACP_TEST_PLAY": dir},
		Options: core.MustEncode(settings{Mode: mode}),
	}
}

// newPlayedDesk has an agent that plays its wires of some scenarios, which are given too.
// Their processes begin as the first of all does.
func newPlayedDesk(t *testing.T, name, mode string, some []scenario) (d *desk, wires [][]wireLine) {
	t.Helper()
	dir := t.TempDir()
	a := played(t, name, dir, mode)
	var score []byte
	for i, sc := range some {
		data := expect.Of(os.ReadFile(wirePath(name, sc.name)))(t)
		if first := scenarios()[0].name; i == 0 && sc.name != first {
			greeting := expect.Of(os.ReadFile(wirePath(name, first)))(t)
			before, _, _ := bytes.Cut(greeting, []byte(`"method":"session/prompt"`))
			data = append(before[:bytes.LastIndexByte(before, '\n')+1], data...)
		}
		score = append(score, data...)
		wires = append(wires, readWire(t, bytes.ReplaceAll(data, []byte("$DIR"), []byte(a.Dir))))
	}
	expect.No(t, os.WriteFile(filepath.Join(dir, scoreFile), score, 0o644))
	d = newDesk(t, a, dir, nil, nil)
	d.late = 8 * time.Second
	return d, wires
}

// TestADifferenceFromTheWireIsTold has a record that says what the wire shows, and then
// one thing else at a time.
func TestADifferenceFromTheWireIsTold(t *testing.T) {
	data := expect.Of(os.ReadFile(wirePath("qwen-code", "approved")))(t)
	show := shows(readWire(t, data))
	same := func() story {
		c := show.calls[0]
		return story{
			prompts: show.told, said: show.said, results: 1, exit: "success", unbroken: true, spent: show.tokens, split: show.split,
			calls: []toldCall{{id: c.id, status: "ok", asked: true, output: c.output}},
		}
	}
	bad := show.differences(same(), "", false)
	expect.Must(t, len(bad) == 0 && show.tokens != 0 && show.split != (fleet.Split{}), "%q of %+v", bad, show)
	for name, change := range map[string]func(*story){
		"a prompt": func(s *story) { s.prompts = append(s.prompts, "more") }, "an answer": func(s *story) { s.said += "." }, "a result": func(s *story) { s.results++ },
		"the exit": func(s *story) { s.exit = "error" }, "the lineage": func(s *story) { s.unbroken = false }, "the tokens": func(s *story) { s.spent++ }, "the split": func(s *story) { s.split.Cached++ },
		"a call": func(s *story) { s.calls = nil }, "its id": func(s *story) { s.calls[0].id = "x" }, "its status": func(s *story) { s.calls[0].status = "error" },
		"that it asked": func(s *story) { s.calls[0].asked = false }, "its output": func(s *story) { s.calls[0].output = "{}" },
	} {
		s := same()
		change(&s)
		expect.Is(t, len(show.differences(s, "", false)), 1, name)
	}
}
