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

func TestWhatAnAgentWasGivenIsMasked(t *testing.T) {
	const value = "geheim/value-of-the-test"
	var asked map[string]string
	r := newRuntime(t, Options{Local: keeper.Local{Secrets: func(_ context.Context, tenant string, env map[string]string) (map[string]string, *secret.Mask, error) {
		asked = maps.Clone(env)
		env = maps.Clone(env)
		env["GIVEN"] = value
		return env, secret.NewMask(map[string]string{"S": value}), nil
	}}})
	a := fakeAgent(t, traits{}, settings{Terminal: true})
	a.Dir = t.TempDir()
	a.Env = maps.Clone(a.Env)
	a.Env["GIVEN"] = "@S"
	s := open(t, r, a)
	s.always("approve")
	s.ends(task.Succeeded, "", "say it is "+value, `raw {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u0067eheim\/value-of-the-test"}}`, "run env")
	expect.Is(t, asked["GIVEN"], "@S", "asked for", asked)
	said := strings.Join(append(s.texts("message"), s.texts("log")...), "\n")
	expect.True(t, !strings.Contains(said, "geheim") && strings.Count(said, "[secret S]") >= 3 && strings.Contains(said, "GIVEN=[secret S]"),
		"it said %q", said)
}

func TestAnAgentsCommandsHaveNoCredentialOfItsModel(t *testing.T) {
	const value = "sk-given-to-the-test-0123456789"
	r := newRuntime(t, Options{Local: keeper.Local{Models: recorder(t), Secrets: func(_ context.Context, _ string, env map[string]string) (map[string]string, *secret.Mask, error) {
		env = maps.Clone(env)
		env["OPENAI_API_KEY"] = value
		return env, nil, nil // what it has would be seen
	}}})
	a := fakeAgent(t, traits{}, settings{Terminal: true, RecordModels: []string{"OPENAI_BASE_URL"}})
	a.Dir, a.Env = t.TempDir(), maps.Clone(a.Env)
	a.Env["OPENAI_API_KEY"] = "@KEY"
	s := open(t, r, a)
	s.always("approve")
	var held []string
	for range 2 {
		out := s.ends(task.Succeeded, "", "run printenv OPENAI_API_KEY")
		held = append(held, strings.TrimSpace(out.Text))
		own, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.now().PID))
		expect.True(t, err == nil && !strings.Contains(string(own)+out.Text, value) && strings.Contains(string(own), "OPENAI_API_KEY=sk-"),
			"it has %q: %v", own, err)
		s.heard("log", "the model proxy puts the credentials in: OPENAI_API_KEY")
		s.ends(task.Failed, "agent_killed", "crash")
	}
	expect.True(t, held[0] != held[1] && strings.HasPrefix(held[0], "exit 0: sk-"), "two runs hold %q", held)
}
