package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/drivertest"
)

// traits of the fake agent, JSON in ACP_TEST_AS.
type traits struct {
	Modes   []string // offered; the last one is the current
	Models  []string // the same
	Config  bool     // both are settings of its session
	Load    bool     // session/load, with a history that also comes late
	Resume  bool
	Login   string // a login that it needs
	Version int    // of the protocol, if not 1
	Mute    string // a method that it never answers
	SlyMode string // the mode that it goes into instead of the one that is set
	Embed   bool   // takes files within a prompt
	Always  bool   // offers no permission for one call only
}

// fake is an agent on the other implementation of the protocol, so that the
// two must agree on what goes over the wire.
type fake struct {
	traits
	conn *acp.AgentSideConnection
	out  *wire

	mu     sync.Mutex
	count  int
	logged bool
	mode   string
	model  string
}

// wire lets the agent write what no implementation would, and when.
type wire struct {
	sync.Mutex
	late []func() // to be done after the next answer
}

func (w *wire) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	n, err := os.Stdout.Write(p)
	if late := w.late; len(late) > 0 && bytes.Contains(p, []byte(`"result"`)) {
		w.late = nil
		go func() {
			for _, do := range late {
				do()
			}
		}()
	}
	return n, err
}

// after does something once the next answer has gone out.
func (w *wire) after(do func()) {
	w.Lock()
	defer w.Unlock()
	w.late = append(w.late, do)
}

// held is the standard input from when it is free. A connection reads as soon
// as it is made, before whoever makes it knows of it.
type held struct{ free chan struct{} }

func (h *held) Read(p []byte) (int, error) {
	<-h.free
	return os.Stdin.Read(p)
}

// play is what the test binary does when a test starts it as an agent.
func play(as string) int {
	f := &fake{out: &wire{}}
	if err := json.Unmarshal([]byte(as), &f.traits); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	in := &held{free: make(chan struct{})}
	f.conn = acp.NewAgentSideConnection(f, f.out, in)
	f.conn.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	close(in.free)
	<-f.conn.Done()
	return 0
}

func (f *fake) muted(method string) {
	if f.Mute == method {
		select {}
	}
}

func (f *fake) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	f.muted("initialize")
	r := acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AuthMethods: []acp.AuthMethod{}}
	if f.Version != 0 {
		r.ProtocolVersion = acp.ProtocolVersion(f.Version)
	}
	r.AgentCapabilities.LoadSession = f.Load
	r.AgentCapabilities.PromptCapabilities.EmbeddedContext = f.Embed
	if f.Resume {
		r.AgentCapabilities.SessionCapabilities.Resume = &acp.SessionResumeCapabilities{}
	}
	if f.Login != "" {
		r.AuthMethods = append(r.AuthMethods, acp.AuthMethod{Agent: &acp.AuthMethodAgent{Id: f.Login, Name: "a login"}})
	}
	return r, nil
}

func (f *fake) Authenticate(_ context.Context, r acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logged = r.MethodId == f.Login
	return acp.AuthenticateResponse{}, nil
}

func (f *fake) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	f.muted("session/new")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Login != "" && !f.logged {
		return acp.NewSessionResponse{}, acp.NewAuthRequired(nil)
	}
	f.count++
	id := acp.SessionId(fmt.Sprintf("sess-%d-%d", os.Getpid(), f.count))
	// Some agents speak of a session before they have told its id.
	f.raw(id, `{"sessionUpdate":"available_commands_update","availableCommands":[]}`)
	return acp.NewSessionResponse{SessionId: id, Modes: f.modes(), Models: f.models(), ConfigOptions: f.config()}, nil
}

func (f *fake) modes() *acp.SessionModeState {
	if len(f.Modes) == 0 || f.Config {
		return nil
	}
	s := &acp.SessionModeState{}
	for _, id := range f.Modes {
		s.AvailableModes = append(s.AvailableModes, acp.SessionMode{Id: acp.SessionModeId(id), Name: "Mode " + id})
		s.CurrentModeId = acp.SessionModeId(id)
	}
	return s
}

