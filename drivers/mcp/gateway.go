package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Gateway lets the agents of an engine use the server: each session of an
// agent is given a command that passes its messages on to a port of this
// machine, with a token that stands for the agent alone. It listens only once
// an agent is given that.
type Gateway struct {
	program string
	opt     Options

	mu     sync.Mutex
	eng    *engine.Engine
	server *Server
	tokens Tokens
	url    string
	port   int
	end    context.CancelFunc
	ended  chan error
}

// NewGateway makes a gateway; program is the path of this program.
func NewGateway(program string, opt Options) *Gateway { return &Gateway{program: program, opt: opt} }

// Open names the engine, once it is there.
func (g *Gateway) Open(eng *engine.Engine) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.eng = eng
}

// Launch is the command by which an agent's program reaches the server.
type Launch struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
}

// Launch gives an agent's session its command. The token that the agent had
// before is no longer good.
func (g *Gateway) Launch(a fleet.Agent) (Launch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.eng == nil {
		return Launch{}, core.Errorf(core.Unavailable, "no engine runs that agent %s could call", a.Name)
	}
	if err := g.listen(); err != nil {
		return Launch{}, err
	}
	token, err := g.tokens.Issue(Identity{Tenant: a.TenantID, Name: a.Name, Kind: core.Agent})
	if err != nil {
		return Launch{}, err
	}
	return Launch{
		Name: Name, Command: g.program, Args: []string{"mcp", "connect"},
		Env: map[string]string{"SWARMDECK_MCP_URL": g.url, "SWARMDECK_MCP_TOKEN": token},
	}, nil
}

// Ports are those of this machine that agents' commands connect to.
func (g *Gateway) Ports() ([]int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.eng == nil {
		return nil, core.Errorf(core.Unavailable, "no engine runs that agents could call")
	}
	if err := g.listen(); err != nil {
		return nil, err
	}
	return []int{g.port}, nil
}

// listen begins to serve; g.mu is held.
func (g *Gateway) listen() error {
	if g.url != "" {
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the agents' calls: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	g.server, g.end, g.ended = NewServer(g.eng, g.opt), end, make(chan error, 1)
	go func() { g.ended <- Serve(ctx, l, g.server.Handler(&g.tokens, "")) }()
	g.port = l.Addr().(*net.TCPAddr).Port
	g.url = "http://" + l.Addr().String() + Path
	return nil
}

// Close ends what was begun, and the calls that are under way.
func (g *Gateway) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.eng = nil
	if g.url == "" {
		return nil
	}
	closed := g.server.Close()
	g.end()
	return errors.Join(closed, <-g.ended)
}
