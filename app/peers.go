//go:build linux

package app

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/door/ssh"
	"swarmdeck/ui/serve"
)

// How old what is known of the engines, and of operators whose tenants they have, may
// be: where it answers, and where it has no answer.
const (
	lookEvery = time.Second
	lookAgain = 100 * time.Millisecond // strangers ask too
)

// others are the engines that share the database with this one.
type peers struct {
	d   *engines
	key gossh.Signer // that they know this one by; nil until a door is open

	mu      sync.Mutex
	looked  time.Time // when it was asked who is there
	engines []postgres.Engine
	owned   []postgres.Owned
	asked   time.Time                   // when the operators were
	grants  map[string][]operator.Grant // by proof, of tenants that others have
}

// others lets the other engines of a database in to the SSH door, and passes sessions
// on to them. A data file has none.
func (d *engines) others(ctx context.Context, v command.Serve) (ssh.Others, error) {
	if d.base == nil {
		if v.Join != "" {
			return ssh.Others{}, core.Errorf(core.InvalidInput, "serve: --join is for engines that share a database, and this is a data file").With("field", "join")
		}
		return ssh.Others{}, nil
	}
	key, err := serve.HostKey(v.HostKey)
	if err != nil {
		return ssh.Others{}, err
	}
	me := d.self()
	if v.Join != "" {
		me.Address, me.Key = v.Join, gossh.FingerprintSHA256(key.PublicKey())
	}
	if err := d.base.Join(ctx, me); err != nil {
		return ssh.Others{}, err
	}
	o := &d.peers
	o.mu.Lock()
	o.key = key
	o.mu.Unlock()
	return ssh.Others{Owner: o.owner, Grants: o.opens, Peer: o.peer}, nil
}

// look brings what is known of the engines up to date when it is of an age. The caller
// holds mu.
func (o *peers) look(ctx context.Context, age time.Duration) error {
	now := time.Now()
	if now.Sub(o.looked) < age {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	engines, owned, err := o.d.base.Engines(ctx)
	if err != nil {
		return err
	}
	o.looked, o.engines, o.owned = now, engines, owned
	return nil
}

// ask brings what is known of operators up to date when it is of an age. The caller holds
// mu.
func (o *peers) ask(ctx context.Context, age time.Duration) error {
	now := time.Now()
	if now.Sub(o.asked) < age {
		return nil
	}
	if err := o.look(ctx, age); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	grants := map[string][]operator.Grant{}
	if all := o.d.All(); len(all) > 0 {
		for _, t := range o.owned {
			if t.Engine == o.d.base.Engine() {
				continue
			}
			known, err := all[0].Operators.List(ctx, t.Tenant)
			if err != nil {
				return err
			}
			for i := range known {
				for _, g := range known[i].Grants() {
					grants[g.Proof] = append(grants[g.Proof], g)
				}
			}
		}
	}
	o.asked, o.grants = now, grants
	return nil
}

// owner tells who has a tenant. One that nobody has is this engine's to take.
func (o *peers) owner(ctx context.Context, tenant string) (serve.Peer, bool, error) {
	if o.d.has(tenant) {
		return serve.Peer{}, true, nil
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.look(ctx, time.Since(now)); err != nil { // it may just have moved; many wait for one tenant
		return serve.Peer{}, false, err
	}
	for _, t := range o.owned {
		if t.Tenant != tenant || t.Free || t.Engine == o.d.base.Engine() {
			continue
		}
		for _, e := range o.engines {
			if e.Name != t.Engine || !e.Live {
				continue
			}
			if e.Address == "" {
				return serve.Peer{}, false, core.Errorf(core.Unavailable, "engine %s on %s has it and lets no other in: start it with serve --ssh ADDR --join HOST:PORT", e.Name, e.Host)
			}
			return serve.Peer{Name: e.Name, Address: e.Address, Key: e.Key}, false, nil
		}
	}
	return serve.Peer{}, true, nil
}

// named says which engine has a tenant that is not here, as err does not.
func (o *peers) named(ctx context.Context, tenant string, err error) error {
	owner, here, unknown := o.owner(ctx, tenant)
	if unknown != nil || here {
		return err
	}
	return core.Errorf(core.Unavailable, "%s is with engine %s, whose door is %s: ask there", tenant, owner.Name, owner.Address)
}

// opens tells what a key opens, here and in the tenants that others have.
func (o *peers) opens(print string) (all []operator.Grant) {
	here := map[string]bool{}
	for _, h := range o.d.all() {
		if eng, err := h.working(); err == nil && h.tenant != "" {
			here[h.tenant] = true
			for _, g := range eng.Operators.Grants(print) {
				if g.Tenant == h.tenant {
					all = append(all, g)
				}
			}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, age := range []time.Duration{lookEvery, lookAgain} {
		_ = o.ask(context.Background(), age) // what was known last still holds: the owner looks again
		for _, g := range o.grants[print] {
			if !here[g.Tenant] {
				all = append(all, g)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// peer names the machine whose engine has a key.
func (o *peers) peer(print string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range 2 {
		for _, e := range o.engines {
			if e.Live && e.Key == print {
				return e.Host, true
			}
		}
		if o.look(context.Background(), lookAgain) != nil {
			break
		}
	}
	return "", false
}

// pass has the engine that has a tenant carry out a line of a person at this machine.
func (o *peers) pass(ctx context.Context, t *serve.Session, tenant, seat string) (code int, err error) {
	o.mu.Lock()
	key := o.key
	o.mu.Unlock()
	owner, here, err := o.owner(ctx, tenant)
	if err == nil && key == nil && !here { // it joined none, or not yet
		o.d.mu.Lock()
		data := o.d.at.Data
		o.d.mu.Unlock()
		key, err = o.introduce(ctx, data)
	}
	switch {
	case err != nil:
		return 0, err
	case here:
		return 0, fmt.Errorf("%s has moved meanwhile: %w", tenant, serve.ErrUnbegun)
	}
	return serve.Relay(ctx, t, serve.Login{To: owner, As: key, Vouch: o.vouch(tenant, t.Who.Name, seat)}, serve.Screen(t.Getenv))
}

// reach connects to the engine that has a tenant, for the command of this process,
// which is no engine itself.
func (o *peers) reach(ctx context.Context, data string, owner serve.Peer, tenant string) error {
	key, err := o.introduce(ctx, data)
	if err != nil {
		return err
	}
	conn, err := serve.DialPeer(ctx, owner)
	if err != nil {
		return err
	}
	if o.d.conn != nil {
		_ = o.d.conn.Close()
	}
	o.d.conn, o.d.login = conn, &serve.Login{To: owner, As: key, Vouch: o.vouch(tenant, socket.Name(), socket.Seat())}
	return nil
}

// introduce has the other engines let this process in for a while, and returns the key
// that they know it by.
func (o *peers) introduce(ctx context.Context, data string) (gossh.Signer, error) {
	key, err := serve.HostKey(data + ".hostkey")
	if err != nil {
		return nil, err
	}
	me := o.d.self()
	me.Key = gossh.FingerprintSHA256(key.PublicKey())
	return key, o.d.base.Introduce(ctx, me)
}

// vouch says that a user of this machine is at a seat.
func (o *peers) vouch(tenant, name, seat string) serve.Vouch {
	uid := uint32(os.Getuid())
	return serve.Vouch{Tenant: tenant, Name: name, User: &uid, Seat: seat}
}

// has says that an engine here works on a tenant.
func (d *engines) has(tenant string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.instances[tenant] != nil
}
