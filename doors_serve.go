package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/serve"
)

// serve runs an engine without a screen until ctx ends.
func (h *house) serve(ctx context.Context, env *command.Env, s command.Start, v command.Serve) error {
	ctx, stop := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer func() { // in this order: what has begun ends with ctx
		stop(nil)
		all.Wait()
	}()
	begin := func(run func(context.Context) error) {
		all.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				stop(err)
			}
		})
	}
	if v.SSH != "" {
		end, err := serveSSH(ctx, env, s, v)
		if err != nil {
			return err
		}
		defer end()
	}
	if v.MCP != "" {
		begin(func(ctx context.Context) error {
			return serveMCP(ctx, env, s, command.MCP{HTTP: v.MCP, Tokens: v.Tokens})
		})
	}
	if v.Metrics != "" {
		l, err := listenOn(ctx, v.Metrics)
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "serving figures at http://%s/metrics\n", l.Addr())
		begin(func(ctx context.Context) error { return serveFigures(ctx, l, s.Engine, h.tracing) })
	}
	h.tracing.say(env.Stderr)
	fmt.Fprintf(env.Stderr, "serving %s; interrupt to stop\n", s.Data)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// listenOn opens an address; without a host it is this machine's own.
func listenOn(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, core.Invalid("address", addr, "HOST:PORT or :PORT")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// serveSSH lets operators in from elsewhere until end is called.
func serveSSH(ctx context.Context, env *command.Env, s command.Start, v command.Serve) (end func(), err error) {
	key, err := serve.HostKey(v.HostKey)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", v.SSH)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", v.SSH, err)
	}
	failed := func(err error) { s.Engine.Health.Log().Warn("door failed", "component", "ssh", "error", err) }
	r := &reception{eng: s.Engine, data: s.Data, version: env.Version}
	r.strangers.tell = func(t operator.Turned) {
		if err := s.Engine.Operators.Turned(ctx, core.DoorSSH, t); err != nil {
			failed(err)
		}
	}
	r.refusals.tell = func(by core.Caller, cause error) {
		_ = r.eng.Operators.Refused(ctx, by, cause) // it is refused all the same
	}
	r.refusals.tellAgain = func(by core.Caller, a operator.Again) {
		if err := r.eng.Operators.RefusedAgain(ctx, by, a); err != nil {
			failed(err)
		}
	}
	server := serve.New(serve.Options{Split: command.Split, Run: r.session, Limits: v.Limits, Failed: failed})
	end = func() {
		if err := server.Close(); err != nil {
			failed(err)
		}
		r.strangers.end()
		r.refusals.end()
	}
	if err := server.SSH(l, serve.Door{HostKey: key, Admit: r.admit, Settle: r.settle, Follow: r.follow, Refused: r.strangers.refused, Crowded: r.crowded}); err != nil {
		end()
		return nil, err
	}
	fmt.Fprintf(env.Stderr, "operators enter at ssh://%s\n", l.Addr())
	return end, nil
}

// reception knows who may come in.
type reception struct {
	eng     *engine.Engine
	data    string
	version string

	strangers strangers
	refusals  refusals
}

// admit tells who has a key. The user's name chooses the tenant when it is one.
func (r *reception) admit(name, print, _ string) (serve.Who, error) {
	grants := r.eng.Operators.Grants(print)
	if strings.HasPrefix(name, "t_") {
		grants = slices.DeleteFunc(grants, func(g operator.Grant) bool { return g.Tenant != name })
	}
	switch len(grants) {
	case 0:
		r.strangers.key(print)
		return serve.Who{}, core.Errorf(core.Denied, "nobody has this key")
	case 1:
		g := grants[0]
		return serve.Who{Name: g.Name, Role: string(g.Role), Tenant: g.Tenant, Key: print}, nil
	}
	return serve.Who{Name: grants[0].Name, Key: print}, nil
}