func (f *fake) SetSessionMode(_ context.Context, r acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	f.mu.Lock()
	f.mode = string(r.ModeId)
	f.mu.Unlock()
	if f.SlyMode != "" {
		f.raw(r.SessionId, `{"sessionUpdate":"current_mode_update","currentModeId":"`+f.SlyMode+`"}`)
	}
	return acp.SetSessionModeResponse{}, nil
}

// history is where a session's messages are kept for session/load.
func history(id acp.SessionId) string { return filepath.Join(os.Getenv("HOME"), string(id)) }

func (f *fake) LoadSession(ctx context.Context, r acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	data, err := os.ReadFile(history(r.SessionId))
	if err != nil {
		return acp.LoadSessionResponse{}, acp.NewInvalidParams("no such session")
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range lines[:len(lines)-1] {
		_ = f.update(ctx, r.SessionId, acp.UpdateAgentMessageText(line))
	}
	f.out.after(func() { // the last of it
		_ = f.update(context.Background(), r.SessionId, acp.UpdateAgentMessageText(lines[len(lines)-1]))
	})
	return acp.LoadSessionResponse{Modes: f.modes()}, nil
}

func (f *fake) ResumeSession(_ context.Context, r acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	if _, err := os.Stat(history(r.SessionId)); err != nil {
		return acp.ResumeSessionResponse{}, acp.NewInvalidParams("no such session")
	}
	return acp.ResumeSessionResponse{Modes: f.modes()}, nil
}

func (f *fake) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (f *fake) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, nil
}

func (f *fake) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, nil
}

func (f *fake) update(ctx context.Context, id acp.SessionId, u acp.SessionUpdate) error {
	return f.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: u})
}

