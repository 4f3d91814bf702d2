//go:build linux

package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"swarmdeck/drivers/origin"
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/cockpit"
	"swarmdeck/ui/door/metrics"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/door/ssh"
)

// serve runs an engine without a screen until ctx ends.
func (d *engines) serve(ctx context.Context, env *command.Env, s command.Start, v command.Serve) error {
	outer := ctx
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
	s.Engines = d
	if v.SSH != "" {
		others, err := d.others(ctx, v)
		if err != nil {
			return err
		}
		end, err := ssh.Serve(ctx, env, s, v, command.Doors{Cockpit: cockpit.Show, Script: cockpit.Play, MCP: serveMCP}, others)
		if err != nil {
			return err
		}
		defer end()
	}
	if v.MCP != "" {
		begin(func(ctx context.Context) error {
			return d.serveTokens(ctx, env, s, command.MCP{HTTP: v.MCP, Tokens: v.Tokens})
		})
	}
	if v.Metrics != "" {
		token, err := metrics.Token(v.Bearer)
		if err != nil {
			return err
		}
		l, err := listenOn(ctx, v.Metrics)
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "serving figures at http://%s/metrics\n", l.Addr())
		begin(func(ctx context.Context) error {
			return metrics.Serve(ctx, l, metrics.Options{
				Token: token, Engines: d.All, More: func(w io.Writer) { d.tracing().write(w) }, Ready: d.ready,
			})
		})
	}
	d.tracing().say(env.Stderr)
	fmt.Fprintf(env.Stderr, "serving %s; interrupt to stop\n", s.Data)
	<-ctx.Done()
	if outer.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
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

// listen lets this user's other processes in to the engines of this one.
func listen(data string, o socket.Options) func() error {
	o.Data, o.Doctor, o.Busy = data, doctor, func() error { return holderBy(os.Getpid(), true).has(data) }
	o.Doors = command.Doors{Cockpit: cockpit.Show, Script: cockpit.PlayFor, MCP: serveMCP, Connect: connectMCP}
	return socket.Listen(o)
}

func (h *instance) listen(data string) func() error {
	sup := h.sup
	return listen(data, socket.Options{
		Engines: h, Stuck: h.stuck,
		Open: func(context.Context, command.Need) (*engine.Engine, error) { return h.working() },
		Find: func(pid int, alive func() bool) operator.Origin { return origin.Find(sup, pid, alive) },
		Troubles: func(ctx context.Context, _ string) ([]health.Trouble, error) {
			eng, err := h.working()
			if err != nil {
				return nil, err
			}
			return inspected(ctx, eng)
		},
	})
}

func (d *engines) listen(data string) func() error {
	return listen(data, socket.Options{Stuck: d.stuck, Engines: d, Open: d.openFor, Pass: d.peers.pass, Find: d.find, Troubles: d.troubles})
}
