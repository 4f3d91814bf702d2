// Package model is a scripted language model on the loopback: real agents can
// be tested against it without a network and with the same end each time.
//
// It speaks four wire formats (chat completions, responses, messages,
// generateContent) and decides nothing by itself. What it answers stands in
// the newest user text of the conversation:
//
//	RUN: COMMAND          a call of the shell tool that the request offers
//	WRITE: PATH CONTENT   a call of the file-writing tool
//	CALL: TOOL {JSON}     a call of that tool with those arguments
//	SAY: TEXT             the text
//
// What follows on such a line after THEN, or on lines that begin with it, is
// what it does next, one after the other. When the result of the last call follows in the conversation, it
// answers with "FINAL: the tool said: " and the beginning of that result. A request
// without such a text gets a short fixed answer, since agents also ask for
// titles and summaries.
package model

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/core"
)

// Usage of every answer, so that budgets can be checked.
const (
	TokensIn  = 100
	TokensOut = 20
)

// Options of Start.
type Options struct {
	Delay time.Duration // before each event of a stream: for cancel and pause
	Fail  int           // answers so many requests with status 500 first
	Hang  bool          // answers nothing until the request ends
	// Escalate has shell commands ask for what the agent's own sandbox does not let pass:
	// Codex asks a person about nothing else.
	Escalate bool
}

// Request is one request as it came.
type Request struct {
	Path       string
	Credential string // that it showed, in any of the usual places
	Body       core.Raw
}

// Server is a running model. Its methods may be called from any goroutine.
type Server struct {
	URL string // http://127.0.0.1:PORT, without a path

	http *httptest.Server

	mu       sync.Mutex
	opt      Options
	requests []Request
	fresh    int // for ids
}

// Start begins to serve.
func Start(opt Options) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{opt: opt}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Listener.Close()
	s.http.Listener = listener
	s.http.Start()
	s.URL = s.http.URL
	return s, nil
}

// Close ends every open request and the server.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Behave changes the options for requests to come.
func (s *Server) Behave(opt Options) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt = opt
}

// Requests lists what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func credential(r *http.Request) string {
	return cmp.Or(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"))
}

// format is one wire format: how a request is read and an answer written.
type format struct {
	read  func(body object) conversation
	write func(w *stream, a answer)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{Path: r.URL.Path, Credential: credential(r), Body: core.Raw(body)})
	s.fresh++
	n, opt := s.fresh, s.opt
	if s.opt.Fail > 0 {
		s.opt.Fail--
	}
	s.mu.Unlock()

	f, known := formatOf(r.URL.Path)
	switch {
	case opt.Hang:
		<-r.Context().Done()
	case opt.Fail > 0:
		reply(w, http.StatusInternalServerError, object{"error": object{"message": "scripted failure", "code": 500}})
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		reply(w, http.StatusOK, object{"object": "list", "data": []any{}, "models": []any{}})
	case strings.HasSuffix(r.URL.Path, "count_tokens") || strings.HasSuffix(r.URL.Path, ":countTokens"):
		reply(w, http.StatusOK, object{"input_tokens": TokensIn, "totalTokens": TokensIn})
	case !known || r.Method != http.MethodPost:
		reply(w, http.StatusNotFound, object{"error": object{"message": "no such endpoint: " + r.URL.Path, "code": 404}})
	default:
		var in object
		if err := core.DecodeStored(body, &in); err != nil {
			reply(w, http.StatusBadRequest, object{"error": object{"message": "not a JSON object", "code": 400}})
			return
		}
		c := f.read(in)
		c.json = c.json || in.at("generationConfig").text("responseMimeType") == "application/json"
		out := &stream{w: w, r: r, delay: opt.Delay, id: n, live: in["stream"] == true || strings.HasSuffix(r.URL.Path, ":streamGenerateContent")}
		c.escalate = opt.Escalate
		f.write(out, c.decide(n))
	}
}

func formatOf(path string) (format, bool) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return format{readChat, writeChat}, true
	case strings.HasSuffix(path, "/responses"):
		return format{readResponses, writeResponses}, true
	case strings.HasSuffix(path, "/messages"):
		return format{readMessages, writeMessages}, true
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return format{readGemini, writeGemini}, true
	}
	return format{}, false
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(core.MustEncode(v))
}

// stream writes one answer: server-sent events, or one JSON object at the end.
type stream struct {
	w     http.ResponseWriter
	r     *http.Request
	delay time.Duration
	id    int
	live  bool
	open  bool
}

// event sends one event of a live stream; name is "" for unnamed ones.
func (s *stream) event(name string, v any) {
	if !s.live {
		return
	}
	if !s.open {
		s.open = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.WriteHeader(http.StatusOK)
	}
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-s.r.Context().Done():
			return
		}
	}
	if name != "" {
		_, _ = io.WriteString(s.w, "event: "+name+"\n")
	}
	data, isText := v.(string)
	if !isText {
		data = string(core.MustEncode(v))
	}
	_, _ = io.WriteString(s.w, "data: "+data+"\n\n")
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// whole sends the answer of a request that asked for no stream.
func (s *stream) whole(v any) {
	if !s.live {
		reply(s.w, http.StatusOK, v)
	}
}