// raw sends an update as it stands.
func (f *fake) raw(id acp.SessionId, update string) {
	_, _ = fmt.Fprintf(f.out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`+"\n", id, update)
}

func (f *fake) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	var text strings.Builder
	for _, b := range r.Prompt {
		if b.Text != nil {
			text.WriteString(b.Text.Text)
		}
		if b.ResourceLink != nil {
			fmt.Fprintf(&text, "\nsay link %s", b.ResourceLink.Uri)
		}
		if b.Resource != nil {
			fmt.Fprintf(&text, "\nsay file %s: %s", b.Resource.Resource.TextResourceContents.Uri, strings.TrimSpace(b.Resource.Resource.TextResourceContents.Text))
		}
	}
	st := &stage{f: f, id: r.SessionId, ctx: ctx}
	end, err := st.perform(text.String())
	if ctx.Err() != nil && err == nil {
		end.StopReason = acp.StopReasonCancelled
	}
	return end, err
}

// stage is one prompt of an actor.
type stage struct {
	f   *fake
	id  acp.SessionId
	ctx context.Context

	mu sync.Mutex
	n  int
}

func (s *stage) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}

// perform plays the acts of drivertest, and those that only this protocol
// knows.
func (s *stage) perform(prompt string) (acp.PromptResponse, error) {
	end := acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
	if strings.HasPrefix(prompt, "The operator denied what you asked for:") { // it goes on without
		return end, nil
	}
	own := s.acts(&end)
	var rest []string
	for _, line := range strings.Split(prompt, "\n") {
		word, arg, _ := strings.Cut(line, " ")
		act := own[word]
		if act == nil {
			rest = append(rest, line)
			continue
		}
		if why := drivertest.Perform(s, strings.Join(rest, "\n")); why != "" {
			return end, acp.NewInternalError(why)
		}
		rest = nil
		act(arg)
	}
	if why := drivertest.Perform(s, strings.Join(rest, "\n")); why != "" && s.ctx.Err() == nil {
		return end, acp.NewInternalError(why)
	}
	return end, nil
}

func (s *stage) Say(text string) {
	_ = s.f.update(s.ctx, s.id, acp.SessionUpdate{AgentMessageChunk: &acp.SessionUpdateAgentMessageChunk{
		Content: acp.TextBlock(text), MessageId: acp.Ptr(fmt.Sprintf("m%d", s.next())),
	}})
	if h, err := os.OpenFile(history(s.id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = h.WriteString(text + "\n")
		_ = h.Close()
	}
}

func (s *stage) Cancelled() <-chan struct{} { return s.ctx.Done() }

func (s *stage) Ask(tool, args string) (decision, final, reason string) {
	options := []acp.PermissionOption{
		{Kind: acp.PermissionOptionKindAllowAlways, Name: "Always", OptionId: "always"},
		{Kind: acp.PermissionOptionKindAllowOnce, Name: "Yes", OptionId: "yes"},
		{Kind: acp.PermissionOptionKindRejectOnce, Name: "No", OptionId: "no"},
	}
	if s.f.Always {
		options = options[:1]
	}
	r, err := s.f.conn.RequestPermission(s.ctx, acp.RequestPermissionRequest{
		SessionId: s.id, Options: options,
		ToolCall: acp.ToolCallUpdate{
			ToolCallId: acp.ToolCallId(fmt.Sprintf("call-%d", s.next())), Title: acp.Ptr("to " + tool), Kind: acp.Ptr(acp.ToolKind(tool)),
			RawInput: json.RawMessage(args),
		},
	})
	switch {
	case err != nil:
		return "deny", "", err.Error()
	case r.Outcome.Selected != nil && r.Outcome.Selected.OptionId == "yes":
		return "approve", args, ""
	case r.Outcome.Selected != nil && r.Outcome.Selected.OptionId != "no":
		return "wrong option", "", string(r.Outcome.Selected.OptionId)
	}
	if tool == drivertest.Aborted { // it comes as a denial and a cancel
		<-s.ctx.Done()
		return "abort", "", "cancelled"
	}
	return "deny", "", "no"
}

// Noise is what the protocol does not allow.
func (s *stage) Noise() {
	for _, line := range []string{
		"", " ", "\x1b[2J\x1b]52;c;aGk=\x07 escape", "\xff\xfe invalid", "{", "{}", "[]", "null", `{"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":999999,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"?"}}`,
		`{"jsonrpc":"2.0","method":"session/update"}`, `{"jsonrpc":"2.0","method":"session/update","params":[]}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"nobody","update":{"sessionUpdate":"plan"}}}`,
		`{"jsonrpc":"2.0","method":"_vendor/news","params":{"a":1}}`, `{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{}}`,
		`{"jsonrpc":"2.0","id":"q2","method":"session/request_permission","params":{"sessionId":"nobody"}}`,
		`{"jsonrpc":"2.0","id":"q3","method":"fs/read_text_file","params":7}`, strings.Repeat("[", 100_000),
	} {
		_, _ = s.f.out.Write([]byte(line + "\n"))
	}
	for _, update := range []string{
		`{"sessionUpdate":"hologram_chunk","content":{"type":"text","text":"from the future"}}`, `{"sessionUpdate":5}`, `{}`,
		`{"sessionUpdate":"agent_message_chunk"}`, `{"sessionUpdate":"agent_thought_chunk","content":{"type":"smell","data":"x"}}`,
		`{"sessionUpdate":"tool_call","toolCallId":5}`, `{"sessionUpdate":"plan","entries":"none"}`,
		`{"sessionUpdate":"usage_update","used":-5,"cost":{"amount":-1,"currency":"USD"}}`, `{"sessionUpdate":"usage_update","cost":{"amount":1e400}}`,
	} {
		s.f.raw(s.id, update)
	}
	_, _ = s.f.out.Write(append([]byte(strings.Repeat("x", 11<<20)), '\n'))
	s.f.raw(s.id, `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"`+strings.Repeat("y", 11<<20)+`"}}`)
	fmt.Fprint(os.Stderr, "\x1b[31mred\n")
}
