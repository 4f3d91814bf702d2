package coder

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// inWorkspace is an agent in a terminal that notes what it is told, and each
// interrupt. It works at "do NAME STEPS" for 0.3 s a step.
const inWorkspace = `
trap 'echo interrupted >>"$NOTES"; stop=1' INT
printf "> "
while :; do
	stop=
	read -r line || { [ -n "$stop" ] && continue; exit; }
	line=${line#*200~}
	line=${line%%"$(printf '\033')"*}
	echo "told $line" >>"$NOTES"
	set -- $line
	n=0
	while [ "$n" -lt "${3:-0}" ]; do n=$((n + 1)); echo "step $n of $2"; sleep 0.3; done
	echo "did ${2:-nothing}"
	printf "> "
done`

// terminal is a real Coder's workspace with a real agentapi in it, whose agent is
// inWorkspace.
type terminal struct {
	*machine
	t     *testing.T
	notes string
}

func newTerminal(t *testing.T, d *deployment) *terminal {
	t.Helper()
	binary := os.Getenv(agentapiEnv)
	if binary == "" {
		t.Skip(agentapiEnv + " names no agentapi to test with: make agentapi builds one")
	}
	dir := t.TempDir()
	w := &terminal{t: t, notes: filepath.Join(dir, "notes")}
	w.machine = setUp(t, d, d.token, nil, func(addr string) *exec.Cmd {
		_, port, _ := strings.Cut(addr, ":")
		cmd := exec.Command(binary, "server", "--allowed-hosts", "*", "--port", port, "--", "sh", "-c", inWorkspace)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir, "NOTES="+w.notes)
		return cmd
	})
	return w
}

// told is what the agent noted, line by line.
func (w *terminal) told() []string {
	w.t.Helper()
	data, err := os.ReadFile(w.notes)
	expect.Must(w.t, err == nil || os.IsNotExist(err), "%v", err)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// conversation is what agentapi has, at once; it does not answer while a message is
// being typed.
func (w *terminal) conversation(within time.Duration) (all []message, err error) {
	client := http.Client{Timeout: within}
	resp, err := client.Get("http://" + w.role.Listen + "/messages")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var got struct{ Messages []message }
	return got.Messages, json.NewDecoder(resp.Body).Decode(&got)
}

// users are the texts that somebody gave the agent.
func (w *terminal) users() (texts []string) {
	w.t.Helper()
	all := expect.Of(w.conversation(time.Minute))(w.t)
	for _, m := range all {
		if m.Role == "user" {
			texts = append(texts, strings.TrimSpace(m.Content))
		}
	}
	return texts
}

// stage says how far a text has come: "given", "sending", "at work" or "done".
func (w *terminal) stage(text string) string {
	all, err := w.conversation(100 * time.Millisecond)
	if err != nil {
		return "sending"
	}
	name := strings.Fields(text)[1]
	at := "given"
	for _, m := range all {
		switch {
		case m.Role == "user" && strings.TrimSpace(m.Content) == text:
			at = "at work"
		case m.Role == "agent" && strings.Contains(m.Content, "did "+name):
			at = "done"
		}
	}
	return at
}

// ask gives the agent a message as Coder's own page does: not through swarmdeck. It
// returns when the agent has begun on it.
func (w *terminal) ask(text string) {
	w.t.Helper()
	body := expect.Of(json.Marshal(map[string]string{"type": "user", "content": text}))(w.t)
	expect.Await(w.t, "agentapi takes "+text, func() bool {
		resp := expect.Of(http.Post("http://"+w.role.Listen+"/message", "application/json", bytes.NewReader(body)))(w.t)
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}
