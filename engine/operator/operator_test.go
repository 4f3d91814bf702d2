package operator_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// line is a public key made of a seed, as a line of authorized_keys.
func line(t *testing.T, seed byte) string {
	t.Helper()
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	public := expect.Of(ssh.NewPublicKey(ed25519.NewKeyFromSeed(raw).Public()))(t)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func key(t *testing.T, seed byte) operator.Key {
	t.Helper()
	return expect.Of(operator.ParseKey(line(t, seed) + " someone@\x1bhome"))(t)
}

func TestKeysAreReadOneByOneAndWithoutOptions(t *testing.T) {
	k := key(t, 1)
	expect.True(t, strings.HasPrefix(k.Fingerprint, "SHA256:") && k.Key == line(t, 1) && k.Comment == "someone@ home", "%+v", k)
	weak, err := ssh.NewPublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize)) // anybody can sign for it
	expect.No(t, err)
	for _, bad := range []string{
		string(ssh.MarshalAuthorizedKey(weak)), "", "ssh-ed25519", "ssh-ed25519 AAAA", "hello", line(t, 1) + "\n" + line(t, 2), `command="rm" ` + line(t, 1),
		"ssh-ed25519 " + strings.Repeat("A", 1<<20), "\x00\xff",
	} {
		_, err = operator.ParseKey(bad)
		expect.Err(t, err, core.Kind(core.InvalidInput), bad)
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8pn0rDDZVUOQRPLpNBIwGvXhBbNKQkcDgY0UlPpUQG x")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := operator.ParseKey(text)
		if err != nil {
			return
		}
		again, err := operator.ParseKey(k.Key)
		expect.True(t, err == nil && again.Fingerprint == k.Fingerprint, "%q became %q: %v", text, k.Key, err)
	})
}

func open(t *testing.T, path string) *engine.Engine {
	t.Helper()
	db := expect.Of(store.Open(path, store.Options{}))(t)
	eng := expect.Of(engine.Open(t.Context(), engine.Options{Store: db}))(t)
	t.Cleanup(func() { _ = eng.Close(); _ = db.Close() })
	return eng
}

func TestAGrantIsWhatTheLogSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	eng := open(t, path)
	ctx := context.Background()
	by := core.Caller{Tenant: "t_acme", Name: "root", Kind: core.Operator, Door: core.DoorCLI}
	other := by
	other.Tenant = "t_beta"
	for _, c := range []core.Caller{by, other} {
		expect.Of(eng.Swarm.CreateTenant(ctx, c, c.Tenant))(t)
	}
	ops := eng.Operators
	put := func(c core.Caller, name string, role operator.Role, want string, keys ...operator.Key) {
		t.Helper()
		_, action, err := ops.Put(ctx, c, operator.Operator{Name: name, Role: role, Keys: keys})
		expect.Must(t, err == nil && action == want, "%s: %s, %v; want %s", name, action, err, want)
	}
	put(by, "bob", operator.Viewer, "created", key(t, 1), key(t, 2))
	put(by, "bob", operator.Viewer, "unchanged", key(t, 1), key(t, 2))
	put(other, "robert", operator.Admin, "created", key(t, 1))
	_, _, err := ops.Put(ctx, by, operator.Operator{Name: "eve", Role: operator.Admin, Keys: []operator.Key{key(t, 2)}})
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)), "another's key: %v", err)
	grants := ops.Grants(key(t, 1).Fingerprint)
	expect.Must(t, len(grants) == 2, "%+v", grants)
	bob := operator.Grant{Tenant: "t_acme", Name: "bob", Role: operator.Viewer, Proof: key(t, 2).Fingerprint}
	held, changed := ops.Holds(bob)
	expect.Must(t, held, "the grant does not hold")
	put(by, "bob", operator.Approver, "changed", key(t, 1))
	<-changed
	held, _ = ops.Holds(bob)
	expect.True(t, !held && len(ops.Grants(bob.Proof)) == 0, "a key that was taken away still opens")
	expect.Of(ops.Remove(ctx, other, "robert"))(t)
	expect.Err(t, expect.Fault(ops.Remove(ctx, other, "robert")), core.Kind(core.NotFound), "removed twice")
	for _, tenant := range []string{"t_acme", "t_beta"} {
		deltas, err := eng.Reconcile(ctx, tenant)
		expect.True(t, err == nil && len(deltas) == 0, "%s: %v, %v", tenant, deltas, err)
	}
	expect.No(t, eng.Store().(*store.DB).Close())
	again := open(t, path).Operators.Grants(key(t, 1).Fingerprint)
	expect.True(t, len(again) == 1 && again[0].Role == operator.Approver && again[0].Tenant == "t_acme", "after a restart %+v", again)
}

