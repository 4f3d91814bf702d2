package exec

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// playModels is an agent that does what its task says, word by word: "ask" its
// model, tell a usage of so many tokens, write all "environments" that it can
// read to a file, fail unless it comes to what ELSEWHERE names, or "late": ask
// once the file "over" is there, after its result.
func playModels() int {
	ask := func() {
		req, err := http.NewRequest(http.MethodPost, os.Getenv("OPENAI_BASE_URL")+"/v1/chat/completions",
			strings.NewReader(`{"model":"m-1","messages":[{"role":"user","content":"SAY: hello"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	in := bufio.NewScanner(os.Stdin)
tasks:
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
			case "environments":
				var all []byte
				files, _ := filepath.Glob("/proc/[0-9]*/environ")
				for _, file := range files {
					one, _ := os.ReadFile(file)
					all = append(all, one...)
				}
				if err := os.WriteFile("environments", all, 0o600); err != nil {
					fmt.Println(err)
				}
			case "elsewhere":
				if _, err := http.Get(os.Getenv("ELSEWHERE")); err != nil {
					fmt.Printf("{\"type\":\"result\",\"status\":\"failed\",\"error\":%q}\n", err)
					continue tasks
				}
			case "late":
				late = true
			default:
				fmt.Printf("{\"type\":\"usage\",\"tokens\":%s}\n", word)
			}
		}
		fmt.Println(`{"type":"result","status":"succeeded"}`)
		if late {
			for _, err := os.Stat("over"); err != nil; _, err = os.Stat("over") {
				runtime.Gosched()
			}
			ask()
		}
	}
	return 0
}

func TestTokensThatWereSeenAndToldAreCountedOnce(t *testing.T) {
	m := expect.Of(model.Start(model.Options{}))(t)
	t.Cleanup(m.Close)
	dir := t.TempDir()
	proxy := modelproxy.New()
	t.Cleanup(func() { _ = proxy.Close() })
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: dir, Models: proxy}))(t)
	a := fleet.Agent{
		Name: "a", TenantID: "t_test", Command: []string{os.Args[0]}, Options: core.Raw(`{"record_models":["OPENAI_BASE_URL"]}`),
		Env: map[string]string{"EXEC_TEST_ROLE": "models", "OPENAI_BASE_URL": m.URL},
	}
	w := &watch{}
	h := expect.Of(r.Open(context.Background(), a, w.notify))(t)
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
		out := ask(t, h, w.prompt(c.task))
		expect.Must(t, out.Status == task.Succeeded, "%s: %+v", c.task, out)
		if c.task == "late" {
			expect.No(t, os.WriteFile(filepath.Join(dir, "over"), nil, 0o600))
			expect.Await(t, "it has asked late", func() bool {
				now := h.(*agent)
				now.Mu.Lock()
				defer now.Mu.Unlock()
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
		want := slices.Repeat([]string{"model_request m-1", "model_response m-1"}, c.calls)
		expect.True(t, sum == c.count && slices.Equal(types, want), "%s: %d tokens, want %d; %v", c.task, sum, c.count, types)
	}
}

// TestAnAgentHasNoCredentialOfItsModel looks at it from inside and, since it
// may read less than is there, from outside.
func TestAnAgentHasNoCredentialOfItsModel(t *testing.T) {
	m := expect.Of(model.Start(model.Options{}))(t)
	t.Cleanup(m.Close)
	const given, clear = "sk-given-to-the-test-0123456789", "sk-other-of-the-test-0123456789"
	proxy := modelproxy.New()
	t.Cleanup(func() { _ = proxy.Close() })
	dir := t.TempDir()
	r, err := NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: dir, Models: proxy, Secrets: func(_ context.Context, _ string, env map[string]string) (map[string]string, *secret.Mask, error) {
		env = maps.Clone(env)
		if env["OPENAI_API_KEY"] == "@KEY" {
			env["OPENAI_API_KEY"] = given
		}
		return env, secret.NewMask(map[string]string{"KEY": given}), nil
	}})
	expect.No(t, err)
	const named = `{"record_models":["OPENAI_BASE_URL"]}`
	for name, key := range map[string]struct{ text, value, options string }{
		"referring": {"@KEY", given, named}, "in-clear": {clear, clear, named}, "without-the-option": {clear, clear, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watch{}
			h, err := r.Open(t.Context(), fleet.Agent{
				Name: name, TenantID: "t_test", Command: []string{os.Args[0]}, Options: core.Raw(key.options),
				Env: map[string]string{"EXEC_TEST_ROLE": "models", "OPENAI_BASE_URL": m.URL, "OPENAI_API_KEY": key.text},
			}, w.notify)
			expect.No(t, err)
			t.Cleanup(func() { _ = h.Close() })
			before := len(m.Requests())
			out := ask(t, h, w.prompt("ask environments"))
			expect.Must(t, out.Status == task.Succeeded, "%+v", out)
			all := m.Requests()[before:]
			expect.True(t, len(all) == 1 && all[0].Credential == key.value, "the model was shown %+v", all)
			inside, err := os.ReadFile(filepath.Join(dir, "environments"))
			expect.True(t, err == nil && strings.Contains(string(inside), "OPENAI_API_KEY=sk-") && !strings.Contains(string(inside), key.value),
				"%q %v", inside, err)
			now := h.(*agent)
			now.Mu.Lock()
			pid := now.PID()
			now.Mu.Unlock()
			outside, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			expect.True(t, err == nil && strings.Contains(string(outside), "OPENAI_API_KEY=sk-") && !strings.Contains(string(outside), key.value),
				"%q %v", outside, err)
			w.mu.Lock()
			defer w.mu.Unlock()
			told := fmt.Sprintf("%+v", w.events)
			if !strings.Contains(told, "placeholders for which the model proxy puts the credentials in: OPENAI_API_KEY") || strings.Contains(told, key.value) {
				t.Error(told)
			}
		})
	}
}

func TestAnAgentDoesNotReachAnothersModel(t *testing.T) {
	m := expect.Of(model.Start(model.Options{}))(t)
	t.Cleanup(m.Close)
	proxy := modelproxy.New()
	t.Cleanup(func() { _ = proxy.Close() })
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: t.TempDir(), Models: proxy}))(t)
	a := fleet.Agent{
		Name: "one", TenantID: "t_test", Command: []string{os.Args[0]}, Options: core.Raw(`{"record_models":["OPENAI_BASE_URL"]}`),
		Env: map[string]string{"EXEC_TEST_ROLE": "models", "OPENAI_BASE_URL": m.URL},
	}
	begin := func() (*agent, *watch) {
		w := &watch{}
		h := expect.Of(r.Open(t.Context(), a, w.notify))(t)
		t.Cleanup(func() { _ = h.Close() })
		return h.(*agent), w
	}
	one, _ := begin()
	a.Name, a.Env = "two", maps.Clone(a.Env)
	a.Env["ELSEWHERE"] = one.Spec.Env["OPENAI_BASE_URL"] + "/v1/models"
	two, w := begin()
	out := ask(t, two, w.prompt("ask elsewhere"))
	expect.True(t, out.Error != nil && strings.Contains(out.Error.Message, "connection refused"), "%+v", out)
	expect.Is(t, len(m.Requests()), 1, "requests came to the model")
}

func TestModelsAreRecordedOnlyWhereThatCanBe(t *testing.T) {
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: t.TempDir()}))(t)
	expect.Says(t, r.Check(fleet.Create{Name: "a", Command: []string{"true"}, Options: core.Raw(`{"record_models":["MY_URL"]}`)}), "options.record_models")
	a := fleet.Agent{Name: "a", TenantID: "t_test", Command: []string{"true"}, Options: core.Raw(`{"record_models":["OPENAI_BASE_URL"]}`)}
	expect.Says(t, expect.Fault(r.Open(context.Background(), a, func(fleet.Health) {})), "not recorded here")
}
