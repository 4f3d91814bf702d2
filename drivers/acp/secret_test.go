package acp

import (
	"context"
	"maps"
	"strings"
	"testing"

	"swarmdeck/engine/secret"
	"swarmdeck/engine/swarm"
)

func TestWhatAnAgentWasGivenIsMasked(t *testing.T) {
	const value = "geheim/value-of-the-test"
	var asked map[string]string
	r := newRuntime(t, Options{Secrets: func(_ context.Context, tenant string, env map[string]string) (map[string]string, *secret.Mask, error) {
		asked = maps.Clone(env)
		env = maps.Clone(env)
		env["GIVEN"] = value
		return env, secret.NewMask(map[string]string{"S": value}), nil
	}})
	a := fakeAgent(t, traits{}, settings{Terminal: true})
	a.Dir = t.TempDir()
	a.Env = maps.Clone(a.Env)
	a.Env["GIVEN"] = "@S"
	s := open(t, r, a)
	s.always("approve")
	s.ends(swarm.Succeeded, "", "say it is "+value, `raw {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u0067eheim\/value-of-the-test"}}`, "run env")
	if asked["GIVEN"] != "@S" {
		t.Errorf("asked for %q", asked)
	}
	said := strings.Join(append(s.texts("message"), s.texts("log")...), "\n")
	if strings.Contains(said, "geheim") || strings.Count(said, "[secret S]") < 3 || !strings.Contains(said, "GIVEN=[secret S]") {
		t.Errorf("it said %q", said)
	}
}
