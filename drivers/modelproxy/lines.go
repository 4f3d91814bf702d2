package modelproxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// Listener is told what a model is about to be asked, an event of the type
// model_request: the request goes on when it returns. What it returns is told
// the answer, model_response, once.
type Listener func(asked fleet.Event) (answered func(fleet.Event))

// line is the way of one agent to one model API.
type line struct {
	p      *Proxy
	up     *url.URL
	listen Listener
	ctx    context.Context
	run    *run
	grant  atomic.Pointer[grant] // nil before the first process
}

// Lines are the ways of one agent to its models, behind a listener of their
// own: a cell reaches its agent's alone. Nil are none.
type Lines struct {
	p      *Proxy
	addr   string
	server *http.Server
	vars   map[string]string  // that lead to them
	lines  map[string]*line   // by the variable of their address
	tokens map[[32]byte]*line // the same, by the digest of what stands in their paths
	cancel context.CancelFunc // ends the requests that are under way
}

// Open gives an agent its lines. They work until they are closed.
//
// A nil Proxy opens none.
func (p *Proxy) Open(to Upstreams, env map[string]string, listen Listener) (*Lines, error) {
	if p == nil {
		return nil, core.Errorf(core.Unavailable, "%s: models are not recorded here", field).With("field", field)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("record models: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Lines{p: p, addr: listener.Addr().String(), vars: map[string]string{}, lines: map[string]*line{}, tokens: map[[32]byte]*line{}, cancel: cancel}
	run := p.run()
	for name, up := range to {
		token := rand.Text() + rand.Text()
		one := &line{p: p, up: up, listen: listen, ctx: ctx, run: run}
		l.lines[name], l.tokens[sha256.Sum256([]byte(token))] = one, one
		l.vars[name] = "http://" + l.addr + "/" + token
	}
	noProxy(l.vars, env)
	l.server = &http.Server{
		Handler: l, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // of connections that broke: whoever asked is told
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		cancel()
		_ = listener.Close()
		return nil, errors.New("record models: the proxy is closed")
	}
	p.open[l] = struct{}{}
	go func() { _ = l.server.Serve(listener) }()
	return l, nil
}

func (l *Lines) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	one := l.tokens[sha256.Sum256([]byte(token))]
	switch {
	case one == nil || r.Host != l.addr:
		refuse(w, http.StatusNotFound, "there is nothing here")
	case r.Header.Get("Upgrade") != "":
		refuse(w, http.StatusNotImplemented, "connections that change their protocol are not recorded; use plain HTTP")
	case climbs(rest):
		refuse(w, http.StatusBadRequest, "the path leads out of the address of the model's API")
	default:
		select {
		case one.run.open <- struct{}{}:
			defer func() { <-one.run.open }()
			one.serve(w, r, "/"+rest)
		default:
			refuse(w, http.StatusServiceUnavailable, strconv.Itoa(maxOpen)+" requests are under way already")
		}
	}
}

// Environ is an agent's environment with the variables that lead to its lines.
func (l *Lines) Environ(env map[string]string) map[string]string {
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, l.vars)
	return out
}

// Ports are those of the engine's loopback that they are reached at.
func (l *Lines) Ports() []int { return Ports(l.vars) }

// Close ends them, and the requests that are under way.
func (l *Lines) Close() {
	if l == nil {
		return
	}
	l.cancel()
	l.p.mu.Lock()
	delete(l.p.open, l)
	l.p.mu.Unlock()
	_ = l.server.Close()
}

// notGiven is what who brings a credential of its own is told.
const notGiven = "the model's credential is put in here: show what the environment holds in its place"

// refused records a request that was not passed on.
func (l *line) refused(path string) {
	path = core.ClipTo(served(path), maxName)
	asked := fleet.ModelCall{
		Name:     modelIn(path),
		Messages: []dag.Spoken{{Role: "user", Content: []dag.ContentPart{{Type: "text", Text: "(a request to " + path + ", which was not read)"}}}},
	}
	id := l.p.nextID()
	answered := l.listen(fleet.Event{Type: "model_request", CallID: id, Model: &asked})
	answered(fleet.Event{
		Type: "model_response", CallID: id, Status: "error", Error: "it brought a credential that the agent was not given for this model",
		Model: &fleet.ModelCall{Name: asked.Name, Fault: "credential_refused"},
	})
}
