package exec

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
)

// playModels is an agent that does what its task says, word by word: "ask" its
// model, tell a usage of so many tokens, or "late": ask once the file "over" is
// there, after its result.
func playModels() int {
	ask := func() {
		res, err := http.Post(os.Getenv("OPENAI_BASE_URL")+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"m-1","messages":[{"role":"user","content":"SAY: hello"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var t taskLine
		if core.DecodeStored(in.Bytes(), &t) != nil {
			continue
		}
		late := false
		for _, word := range strings.Fields(t.Message) {
			switch word {
			case "ask":
				ask()
			case "late":
				late = true
			default:
				fmt.Printf("{\"type\":\"usage\",\"tokens\":%s}\n", word)
			}
		}
		fmt.Println(`{"type":"result","status":"succeeded"}`)
		if late {
			for _, err := os.Stat("over"); err != nil; _, err = os.Stat("over") {
				time.Sleep(time.Millisecond)
			}
			ask()
		}
	}
	return 0
}

func TestTokensThatWereSeenAndToldAreCountedOnce(t *testing.T) {
	m, err := model.Start(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	dir := t.TempDir()
	proxy := modelproxy.New()
	t.Cleanup(func() { _ = proxy.Close() })
	r, err := NewRuntime(newSupervisor(t), RuntimeOptions{Dir: dir, Models: proxy})
	if err != nil {
		t.Fatal(err)
	}
	a := fleet.Agent{
		Name: "a", TenantID: "t_test", Command: []string{os.Args[0]}, Options: core.Raw(`{"record_models":["OPENAI_BASE_URL"]}`),
		Env: map[string]string{"EXEC_TEST_ROLE": "models", "OPENAI_BASE_URL": m.URL},
	}
	w := &watch{}
	h, err := r.Open(context.Background(), a, w.notify)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for _, c := range []struct {
		task  string
		count int64
		calls int
	}{
		{"ask", 120, 1},
		{"ask 120", 120, 1}, // it tells what was seen
		{"120 ask", 120, 1}, // whoever is first
		{"500 ask", 500, 1}, // it asks others too, past the recorder
		{"ask ask 100", 240, 2},
		{"70", 70, 0},
		{"late", 0, 0},
		{"1", 120, 0}, // what was asked between the two
	} {
		w.mu.Lock()
		w.events = nil
		w.mu.Unlock()
		if out := ask(t, h, w.prompt(c.task)); out.Status != swarm.Succeeded {
			t.Fatalf("%s: %+v", c.task, out)
		}
		if c.task == "late" {
			if err := os.WriteFile(filepath.Join(dir, "over"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it has asked late", func() bool {
				now := h.(*agent)
				now.mu.Lock()
				defer now.mu.Unlock()
				return now.owed.Tokens > 0
			})
		}
		w.mu.Lock()
		var sum int64
		var types []string
		for _, e := range w.events {
			switch e.Type {
			case "usage":
				sum += e.Tokens
			case "model_request", "model_response":
				types = append(types, e.Type+" "+e.Model.Name)
			}
		}
		w.mu.Unlock()
		if want := slices.Repeat([]string{"model_request m-1", "model_response m-1"}, c.calls); sum != c.count || !slices.Equal(types, want) {
			t.Errorf("%s: %d tokens, want %d; %v", c.task, sum, c.count, types)
		}
	}
}

func TestModelsAreRecordedOnlyWhereThatCanBe(t *testing.T) {
	r, err := NewRuntime(newSupervisor(t), RuntimeOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Check(fleet.Create{Name: "a", Command: []string{"true"}, Options: core.Raw(`{"record_models":["MY_URL"]}`)})
	if err == nil || !strings.Contains(err.Error(), "options.record_models") {
		t.Error(err)
	}
	a := fleet.Agent{Name: "a", TenantID: "t_test", Command: []string{"true"}, Options: core.Raw(`{"record_models":["OPENAI_BASE_URL"]}`)}
	if _, err := r.Open(context.Background(), a, func(fleet.Health) {}); err == nil || !strings.Contains(err.Error(), "not recorded here") {
		t.Error(err)
	}
}
