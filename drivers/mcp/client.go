package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/tools"
)

// ClientOptions of NewClient.
type ClientOptions struct {
	State  string              // directory for the homes of servers, absolute
	Getenv func(string) string // where the values of headers come from
	Limits cell.Limits         // of every server's processes; zero means cell.DefaultLimits
	// StartTime is how long a server may take to begin, and to list its tools; 0
	// means 30 s. PingTime is how long one that has not answered a call may take to
	// answer a ping before it is begun anew; 0 means 5 s.
	StartTime, PingTime time.Duration
	// Keep keeps what a server says of a tool, for cards; nil keeps nothing.
	Keep func(tenant string, text []byte) (sha256 string)
	// Secrets gives servers what their environment refers to; nil knows none.
	Secrets secret.Resolver
}

// Registry knows the servers of tenants.
type Registry interface {
	Server(ctx context.Context, tenant, name string) (tools.Server, error)
}

// Client uses the servers of others. A server begins with the first use of it
// and goes on until the client is closed, it dies, or it is changed.
type Client struct {
	sup   *cell.Supervisor
	opt   ClientOptions
	tools definitions

	mu     sync.Mutex
	known  Registry
	heard  Listener
	asks   Asker
	links  map[string]*link // by tenant and name
	closed bool
}

var _ tools.Source = (*Client)(nil)

// NewClient returns a client whose servers' processes the supervisor owns.
func NewClient(sup *cell.Supervisor, opt ClientOptions) *Client {
	if opt.Limits == (cell.Limits{}) {
		opt.Limits = cell.DefaultLimits()
	}
	opt.StartTime, opt.PingTime = cmp.Or(opt.StartTime, startTime), cmp.Or(opt.PingTime, pingTime)
	if opt.Secrets == nil {
		opt.Secrets = secret.Plain
	}
	if opt.Keep == nil {
		opt.Keep = (*pin.Keeper)(nil).Keep
	}
	return &Client{sup: sup, opt: opt, tools: definitions{state: opt.State}, links: map[string]*link{}}
}

// Open names the registry, who listens to the servers, and who puts what they ask
// before a person, once these are there. Without the last they can't ask.
func (c *Client) Open(known Registry, heard Listener, asks Asker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.heard, c.asks = known, heard, asks
}

func (c *Client) asker() Asker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asks
}

func (c *Client) listener() Listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Close ends every server.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	links := slices.Collect(maps.Values(c.links))
	c.links = map[string]*link{}
	c.mu.Unlock()
	return core.Each(links, (*link).close)
}

// server is a server of a tenant, as its record says now.
func (c *Client) server(ctx context.Context, tenant, name string) (tools.Server, error) {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	if known == nil {
		return tools.Server{}, core.Errorf(core.Unavailable, "no engine runs that knows server %q", clean(clip(name)))
	}
	return known.Server(ctx, tenant, name)
}

// link is the connection to a server, begun or not. One of a server that was
// changed is ended.
func (c *Client) link(s tools.Server) (*link, error) {
	key := s.TenantID + "/" + s.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, core.Errorf(core.Unavailable, "the engine is closing")
	}
	l := c.links[key]
	if l != nil && l.digest != s.Digest() {
		go func(old *link) { _ = old.close() }(l) // calls under way end with it
		l = nil
	}
	if l == nil {
		l = &link{c: c, spec: s, digest: s.Digest(), turn: make(chan struct{}, 1)}
		l.life, l.end = context.WithCancel(context.Background())
		l.says = &announced{l: l}
		c.links[key] = l
	}
	return l, nil
}

func (c *Client) Tools(ctx context.Context, s tools.Server) ([]tools.Tool, error) {
	l, err := c.link(s)
	if err != nil {
		return nil, err
	}
	_, list, err := l.use(ctx)
	return list, err
}

// call calls a tool and returns its result as JSON. With a digest the tool must
// still be that one.
func (c *Client) call(ctx context.Context, tenant string, in callInput) (core.Raw, error) {
	s, err := c.server(ctx, tenant, in.Server)
	if err != nil {
		return nil, err
	}
	l, err := c.link(s)
	if err != nil {
		return nil, err
	}
	session, list, err := l.use(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(t tools.Tool) bool { return t.Name == in.Tool }) {
		return nil, core.Missing("tool", in.Server+"."+in.Tool)
	}
	if _, now := c.tools.tool(s, in.Tool); in.ToolDigest != "" && in.ToolDigest != now {
		return nil, &skill.Failure{Code: "tool_changed", Message: fmt.Sprintf(
			"%s.%s is another tool than the one that was judged: its server, or what that says of it, has changed", in.Server, in.Tool), Retryable: true}
	}
	if in.approved {
		if err := c.tools.approve(s, in.Tool, in.ToolDigest); err != nil {
			return nil, err
		}
	}
	params := &mcp.CallToolParams{Name: in.Tool, Arguments: in.Args}
	if in.traceparent != "" {
		params.Meta = mcp.Meta{"traceparent": in.traceparent}
	}
	ctx, limit := limited(ctx, s.CallTimeout(), in.of)
	defer limit.stop()
	ctx, end := l.underway(ctx, in.of)
	defer end()
	r, err := within(ctx, func() (*mcp.CallToolResult, error) { return session.CallTool(ctx, params) })
	if why := in.of.end(); why != "" {
		return nil, &skill.Failure{Code: "approval_denied", Message: "a person was asked by the server, and ended it: " + why}
	}
	if err != nil && errors.Is(context.Cause(ctx), errUnanswered) {
		return nil, l.unanswered(session, in.Tool, s.CallTimeout())
	}
	if err != nil {
		if !errors.As(err, new(*jsonrpc.Error)) && ctx.Err() == nil {
			l.lost(session) // no answer of the server: the connection has ended
		}
		return nil, l.explain(err)
	}
	return outcome(in, r)
}

// Identity is in whose name a client calls.
type Identity struct {
	Tenant string
	Name   string         // of an operator, or of an agent of the tenant
	Kind   core.ActorKind // core.Operator or core.Agent
	Role   op.Role        // of an operator: op.Viewer only looks, op.Operator does all that the judge lets it
	Proof  string         // how an operator is known, and
	Person string         // as whom, as in core.Caller; "" of one with a token, whose holder is not known
	Far    bool           // an operator who sits at another machine, or may
}

// Check reports the first bad field.
func (i Identity) Check() error {
	if err := core.CheckTenant(i.Tenant); err != nil {
		return err
	}
	if i.Kind != core.Operator && i.Kind != core.Agent {
		return core.Invalid("kind", string(i.Kind), "operator, agent")
	}
	if i.Kind == core.Operator && i.Role != op.Viewer && i.Role != op.Operator {
		return core.Invalid("role", string(i.Role), "viewer, operator")
	}
	if n := utf8.RuneCountInString(i.Name); n < 1 || n > 64 || !core.Printable(i.Name) || !utf8.ValidString(i.Name) {
		return core.Invalid("name", i.Name, "1-64 printable characters")
	}
	return nil
}

func (i Identity) caller() core.Caller {
	return core.Caller{Tenant: i.Tenant, Name: i.Name, Kind: i.Kind, Door: core.DoorMCP, Proof: i.Proof, Person: i.Person, Far: i.Far}
}

// String names it, the same for the same identity only.
func (i Identity) String() string { return fmt.Sprintf("%s:%s:%s", i.Tenant, i.Kind, i.Name) }