// crowded tells the tenants of someone whose key has too many connections.
func (r *reception) crowded(who serve.Who, why error) {
	for _, g := range r.eng.Operators.Grants(who.Key) {
		if who.Tenant == "" || g.Tenant == who.Tenant {
			by := core.Caller{Kind: core.Operator, Door: core.DoorSSH, Name: g.Name, Tenant: g.Tenant}
			r.refusals.refused(by, core.Errorf(core.Denied, "%v", why))
		}
	}
}

// settle refuses someone whose tenant is not clear, and who came before their
// key or role was taken away.
func (r *reception) settle(who serve.Who) error {
	if who.Tenant != "" {
		if ok, _ := r.eng.Operators.Holds(grantOf(who)); !ok {
			return errChanged
		}
		return nil
	}
	var tenants []string
	for _, g := range r.eng.Operators.Grants(who.Key) {
		tenants = append(tenants, g.Tenant)
	}
	if len(tenants) == 0 {
		return errChanged
	}
	return fmt.Errorf("your key is known in %s: name one as the user, as in ssh %s@…", strings.Join(tenants, ", "), tenants[0])
}

// errChanged is told to someone who came in with what is no longer so.
var errChanged = errors.New("what your key opens was changed: connect again")

func grantOf(who serve.Who) operator.Grant {
	return operator.Grant{Tenant: who.Tenant, Name: who.Name, Role: operator.Role(who.Role), Print: who.Key}
}

// follow tells when who has to go: their key or their role was taken away.
func (r *reception) follow(who serve.Who, done <-chan struct{}) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		for {
			ok, changed := r.eng.Operators.Holds(grantOf(who))
			if !ok && who.Tenant != "" {
				close(gone)
				return
			}
			select {
			case <-changed:
			case <-done:
				return
			}
		}
	}()
	return gone
}

// session carries out one command line, or shows one cockpit, for someone on
// another machine.
func (r *reception) session(ctx context.Context, t *serve.Session) int {
	caller := core.Caller{Kind: core.Operator, Door: core.DoorSSH, Name: t.Who.Name, Tenant: t.Who.Tenant, Person: t.Who.Key}
	env := &command.Env{
		Caller: caller, Role: command.Role(t.Who.Role), ReadOnly: t.Who.Role == string(operator.Viewer), Version: r.version,
		Stdin: t.Stdin, Stdout: t.Stdout, Stderr: t.Stderr, Getenv: foreign(t.Getenv),
		Away: true, Abroad: true, Terminal: t.Terminal,
		Doors: command.Doors{Cockpit: cockpit, Script: playScript, MCP: serveMCP},
		Open:  func(context.Context, command.Need) (*engine.Engine, error) { return r.eng, nil },
		Refused: func(by core.Caller, err error) {
			by.Tenant = t.Who.Tenant
			r.refusals.refused(by, err)
		},
	}
	args := t.Args
	if len(args) > 0 && args[0] == "swarmdeck" { // the same line as for a machine that has the program
		args = args[1:]
	}
	return command.Run(ctx, env, args)
}

// foreign are the variables that a client on another machine may set: what its
// terminal is, and nothing that chooses files or tenants here.
func foreign(getenv func(string) string) func(string) string {
	return func(name string) string {
		switch name {
		case "TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "CLICOLOR", "LANG", "LC_ALL", "LC_CTYPE", "ACCESSIBLE", "TERM_PROGRAM":
			if v := getenv(name); v != "" || name != "LANG" {
				return v
			}
			return "C.UTF-8" // sshd passes LANG on only when asked: today's terminals are UTF-8
		case "SSH_CONNECTION":
			return "remote"
		}
		return ""
	}
}

// bounded is a world of one tenant: its visitor sees no other.
type bounded struct {
	pane.World
	tenant string
}

func (b bounded) Snapshot(string) *engine.Snapshot {
	s := *b.World.Snapshot(b.tenant)
	s.Tenants = []string{b.tenant}
	return &s
}