func TestAPersonIsAllTheirProofsSinceTheyHadThem(t *testing.T) {
	eng := open(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := t.Context()
	by := core.Caller{Tenant: "t_acme", Name: "root", Kind: core.Operator, Door: core.DoorCLI}
	expect.Of(eng.Swarm.CreateTenant(ctx, by, "t_acme"))(t)
	ann := operator.Operator{Name: "ann", Role: operator.Admin, Users: []operator.User{{UID: 7}}, Groups: []string{"on-call", "cad", "cad"}}
	first, _, err := eng.Operators.Put(ctx, by, ann)
	expect.No(t, err)
	ann.Keys = []operator.Key{key(t, 1)}
	second, _, err := eng.Operators.Put(ctx, by, ann)
	expect.No(t, err)
	user, ok := eng.Operators.Whose("t_acme", "uid:7")
	printed, also := eng.Operators.Whose("t_acme", key(t, 1).Fingerprint)
	expect.True(t, ok && also && user.Person == printed.Person && user.Person == key(t, 1).Fingerprint+" uid:7" && len(second.Groups) == 2,
		"%+v, %+v, %v", user, printed, second.Groups)
	expect.True(t, user.Since.Equal(first.Users[0].Since) && printed.Since.After(user.Since), "the user since %v, the key since %v", user.Since, printed.Since)
	_, there := eng.Operators.Whose("t_beta", "uid:7")
	expect.True(t, !there, "a person of one tenant is known in another")
	eve := operator.Operator{Name: "eve", Role: operator.Admin, Users: []operator.User{{UID: 7}}}
	_, _, err = eng.Operators.Put(ctx, by, eve)
	expect.Err(t, err, core.Kind(core.Conflict), "another's user")
	deltas, err := eng.Reconcile(ctx, "t_acme")
	expect.True(t, err == nil && len(deltas) == 0, "%v, %v", deltas, err)
}

func TestMistakesInAnOperatorAreNamed(t *testing.T) {
	many := make([]operator.Key, operator.MaxKeys+1)
	for i := range many {
		many[i] = key(t, byte(i))
	}
	for _, c := range []struct {
		field string
		who   operator.Operator
	}{
		{"name", operator.Operator{Role: operator.Viewer, Keys: many[:1]}},
		{"name", operator.Operator{Name: " bob", Role: operator.Viewer, Keys: many[:1]}},
		{"name", operator.Operator{Name: "b\u202eob", Role: operator.Viewer, Keys: many[:1]}},
		{"role", operator.Operator{Name: "bob", Role: "root", Keys: many[:1]}},
		{"keys", operator.Operator{Name: "bob", Role: operator.Viewer}},
		{"keys", operator.Operator{Name: "bob", Role: operator.Viewer, Keys: many}},
		{"uid", operator.Operator{Name: "bob", Role: operator.Viewer, Users: []operator.User{{UID: 1}, {UID: 1}}}},
		{"uid", operator.Operator{Name: "bob", Role: operator.Viewer, Users: []operator.User{{UID: 1, Engine: "deck2"}, {UID: 1, Engine: "deck2"}}}},
		{"uid", operator.Operator{Name: "bob", Role: operator.Viewer, Users: make([]operator.User, operator.MaxUsers+1)}},
		{"group", operator.Operator{Name: "bob", Role: operator.Viewer, Keys: many[:1], Groups: []string{"a\nb"}}},
		{"keys", operator.Operator{Name: "bob", Role: operator.Viewer, Keys: []operator.Key{many[0], many[0]}}},
	} {
		err := c.who.Check()
		expect.True(t, core.AsError(err).Details["field"] == c.field, "%+v: %v", c.who, err)
	}
}

func TestAUserOfAnotherEnginesMachineIsAnother(t *testing.T) {
	for given, proof := range map[string]string{"1000": "uid:1000", "1000@deck2": "uid:1000@deck2", "1000@": "", "1000@a b": "", "@deck2": "", "1@2@3": "", "root": ""} {
		u, err := operator.ParseUser(given)
		if (err == nil) != (proof != "") || err == nil && u.Proof() != proof {
			t.Errorf("%s: %q, %v", given, u.Proof(), err)
		}
		expect.True(t, proof == "" || operator.IsUserAt(proof) == (u.Engine != ""), "%s: whose machine?", proof)
	}
	who := operator.Operator{Name: "ann", Role: operator.Admin, Users: []operator.User{{UID: 1000}, {UID: 1000, Engine: "deck2"}}}
	if err := who.Check(); err != nil || who.Person() != "uid:1000 uid:1000@deck2" {
		t.Errorf("%q, %v", who.Person(), err)
	}
}
