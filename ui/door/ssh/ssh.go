// Package ssh is the door for operators on other machines: whoever has a key
// that is known here gets command lines, and a cockpit, in their tenant.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/refusal"
	"swarmdeck/ui/serve"
)

// Serve lets operators in from elsewhere, to the start's Engines, until end is called.
// Doors are those that they may open. Other engines, each of which has some of the
// tenants, know this one by its host key.
func Serve(ctx context.Context, env *command.Env, s command.Start, v command.Serve, doors command.Doors, others Others) (end func(), err error) {
	key, err := serve.HostKey(v.HostKey)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", v.SSH)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", v.SSH, err)
	}
	failed := func(err error) { s.Engine.Health.Log().Warn("door failed", "component", "ssh", "error", err) }
	r := &reception{engines: s.Engines, doors: doors, version: env.Version, stuck: env.Stuck, others: others.filled(s.Engines), key: key}
	r.strangers.Tell = func(t operator.Rejected) {
		for _, eng := range r.engines.All() {
			if err := eng.Operators.RecordRejected(ctx, core.DoorSSH, t); err != nil {
				failed(err)
			}
		}
	}
	r.refusals.Tell = func(by core.Caller, cause error) {
		if eng, err := r.engines.Of(ctx, by.Tenant); err == nil {
			_ = eng.Operators.Refused(ctx, by, cause) // it is refused all the same
		}
	}
	r.refusals.TellAgain = func(by core.Caller, a operator.Again) {
		eng, err := r.engines.Of(ctx, by.Tenant)
		if err == nil {
			err = eng.Operators.RefusedAgain(ctx, by, a)
		}
		if err != nil {
			failed(err)
		}
	}
	server := serve.New(serve.Options{Split: command.Split, Run: r.session, Reads: reads, Limits: v.Limits, Failed: failed})
	end = func() {
		if err := server.Close(); err != nil {
			failed(err)
		}
		r.strangers.End()
		r.refusals.End()
	}
	if err := server.SSH(l, serve.Door{
		HostKey: key, Admit: r.admit, Settle: r.settle, Follow: r.follow, Refused: r.strangers.Refused, Crowded: r.crowded,
		Peer: others.Peer, Vouched: r.vouched,
	}); err != nil {
		end()
		return nil, err
	}
	fmt.Fprintf(env.Stderr, "operators enter at ssh://%s\n", l.Addr())
	return end, nil
}

// reception knows who may come in.
type reception struct {
	engines command.Engines
	doors   command.Doors
	version string
	stuck   func() (time.Time, error) // see command.Env
	others  Others
	key     gossh.Signer

	strangers refusal.Strangers
	refusals  refusal.Operators
}

// admit tells who has a key. The user's name chooses the tenant when it is one.
func (r *reception) admit(name, print, from string) (serve.Who, error) {
	grants := r.others.Grants(print)
	if strings.HasPrefix(name, "t_") {
		grants = slices.DeleteFunc(grants, func(g operator.Grant) bool { return g.Tenant != name })
	}
	switch len(grants) {
	case 0:
		r.strangers.Key(print)
		return serve.Who{}, core.Errorf(core.Denied, "nobody has this key")
	case 1:
		g := grants[0]
		return serve.Who{Name: g.Name, Role: string(g.Role), Tenant: g.Tenant, Key: print, From: host(from)}, nil
	}
	return serve.Who{Name: grants[0].Name, Key: print, From: host(from)}, nil
}

// host is the machine of an address.
func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

// crowded tells the tenants of someone whose key has too many connections.
func (r *reception) crowded(who serve.Who, why error) {
	for _, g := range r.others.Grants(who.Key) {
		if who.Tenant == "" || g.Tenant == who.Tenant {
			by := core.Caller{Kind: core.Operator, Door: core.DoorSSH, Name: g.Name, Tenant: g.Tenant}
			r.refusals.Refused(by, core.Errorf(core.Denied, "%v", why))
		}
	}
}

