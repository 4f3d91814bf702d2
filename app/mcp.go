//go:build linux

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/mcp"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/op"
	"swarmdeck/ui/command"
)

// mcp is the door for clients of the Model Context Protocol, on stdin and stdout or over HTTP.
func (d *engines) mcp(ctx context.Context, env *command.Env, s command.Start, m command.MCP) error {
	if m.HTTP == "" {
		return serveMCP(ctx, env, s, m)
	}
	return d.serveTokens(ctx, env, s, m)
}

// serveMCP serves one client on stdin and stdout. It is all that a process beside an
// engine can do.
func serveMCP(ctx context.Context, env *command.Env, s command.Start, m command.MCP) (err error) {
	if m.HTTP != "" {
		return core.Errorf(core.Unavailable, "mcp: --http: process %d holds the data file: end that first, or begin it as swarmdeck serve --mcp %s --tokens FILE", os.Getpid(), m.HTTP).With("field", "http")
	}
	if s.Engines != nil {
		if s.Engine, err = s.Engines.Of(ctx, s.Caller.Tenant); err != nil {
			return err
		}
	}
	server := mcp.NewServer(s.Engine, mcpOptions(env, s))
	defer func() {
		if closed := server.Close(); err == nil {
			err = closed
		}
	}()
	id := mcp.Identity{Tenant: s.Caller.Tenant, Name: s.Caller.Name, Kind: core.Operator, Role: op.Operator, Proof: s.Caller.Proof, Person: s.Caller.Person, Far: s.Caller.Far}
	switch {
	case m.Viewer, env.Role == command.Viewer:
		id.Role = op.Viewer
	case m.Agent != "":
		a, err := s.Engine.Fleet.Agent(ctx, s.Caller.Tenant, m.Agent)
		if err != nil {
			return err
		}
		id = mcp.Identity{Tenant: s.Caller.Tenant, Name: a.Name, Kind: core.Agent}
	}
	return server.Stdio(ctx, id, readCloser(env.Stdin), writeCloser(env.Stdout))
}

func mcpOptions(env *command.Env, s command.Start) mcp.Options {
	warnings := func() *slog.Logger {
		return slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	return mcp.Options{Version: env.Version, Dir: s.Dir, Log: logOf(s.Engine.Health.Log(), warnings)}
}

// serveTokens serves over HTTP those who have a token, by the engines of their tenants.
func (d *engines) serveTokens(ctx context.Context, env *command.Env, s command.Start, m command.MCP) (err error) {
	info, err := os.Stat(m.Tokens)
	if err != nil {
		return fmt.Errorf("read the tokens: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return core.Errorf(core.Denied, "tokens: %s can be read by others (%v): chmod 600 it", m.Tokens, info.Mode().Perm()).With("field", "tokens")
	}
	data, err := os.ReadFile(m.Tokens)
	if err != nil {
		return fmt.Errorf("read the tokens: %w", err)
	}
	tokens, err := mcp.LoadTokens(m.Tokens, data, s.Caller.Tenant)
	if err != nil {
		return &command.ExitError{Code: command.ExitFailed, Err: err}
	}
	for _, tenant := range tokens.Tenants() {
		if _, err := s.Engine.Swarm.Tenant(ctx, tenant); err != nil {
			return fmt.Errorf("tokens: %w", err)
		}
	}
	host, port, err := net.SplitHostPort(m.HTTP)
	if err != nil {
		return core.Invalid("http", m.HTTP, "HOST:PORT or :PORT")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", m.HTTP, err)
	}
	fmt.Fprintf(env.Stderr, "serving MCP at http://%s%s\n", listener.Addr(), mcp.Path)
	if at, is := listener.Addr().(*net.TCPAddr); is && !at.IP.IsLoopback() {
		fmt.Fprintln(env.Stderr, "other machines can reach it, and tokens pass the network as they are: put TLS before it")
	}
	router := mcp.NewRouter(d, tokens, s.Caller.Tenant, mcpOptions(env, s))
	defer func() { err = errors.Join(err, router.Close()) }()
	return mcp.Serve(ctx, listener, router)
}

// connectMCP passes a client's messages on.
func connectMCP(ctx context.Context, env *command.Env, url, token string) error {
	return mcp.Relay(ctx, url, token, readCloser(env.Stdin), writeCloser(env.Stdout))
}

func readCloser(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

type openWriter struct{ io.Writer }

func (openWriter) Close() error { return nil }

func writeCloser(w io.Writer) io.WriteCloser {
	if c, ok := w.(io.WriteCloser); ok {
		return c
	}
	return openWriter{w}
}

// servers are the MCP servers that a session of an agent is given: the
// engine's own.
func (h *instance) servers(a fleet.Agent, program string) ([]acp.McpServer, error) {
	l, err := h.gateway.Launch(a)
	if err != nil {
		return nil, err
	}
	s := acp.McpServerStdio{Name: l.Name, Command: cmp.Or(program, l.Command), Args: l.Args, Env: []acp.EnvVariable{}}
	for _, name := range slices.Sorted(maps.Keys(l.Env)) {
		s.Env = append(s.Env, acp.EnvVariable{Name: name, Value: l.Env[name]})
	}
	return []acp.McpServer{{Stdio: &s}}, nil
}
