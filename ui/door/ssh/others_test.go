package ssh_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/ssh"
	"swarmdeck/ui/serve"
)

// house is an engine with its door.
type house struct {
	eng  *engine.Engine
	key  gossh.Signer
	peer serve.Peer
}

// said is what a door prints; it may be read while more comes.
type said struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

// only is an engine that has all tenants.
type only struct{ eng *engine.Engine }

func (o only) Of(context.Context, string) (*engine.Engine, error) { return o.eng, nil }
func (o only) All() []*engine.Engine                              { return []*engine.Engine{o.eng} }

// newHouse opens an engine and lets others in.
func newHouse(t *testing.T, name string, others func(*engine.Engine) ssh.Others) *house {
	t.Helper()
	dir := t.TempDir()
	db := expect.Of(store.Open(filepath.Join(dir, "data.db"), store.Options{}))(t)
	h := &house{}
	h.eng = expect.Of(engine.Open(t.Context(), engine.Options{Store: db}))(t)
	at := filepath.Join(dir, "host-key")
	h.key = expect.Of(serve.HostKey(at))(t)
	var told said
	end, err := ssh.Serve(t.Context(), &command.Env{Stderr: &told}, command.Start{Engine: h.eng, Engines: only{h.eng}},
		command.Serve{SSH: "127.0.0.1:0", HostKey: at}, command.Doors{}, others(h.eng))
	expect.No(t, err)
	t.Cleanup(func() {
		end()
		_ = db.Close()
	})
	_, address, _ := strings.Cut(strings.TrimSpace(told.all.String()), "ssh://")
	h.peer = serve.Peer{Name: name, Address: address, Key: gossh.FingerprintSHA256(h.key.PublicKey())}
	return h
}

func newKey(t *testing.T) (gossh.Signer, operator.Key) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	expect.No(t, err)
	signer := expect.Of(gossh.NewSignerFromKey(key))(t)
	public := expect.Of(operator.ParseKey(string(gossh.MarshalAuthorizedKey(signer.PublicKey()))))(t)
	return signer, public
}

// run has an operator run a line at a door.
func (h *house) run(t *testing.T, key gossh.Signer, line string) (code int, out, errs string) {
	t.Helper()
	c, err := gossh.Dial("tcp", h.peer.Address, &gossh.ClientConfig{User: "any", Auth: []gossh.AuthMethod{gossh.PublicKeys(key)}, HostKeyCallback: gossh.InsecureIgnoreHostKey()})
	expect.No(t, err)
	defer c.Close()
	s := expect.Of(c.NewSession())(t)
	var stdout, stderr bytes.Buffer
	s.Stdout, s.Stderr = &stdout, &stderr
	err = s.Run(line)
	var exit *gossh.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitStatus()
	}
	return code, stdout.String(), stderr.String()
}

// bring has a user of the first engine's machine run a line at the second's door.
func (h *house) bring(t *testing.T, as gossh.Signer, line string) (code int, out, errs string) {
	t.Helper()
	conn, err := serve.DialPeer(t.Context(), h.peer)
	expect.No(t, err)
	user := uint32(1000)
	var stdout, stderr bytes.Buffer
	code, err = serve.Attach(t.Context(), conn, serve.Attachment{
		Line: line, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Login: &serve.Login{To: h.peer, As: as, Vouch: serve.Vouch{Tenant: "t_acme", Name: "ann", User: &user, Seat: "/dev/pts/3"}},
	})
	expect.No(t, err)
	return code, stdout.String(), stderr.String()
}

func TestADoorReachesTheEngineThatHasTheTenant(t *testing.T) {
	bob, public := newKey(t)
	var owner, first *house
	var moved atomic.Bool
	owner = newHouse(t, "deck2", func(eng *engine.Engine) ssh.Others {
		return ssh.Others{
			Owner: func(context.Context, string) (serve.Peer, bool, error) { return serve.Peer{}, !moved.Load(), nil },
			Peer: func(print string) (string, bool) {
				return "deck1", print == gossh.FingerprintSHA256(first.key.PublicKey())
			},
		}
	})
	known := operator.Grant{Tenant: "t_acme", Name: "bob", Role: operator.Works, Proof: public.Fingerprint}
	first = newHouse(t, "deck1", func(*engine.Engine) ssh.Others {
		return ssh.Others{
			Owner: func(_ context.Context, tenant string) (serve.Peer, bool, error) {
				return owner.peer, tenant != "t_acme", nil
			},
			Grants: func(print string) []operator.Grant {
				if print == public.Fingerprint {
					return []operator.Grant{known}
				}
				return nil
			},
		}
	})
	ctx, admin := t.Context(), core.Caller{Tenant: "t_acme", Name: "root", Kind: core.Operator, Door: core.DoorCLI}
	expect.Of(owner.eng.Swarm.CreateTenant(ctx, admin, "t_acme"))(t)

	code, _, errs := first.run(t, bob, "session create")
	expect.True(t, code == 1 && strings.Contains(errs, "connect again"), "a key that opens nothing there: exit %d, %s", code, errs)
	_, _, err := owner.eng.Operators.Put(ctx, admin, operator.Operator{TenantID: "t_acme", Name: "bob", Role: operator.Viewer, Keys: []operator.Key{public}})
	expect.No(t, err)
	code, _, errs = first.run(t, bob, "session create")
	expect.True(t, code != 0 && strings.Contains(errs, "those of viewer"), "the role that the first door believes counts: exit %d, %s", code, errs)
	_, _, err = owner.eng.Operators.Put(ctx, admin, operator.Operator{TenantID: "t_acme", Name: "bob", Role: operator.Approver, Keys: []operator.Key{public}})
	expect.No(t, err)
	code, out, errs := first.run(t, bob, "swarmdeck session create -o json")
	expect.True(t, code == 0 && strings.Contains(out, `"t_acme"`), "exit %d, %s%s", code, out, errs)
	code, _, errs = owner.bring(t, first.key, "session create")
	expect.True(t, code == 0, "exit %d, %s", code, errs)
	code, _, errs = owner.bring(t, first.key, "task list --tenant t_other")
	expect.True(t, code != 0, "a tenant was left: %s", errs)
	code, _, errs = owner.bring(t, first.key, "task list --as bob --key /etc/passwd")
	expect.True(t, code != 0 && !strings.Contains(errs, "/etc/passwd"), "exit %d, %s", code, errs)
	_, _, err = owner.eng.Operators.Put(ctx, admin, operator.Operator{TenantID: "t_acme", Name: "cleo", Role: operator.Viewer, Users: []operator.User{{UID: 1000, Engine: "deck1"}}})
	expect.No(t, err)
	code, _, errs = owner.bring(t, first.key, "session create")
	expect.True(t, code == 0, "exit %d, %s", code, errs)
	_, log, _ := owner.bring(t, first.key, "audit list -o json")
	for _, want := range []string{`"bob"`, `"ann"`, `"cleo"`} {
		expect.Has(t, log, want, "the log has no")
	}

	moved.Store(true)
	code, _, errs = first.run(t, bob, "task list")
	expect.True(t, code == 75 && strings.Contains(errs, "its tenant has moved"), "exit %d, %s", code, errs)
	owner.peer.Key = public.Fingerprint
	code, _, errs = first.run(t, bob, "task list -o json")
	expect.True(t, code == 75 && strings.Contains(errs, "its key is SHA256:") && strings.HasPrefix(errs, `{"error":`), "exit %d, %s", code, errs)
}

var _ io.Writer = (*said)(nil)