// settle refuses someone whose tenant is not clear, and who came before their
// key or role was taken away.
func (r *reception) settle(who serve.Who) error {
	var tenants []string
	for _, g := range r.others.Grants(who.Key) {
		if g.Tenant == who.Tenant && g.Name == who.Name && string(g.Role) == who.Role {
			return nil
		}
		tenants = append(tenants, g.Tenant)
	}
	if who.Tenant != "" {
		return errChanged
	}
	if len(tenants) == 0 {
		return errChanged
	}
	return fmt.Errorf("your key is known in %s: name one as the user, as in ssh %s@…", strings.Join(tenants, ", "), tenants[0])
}

// errChanged is told to someone who came in with what is no longer so.
var errChanged = errors.New("what your key opens was changed: connect again")

// follow tells when who has to go: their key or their role was taken away. Whose
// tenant another engine has is followed there.
func (r *reception) follow(who serve.Who, done <-chan struct{}) <-chan struct{} {
	if who.User != "" {
		return nil
	}
	if _, here, err := r.others.Owner(context.Background(), who.Tenant); !here || err != nil {
		return nil
	}
	eng, err := r.engines.Of(context.Background(), who.Tenant)
	if err != nil {
		return nil // its session says so
	}
	gone := make(chan struct{})
	go func() {
		for {
			ok, changed := eng.Operators.Holds(operator.Grant{Tenant: who.Tenant, Name: who.Name, Role: operator.Role(who.Role), Proof: who.Key})
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
	caller := core.Caller{Kind: core.Operator, Door: core.DoorSSH, Name: t.Who.Name, Tenant: t.Who.Tenant, Proof: t.Who.Proof(), Seat: seat(t.Who), Far: true, Peer: t.Who.Peer}
	env := &command.Env{
		Caller: caller, Role: command.Role(t.Who.Role), ReadOnly: t.Who.Role == string(operator.Viewer), Version: r.version,
		Stdin: t.Stdin, Stdout: t.Stdout, Stderr: t.Stderr, Getenv: foreign(t.Getenv),
		Attached: true, Remote: true, Terminal: t.Terminal, Signer: t.Signer,
		Doors: r.doors, Stuck: r.stuck,
		Open: func(ctx context.Context, _ command.Need) (*engine.Engine, error) {
			return r.engines.Of(ctx, t.Who.Tenant)
		},
		Refused: func(by core.Caller, err error) {
			by.Tenant = t.Who.Tenant
			r.refusals.Refused(by, err)
		},
	}
	if code, elsewhere := r.relay(ctx, t, env); elsewhere {
		return code
	}
	running, over, stop := env.Following(ctx, !reads(t.Args))
	defer stop()
	code := command.Run(running, env, own(t.Args))
	switch {
	case over() && code != command.ExitOK && ctx.Err() == nil: // as when the engine's process ends
		return serve.Gone
	case code == command.ExitElsewhere && t.Who.Peer != "": // another was faster to take its tenant
		return serve.Moved
	case code == command.ExitElsewhere:
		return command.Report(env, t.Args, core.Errorf(core.Unavailable, "%s has moved to another engine: try again", t.Who.Tenant))
	}
	return code
}

// reads says that a line changes nothing: a cockpit goes on at the next engine.
func reads(args []string) bool { return command.Repeats(own(args)) }

// own is a line without the program's name: it may be the same as for a machine that has
// the program.
func own(args []string) []string {
	if len(args) > 0 && args[0] == "swarmdeck" {
		return args[1:]
	}
	return args
}

// foreign are the variables that a client on another machine may set: what its
// terminal is, and nothing that chooses files or tenants here.
func foreign(getenv func(string) string) func(string) string {
	return func(name string) string {
		switch {
		case slices.Contains(serve.ScreenVariables(), name):
			if v := getenv(name); v != "" || name != "LANG" {
				return v
			}
			return "C.UTF-8" // sshd passes LANG on only when asked: today's terminals are UTF-8
		case name == "SSH_CONNECTION":
			return "remote"
		}
		return ""
	}
}
