// Package mcp speaks the Model Context Protocol both ways. Its Server offers
// the fleet, tasks, approvals (to look at), messages and skills of a tenant as
// tools, and the judge's policy as resources, over stdio and streamable HTTP.
// Its Client calls the tools of configured servers, as tasks of kind mcp.call
// and as skills with the runner mcp.
//
// A call of a tool passes one place: its arguments are checked and filled in
// with their defaults, put before the judge in the name of an operator or of
// an agent, and only then carried out. Nobody approves anything here.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
)

// Name is what the server calls itself, and the server that the judge's rules
// know its tools by.
const Name = "swarmdeck"

// Bounds of what a client may send and of how long a call may work.
const (
	maxMessage = 2 << 20 // bytes: the largest input of a task, and what surrounds it
	callTime   = time.Minute
)

// Options of NewServer.
type Options struct {
	Version string
	// Dir is where an agent works that is made with a command and without a
	// directory.
	Dir string
	// CallTime is how long a call may work once it is allowed; 0 means 1 min.
	CallTime time.Duration
	// Log gets what goes wrong with connections; nil drops it.
	Log *slog.Logger
}

// Server offers one engine to clients.
type Server struct {
	eng   *engine.Engine
	opt   Options
	tools map[string]tool
	order []tool
	once  once

	ctx  context.Context // ends the watches
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	tenants map[string]*mcp.Server // for HTTP, by tenant
}

// NewServer makes a server over an engine that runs.
func NewServer(eng *engine.Engine, opt Options) *Server {
	opt.CallTime = cmp.Or(opt.CallTime, callTime)
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	s := &Server{eng: eng, opt: opt, tools: map[string]tool{}, tenants: map[string]*mcp.Server{}}
	s.once.init()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.order = operations()
	for _, t := range s.order {
		s.tools[t.name] = t
	}
	return s
}

// Close ends what the server does by itself. Connections end with the contexts
// they were given.
func (s *Server) Close() error {
	s.stop()
	s.done.Wait()
	return nil
}

// Stdio serves one client on its streams until ctx or its input ends, or nobody
// reads its output any more, in one name. Nothing else may write to out.
func (s *Server) Stdio(ctx context.Context, id Identity, in io.ReadCloser, out io.WriteCloser) error {
	if err := id.Check(); err != nil {
		return err
	}
	server := s.serve(id.Tenant, func(mcp.Request) (Identity, error) { return id, nil })
	var lines slow
	err := server.Run(ctx, stream(in, out, func(why string) {
		if missed, ok := lines.now(); ok {
			_ = s.refuse(ctx, id, "", more(core.Errorf(core.InvalidInput, "a line on stdio: %s", why), missed))
		}
	}))
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve MCP on stdio: %w", err)
	}
	return nil
}

// whose tells in whose name a request is made.
type whose func(mcp.Request) (Identity, error)

// of is the server of a tenant's clients over HTTP.
func (s *Server) of(tenant string, who whose) *mcp.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tenants[tenant] == nil {
		s.tenants[tenant] = s.serve(tenant, who)
	}
	return s.tenants[tenant]
}

// serve makes the protocol's side for one tenant.
func (s *Server) serve(tenant string, who whose) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: Name, Title: "swarmdeck", Version: cmp.Or(s.opt.Version, "dev")}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       s.opt.Log,
		PageSize:     len(s.tools) + 1,
		Capabilities: &mcp.ServerCapabilities{},
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
			return subscribe(r.Params.URI)
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		SetCacheable:       func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	for _, t := range s.order {
		server.AddTool(t.declare(), s.handle(t, who))
	}
	server.AddReceivingMiddleware(s.strange(who))
	s.offerPolicy(server, tenant)
	return server
}

const instructions = "The fleet, tasks, messages and skills of one tenant. Each call is judged; one that a person must allow " +
	"blocks until that is answered, and says so by progress notices. Tasks go on after a call: look at them with show_task. " +
	"Errors are JSON: {\"error\":{\"code\",\"message\",\"details\":{\"field\"}}}. A page past the end is empty."
