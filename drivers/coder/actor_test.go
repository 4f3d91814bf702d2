package coder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/drivertest"
	"swarmdeck/expect"
)

// actorEnv tells the test binary to be an agent that serves agentapi.
const actorEnv = "CODER_TEST_ACTOR"

// role is what an actor is told.
type role struct {
	Listen string // address
	Coder  string // of the deployment, for reports
	Token  string // the workspace agent's
	Slug   string
}

func act(as string) int {
	var r role
	if err := json.Unmarshal([]byte(as), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	a := newActor()
	a.report = r.report
	fmt.Fprintln(os.Stderr, http.ListenAndServe(r.Listen, a))
	return 1
}

// report tells Coder about the agent's work, as an agent's own tool would.
func (r role) report(state, message string) {
	body, _ := json.Marshal(map[string]string{"app_slug": r.Slug, "state": state, "message": message})
	req, err := http.NewRequest(http.MethodPatch, r.Coder+"/api/v2/workspaceagents/me/app-status", bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Coder-Session-Token", r.Token)
	req.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
	}
}

// actor is an agentapi server whose agent performs the acts in its messages.
type actor struct {
	*http.ServeMux
	report func(state, message string)
	// begun, if set, is told each message of type user and may refuse it.
	begun func(text string)

	mu       sync.Mutex
	messages []message
	status   string
	cancel   chan struct{}
	keys     string
	events   []string // as they were sent, for who comes later
	moved    chan struct{}
	gone     chan struct{} // closed when it crashes
}

func newActor() *actor {
	a := &actor{ServeMux: http.NewServeMux(), moved: make(chan struct{}), gone: make(chan struct{}), report: func(string, string) {}}
	a.set("stable") // each stream begins with it
	a.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		answer(w, map[string]string{"status": a.status, "agent_type": "custom"})
	})
	a.HandleFunc("GET /messages", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		answer(w, map[string]any{"messages": a.messages})
	})
	a.HandleFunc("POST /message", a.post)
	a.HandleFunc("GET /events", a.stream)
	return a
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// event adds one to the stream; mu is held.
func (a *actor) event(kind string, v any) {
	data, _ := json.Marshal(v)
	a.raw(fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data))
}

func (a *actor) raw(text string) {
	a.events = append(a.events, text)
	close(a.moved)
	a.moved = make(chan struct{})
}

func (a *actor) add(role, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := message{len(a.messages), role, text}
	a.messages = append(a.messages, m)
	a.event("message_update", map[string]any{"id": m.ID, "role": m.Role, "message": m.Content})
}

// comesTo waits for a status.
func (a *actor) comesTo(t *testing.T, status string) {
	t.Helper()
	expect.Await(t, "status "+status, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.status == status
	})
}

func (a *actor) set(status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
	a.event("status_change", map[string]string{"status": status, "agent_type": "custom"})
}

func (a *actor) post(w http.ResponseWriter, r *http.Request) {
	var in struct{ Type, Content string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	if in.Type == "raw" {
		a.keys += in.Content
		if a.cancel != nil && (in.Content == "\x1b" || in.Content == "\x03") {
			close(a.cancel)
			a.cancel = nil
		}
		a.mu.Unlock()
		answer(w, map[string]bool{"ok": true})
		return
	}
	if a.status != "stable" {
		a.mu.Unlock()
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"title":"Internal Server Error","detail":"the agent is running"}`))
		return
	}
	cancel := make(chan struct{})
	a.cancel = cancel
	a.mu.Unlock()
	if a.begun != nil {
		a.begun(in.Content)
	}
	a.add("user", in.Content)
	a.set("running")
	go func() {
		failure := drivertest.Perform(stage{a, cancel}, in.Content)
		if failure != "" && failure != "cancelled" {
			a.report("failure", failure)
		}
		a.mu.Lock()
		a.cancel = nil
		a.mu.Unlock()
		a.set("stable")
	}()
	answer(w, map[string]bool{"ok": true})
}

// stream begins with a full replay.
func (a *actor) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for sent := 0; ; {
		a.mu.Lock()
		text, moved := strings.Join(a.events[sent:], ""), a.moved
		sent = len(a.events)
		a.mu.Unlock()
		if _, err := w.Write([]byte(text)); err != nil || flush.Flush() != nil {
			return
		}
		select {
		case <-moved:
		case <-a.gone:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// stage is how the agent speaks.
type stage struct {
	*actor
	cancel chan struct{}
}

func (s stage) Say(text string)            { s.add("agent", text) }
func (s stage) Cancelled() <-chan struct{} { return s.cancel }

func (s stage) Ask(string, string) (decision, final, reason string) {
	return "deny", "", "this protocol knows no permissions"
}

func (s stage) Noise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw("event: message_update\ndata: {broken\n\n")
	s.raw("event: nonsense\ndata: 1\n\n: comment\n\nid: 7\n\n")
	s.raw("event: message_update\ndata: {\"role\":\"agent\"}\n\n")
	s.raw("data: no type\n\nevent: status_change\ndata: {\"status\":\"odd\"}\n\n")
	s.raw("event: error\ndata: " + strings.Repeat("x", 200<<10) + "\n\n")
	s.raw("event: message_update\ndata: {\"id\":-5,\"role\":\"agent\",\"message\":\"\xff\x1b[31m\"}\n\n")
}
