package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
)

// Relay lets a client that speaks over stdio use a server over HTTP: it passes
// every message on, both ways, with the token beside it. It returns when the
// client's input ends, or parent does.
func Relay(parent context.Context, endpoint, token string, in io.ReadCloser, out io.WriteCloser) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return core.Invalid("url", clean(endpoint), "an http or https URL")
	}
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	client, err := stream(in, out, func(string) {}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("relay MCP: %w", err)
	}
	server, err := (&mcp.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: showing(u, authorization(token), 2*maxFrame), MaxRetries: -1, MaxEventSize: 2 * maxFrame,
	}).Connect(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("relay MCP to %s: %w", u.Redacted(), err), client.Close())
	}
	var calls underway
	back := make(chan struct{})
	go func() {
		defer close(back)
		end(passBack(ctx, server, client, &calls))
	}()
	parted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select { // what a dead server leaves is told first, to a client that listens
		case <-parted:
		case <-parent.Done():
		case <-time.After(lastWords):
		}
		_ = client.Close()
	})
	err = passCalls(ctx, client, server, &calls)
	close(parted)
	end(nil)
	stop()
	closed := errors.Join(server.Close(), client.Close())
	<-back
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("relay MCP to %s: %w", u.Redacted(), errors.Join(err, closed))
}

// authorization is the header with a token, none for "".
func authorization(token string) http.Header {
	if token == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + token}}
}

// passBack hands messages on to the client until one side ends.
func passBack(ctx context.Context, from, to mcp.Connection, calls *underway) error {
	for {
		m, err := from.Read(ctx)
		if err != nil {
			return err
		}
		if err := to.Write(ctx, m); err != nil {
			return err
		}
		if r, is := m.(*jsonrpc.Response); is {
			calls.answered(r.ID)
		}
	}
}

// Bounds of what is on its way to the server.
const (
	maxUnderway = 64
	// headStart is how long a message may take before the next one is passed on
	// beside it: those that nobody must think about keep their order.
	headStart = 50 * time.Millisecond
	// lastWords is how long a client may take to hear why its calls failed.
	lastWords = 5 * time.Second
)

// passCalls hands messages on to the server. Over HTTP a call is on its way until
// the answer begins, which may have to wait for a person: others, and word that
// it is given up, go past it.
func passCalls(ctx context.Context, from, to mcp.Connection, calls *underway) (err error) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, end := context.WithCancelCause(ctx)
	defer func() { end(err) }()
	for {
		m, err := from.Read(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			calls.forget()
			return err
		}
		r, is := m.(*jsonrpc.Request)
		if !is || !r.IsCall() {
			if err := to.Write(ctx, m); err != nil {
				return err
			}
			if is && r.Method == "notifications/cancelled" {
				calls.giveUp(core.Raw(r.Params)) // where the end of the request says it
			}
			continue
		}
		refuse := func(why string) { // only this call failed; who made it is told, and may go on
			answer := &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: line(why, 1024)}}
			if err := from.Write(context.WithoutCancel(ctx), answer); err != nil {
				end(err)
			}
		}
		call, ok := calls.begin(ctx, r.ID)
		if !ok {
			refuse(fmt.Sprintf("%d calls have no answer yet, or one of this id", maxUnderway))
			continue
		}
		sent := make(chan struct{})
		all.Go(func() {
			defer close(sent)
			err := to.Write(call, m)
			if err == nil {
				calls.begun(r.ID)
				return
			}
			if cause := context.Cause(ctx); cause != nil { // the call's own end says less
				err = cause
			}
			if calls.answered(r.ID) {
				refuse(err.Error())
			}
		})
		core.Within(sent, headStart)
	}
}

// underway are the calls without an answer.
type underway struct {
	mu    sync.Mutex
	calls map[string]*oneCall // by id, as JSON
}

type oneCall struct {
	end   context.CancelFunc
	begun bool // its answer has: what ends it now ends the connection
}

func idKey(id jsonrpc.ID) string { return string(core.MustEncode(id.Raw())) }

// begin gives a call its context; false when it can't be told from others, or
// there are too many.
func (u *underway) begin(ctx context.Context, id jsonrpc.ID) (call context.Context, ok bool) {
	key := idKey(id)
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, twice := u.calls[key]; twice || len(u.calls) >= maxUnderway {
		return nil, false
	}
	if u.calls == nil {
		u.calls = map[string]*oneCall{}
	}
	call, end := context.WithCancel(ctx)
	u.calls[key] = &oneCall{end: end}
	return call, true
}

// answered ends a call's context: its answer is there, or never will be. It is
// false when nobody waits for one any more.
func (u *underway) answered(id jsonrpc.ID) bool {
	key := idKey(id)
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.calls[key]
	if c != nil {
		c.end()
		delete(u.calls, key)
	}
	return c != nil
}

// forget ends all calls: nobody is there to be answered.
func (u *underway) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.calls {
		c.end()
	}
	clear(u.calls)
}

// begun notes that a call's answer has begun.
func (u *underway) begun(id jsonrpc.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.calls[idKey(id)]; c != nil {
		c.begun = true
	}
}

// giveUp ends the call that a notification names.
func (u *underway) giveUp(params core.Raw) {
	var in struct {
		ID core.Raw `json:"requestId"`
	}
	if core.DecodeStored(params, &in) != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.calls[string(in.ID)]; c != nil && !c.begun {
		c.end()
		delete(u.calls, string(in.ID))
	}
}
