package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFourAgentsWorkIsReviewedAndTakenOver plays the example's day in a copy of this
// repository: three real agents of different makers on a scripted model, and a command.
func TestFourAgentsWorkIsReviewedAndTakenOver(t *testing.T) {
	t.Parallel()
	project, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	play, dir, m := withModel(t, "review", "gemini-cli", "codex-acp", "opencode")
	swarm := filepath.Join(dir, "review", "swarm.yaml")
	codexOnModel(t, swarm, m)
	replaceIn(t, filepath.Join(dir, "codex-acp", "home/.codex/config.toml"), "approval_policy", strings.ReplaceAll(realAgents["codex-acp"].to, "MODEL", m.URL))
	replaceIn(t, swarm, "      GEMINI_API_KEY", "      GOOGLE_GEMINI_BASE_URL: \""+m.URL+"\"\n      GEMINI_API_KEY")
	replaceIn(t, swarm, "      OPENAI_API_KEY", "      OPENAI_BASE_URL: \""+m.URL+"/v1\"\n      OPENAI_API_KEY")
	story, err := os.ReadFile("examples/review/story.txtar")
	if err != nil {
		t.Fatal(err)
	}
	play("env PROJECT=" + project + "\n" + strings.ReplaceAll(string(story), "up $HERE\n", "up $HERE/review\n"))
}
