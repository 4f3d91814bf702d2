package acp

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

const modelKey = "sk-given-to-the-test-0123456789"

// recordedCrew opens agents that share one process, whose model is recorded.
func recordedCrew(t *testing.T, n int) (all []*stand, credentials func() map[string]int) {
	t.Helper()
	m := serveModel(t)
	r, dir := newRuntime(t, Options{Local: keeper.Local{Models: recorder(t), Secrets: func(_ context.Context, _ string, env map[string]string) (map[string]string, *secret.Mask, error) {
		env = maps.Clone(env)
		env["OPENAI_API_KEY"] = modelKey
		return env, nil, nil // what it has would be seen
	}}}), t.TempDir()
	for i := range n {
		a := fakeAgent(t, traits{}, settings{Shared: true, Terminal: true, RecordModels: []string{"OPENAI_BASE_URL"}})
		a.Name, a.Dir, a.Env = fmt.Sprintf("a%d", i), dir, maps.Clone(a.Env)
		a.Env["OPENAI_API_KEY"], a.Env["OPENAI_BASE_URL"] = "@KEY", m.URL
		all = append(all, open(t, r, a))
	}
	return all, func() map[string]int {
		seen := map[string]int{}
		for _, r := range m.Requests() {
			seen[r.Credential]++
		}
		return seen
	}
}

// spent are the tokens that an agent was told to have used.
func (s *stand) spent() (sum int64) {
	for _, e := range s.of("usage") {
		sum += e.Tokens
	}
	return sum
}

func TestASharedProcessHasNoCredentialOfItsModel(t *testing.T) {
	all, credentials := recordedCrew(t, 2)
	for _, s := range all {
		s.always("approve")
		out := s.ends(task.Succeeded, "", "run printenv OPENAI_API_KEY", "model mine")
		own, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.now().PID))
		expect.True(t, err == nil && !strings.Contains(string(own)+out.Text, modelKey) && strings.Contains(string(own), "OPENAI_API_KEY=sk-"),
			"it has %q: %v", own, err)
		got := s.spent()
		expect.True(t, got == 120 && len(s.of("model_request")) == 1 && len(s.of("model_response")) == 1, "%d tokens, %+v", got, s.of(""))
	}
	all[0].heard("log", "the model proxy puts the credentials in: OPENAI_API_KEY")
	expect.Is(t, all[0].now().PID, all[1].now().PID, "they have a process each")
	got := credentials()
	expect.True(t, len(got) == 1 && got[modelKey] == 2, "the model was shown %v", got)
}

func TestWhatASharedProcessAsksIsItsSessionsAgent(t *testing.T) {
	all, _ := recordedCrew(t, 2)
	ask := func(how string) {
		t.Helper()
		for _, s := range all {
			s.mu.Lock()
			s.events = nil
			s.mu.Unlock()
		}
		first := all[0].start("tool execute {}", "model "+how, "tool execute {}")
		second := all[1].start("tool execute {}")
		for _, s := range all {
			expect.Await(t, "both are at work", func() bool { return len(s.of("tool_request")) == 1 })
		}
		all[0].release("approve")
		expect.Await(t, "it has asked its model", func() bool { return len(all[0].of("tool_request")) == 2 })
		all[0].release("approve")
		all[0].wait(first)
		all[1].release("approve")
		all[1].wait(second)
	}
	told := func(s *stand) bool {
		return strings.Contains(strings.Join(s.texts("log"), "\n"), "for which of its 2 agents can't be told: ok, 120 tokens, of which 60 count for this one")
	}
	ask("mine")
	if a, b := all[0], all[1]; a.spent() != 120 || len(a.of("model_request")) != 1 || b.spent() != 0 || len(b.of("model_request")) != 0 {
		t.Errorf("its session names it: %d and %d tokens", a.spent(), b.spent())
	}
	for _, how := range []string{"", "nobody's"} {
		ask(how)
		for _, s := range all {
			if s.spent() != 60 || len(s.of("model_request")) != 0 || !told(s) {
				t.Errorf("%q: %d tokens, log %q", how, s.spent(), s.texts("log"))
			}
		}
	}
	all[1].ends(task.Succeeded, "", "say idle")
	all[0].mu.Lock()
	all[0].events = nil
	all[0].mu.Unlock()
	all[0].ends(task.Succeeded, "", "model ")
	if got := all[0].of("model_request"); all[0].spent() != 120 || len(got) != 1 {
		t.Errorf("the only one at work: %d tokens", all[0].spent())
	}
}

func TestAgentsThatAreRecordedShareNoProcessWithOthers(t *testing.T) {
	r := newRuntime(t, Options{Local: keeper.Local{Models: recorder(t)}})
	place := func(models ...string) string {
		a := fakeAgent(t, traits{}, settings{Shared: true, RecordModels: models})
		p := expect.Of(r.placeOf(a))(t)
		return p.key
	}
	first, again := place("OPENAI_BASE_URL"), place("OPENAI_BASE_URL")
	expect.True(t, place() != first && first == again, "the key of their process does not tell them apart")
}
