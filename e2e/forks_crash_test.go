package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// TestAKilledForkIsDoneOnceOrNotAtAll kills the engine at any time of a fork,
// and starts it anew: then the fork is there once, whole and recorded once, or
// there is nothing of it.
func TestAKilledForkIsDoneOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	const rounds = 5
	u := newPlayer(t)
	dir := t.TempDir()
	work, data := filepath.Join(dir, "work"), filepath.Join(dir, "swarm.db")
	expect.No(t, os.Mkdir(work, 0o755))
	for i := range 50 {
		expect.No(t, os.WriteFile(filepath.Join(work, fmt.Sprint(i)), []byte(fmt.Sprint("file ", i)), 0o600))
	}
	do := func(args ...string) []map[string]any {
		t.Helper()
		cmd := u.command(append([]string{"--data", data, "-o", "json"}, args...)...)
		var bad bytes.Buffer
		cmd.Stderr = &bad
		out, err := cmd.Output()
		expect.Must(t, err == nil, "%v: %v\n%s", args, err, bad.String())
		var all []map[string]any
		for line := range strings.Lines(string(out)) {
			var v map[string]any
			expect.No(t, json.Unmarshal([]byte(line), &v), args, line)
			all = append(all, v)
		}
		return all
	}
	do("agent", "create", "ada", "--project", "p", "--dir", work, "--", "cat")
	at := do("dag", "emit", `{"kind":"run_started","ts":"2126-01-02T03:04:05Z","run_id":"r-1","agent_id":"ada"}`)[0]["event_id"].(string)
	began := time.Now()
	do("dag", "fork", "ada", "--at", at, "--name", "whole", "--task", "")
	long := time.Since(began)
	r := rand.New(rand.NewPCG(1, 2))
	killed := 0
	for i := range rounds {
		name := fmt.Sprintf("fork-%d", i)
		cmd := u.command("dag", "fork", "ada", "--at", at, "--name", name, "--task", "", "--data", data)
		expect.No(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(r.Int64N(int64(long))), func() { _ = cmd.Process.Kill() }) // any time will do
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
		for _, in := range do("dag", "intents", "--open") {
			do("dag", "intent", "wait", in["intent_id"].(string), "--timeout", patience.String())
		}
		told := 0
		for _, f := range do("dag", "forks", "--page-size", "100") {
			if f["to_branch"] == name {
				told++
			}
		}
		var fork map[string]any
		for _, a := range do("agent", "list", "--page-size", "100") {
			if a["name"] == name {
				fork = a
			}
		}
		switch {
		case fork == nil:
			left, _ := filepath.Glob(filepath.Join(data+".run/trees", "*", name, "*"))
			expect.True(t, told == 0 && len(left) == 0, "%s: no agent, but it was recorded %d times and left %v", name, told, left)
		case told != 1:
			t.Errorf("%s: recorded %d times", name, told)
		default:
			for i := range 50 {
				path := filepath.Join(fork["dir"].(string), fmt.Sprint(i))
				text, err := os.ReadFile(path)
				expect.Must(t, string(text) == fmt.Sprint("file ", i), "%s: %s holds %q: %v", name, path, text, err)
			}
		}
	}
	t.Logf("%d of %d were killed before their end", killed, rounds)
	for _, d := range do("audit", "reconcile") {
		expect.True(t, d["deltas"] == nil || d["deltas"] == 0.0, "unexplained: %v", d)
	}
}
