package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
)

// Relay lets a client that speaks over stdio use a server over HTTP: it passes
// every message on, both ways, with the token beside it. It returns when the
// client's input ends, or ctx does.
func Relay(ctx context.Context, endpoint, token string, in io.ReadCloser, out io.WriteCloser) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return core.Invalid("url", clean(endpoint), "an http or https URL")
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	client, err := (&mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: maxMessage}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("relay MCP: %w", err)
	}
	server, err := (&mcp.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: withToken(u, token), MaxRetries: -1,
	}).Connect(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("relay MCP to %s: %w", u.Redacted(), err), client.Close())
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		end(pass(ctx, server, client))
	}()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	err = pass(ctx, client, server)
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

// pass hands messages on until one side ends.
func pass(ctx context.Context, from, to mcp.Connection) error {
	for {
		m, err := from.Read(ctx)
		if err != nil {
			return err
		}
		if err := to.Write(ctx, m); err != nil {
			r, is := m.(*jsonrpc.Request)
			if !is || !r.IsCall() {
				return err
			}
			// Only this call failed; who made it is told, and may go on.
			answer := &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: line(err.Error(), 1024)}}
			if err := from.Write(ctx, answer); err != nil {
				return err
			}
		}
	}
}

// withToken shows the token to the one host that it is for, wherever a
// redirect leads.
func withToken(to *url.URL, token string) *http.Client {
	return &http.Client{Transport: tokenFor{to.Scheme, to.Host, token}}
}

type tokenFor struct{ scheme, host, token string }

func (t tokenFor) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" && r.URL.Host == t.host && r.URL.Scheme == t.scheme {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}
