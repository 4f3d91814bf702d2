package coder

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// agentapiEnv names the real agentapi, which make agentapi builds.
const agentapiEnv = "SWARMDECK_AGENTAPI"

// inTerminal is an agent that agentapi keeps in a terminal: it answers a line,
// and works at "count" until it is interrupted.
const inTerminal = `
trap "stop=1" INT
printf "> "
while :; do
	stop=
	read -r line || { [ -n "$stop" ] && continue; exit; }
	line=${line#*200~}
	line=${line%%"$(printf '\033')"*}
	case $line in
	count) n=0; while [ -z "$stop" ]; do n=$((n + 1)); echo "counted to $n"; sleep 0.1; done; echo interrupted ;;
	*) echo "it heard $line" ;;
	esac
	printf "> "
done`

// server is a real agentapi.
type server struct {
	cmd *exec.Cmd
	url *url.URL
}

// counting waits until the agent's last words are of the work that goes on and on.
func (s *server) counting(t *testing.T) {
	t.Helper()
	expect.Await(t, "it counts", func() bool {
		var got struct{ Messages []message }
		resp := expect.Of(http.Get(s.url.JoinPath("messages").String()))(t)
		err := json.NewDecoder(resp.Body).Decode(&got)
		resp.Body.Close()
		expect.No(t, err)
		last := got.Messages[len(got.Messages)-1].Content
		return strings.Contains(last, "counted to") && !strings.Contains(last, "interrupted")
	})
}

// realAgentapi is a deployment whose agent is behind a real agentapi.
func realAgentapi(t *testing.T) (*played, *server) {
	t.Helper()
	binary := os.Getenv(agentapiEnv)
	if binary == "" {
		t.Skip(agentapiEnv + " names no agentapi to test with: make agentapi builds one")
	}
	port := expect.Of(freePort())(t)
	p, at := newPlayed(t), &url.URL{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(port)}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // it is asked before it listens
	p.app = proxy
	cmd := exec.Command(binary, "server", "--allowed-hosts", "*", "--port", strconv.Itoa(port), "--", "sh", "-c", inTerminal)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	ended := expect.Of(start(cmd))(t)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("agentapi says:\n%s", &said)
		}
	})
	return p, &server{cmd, at}
}

func TestRealAgentapiTakesTasksAndIsInterrupted(t *testing.T) {
	p, s := realAgentapi(t)
	w := openAgent(t, newRuntime(t, Options{Grace: 20 * time.Second}), fleet.Agent{
		Name: "bob", TenantID: "t_test", Project: "p", Role: "r", CreatedAt: time.Now(),
		Options: core.MustEncode(settings{URL: p.srv.URL, Adopt: true, Interrupt: "ctrl-c"}),
	})
	w.await(fleet.Idle, "")
	for _, text := range []string{"one", " two\n"} { // what is around it is not the agent's
		out, err := w.Prompt(context.Background(), w.prompt(text))
		if want := "it heard " + strings.TrimSpace(text); err != nil || out.Status != task.Succeeded || !strings.Contains(string(out.Output), want) {
			t.Fatalf("%q: %s %s %+v %v", text, out.Status, out.Output, out.Error, err)
		}
	}
	said := w.said()
	expect.True(t, strings.Contains(said, "message ") && strings.Contains(said, "it heard one") && strings.Contains(said, "it heard two"), "said %q", said)
	done := make(chan task.Outcome, 1)
	go func() {
		out, _ := w.Prompt(context.Background(), w.prompt("count"))
		done <- out
	}()
	s.counting(t)
	w.Interrupt()
	out := <-done
	expect.True(t, out.Status == task.Cancelled, "interrupted: %+v", out)
	w.await(fleet.Idle, "")
	out, err := w.Prompt(context.Background(), w.prompt("three"))
	expect.True(t, err == nil && strings.Contains(string(out.Output), "it heard three"), "after an interrupt: %+v %v", out, err)
	go func() {
		out, _ := w.Prompt(context.Background(), w.prompt("count"))
		done <- out
	}()
	s.counting(t)
	expect.No(t, syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL))
	out = <-done
	expect.True(t, out.Status == task.Failed && out.Error.Code == "agent_lost" && out.Error.Retryable, "with agentapi gone: %+v %+v", out, out.Error)
}
