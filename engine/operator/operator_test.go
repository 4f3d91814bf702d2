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
	"swarmdeck/store"
)

// line is a public key made of a seed, as a line of authorized_keys.
func line(t *testing.T, seed byte) string {
	t.Helper()
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(raw).Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func key(t *testing.T, seed byte) operator.Key {
	t.Helper()
	k, err := operator.ParseKey(line(t, seed) + " someone@\x1bhome")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreReadOneByOneAndWithoutOptions(t *testing.T) {
	k := key(t, 1)
	if !strings.HasPrefix(k.Fingerprint, "SHA256:") || k.Key != line(t, 1) || k.Comment != "someone@ home" {
		t.Errorf("%+v", k)
	}
	for _, bad := range []string{
		"", "ssh-ed25519", "ssh-ed25519 AAAA", "hello", line(t, 1) + "\n" + line(t, 2), `command="rm" ` + line(t, 1),
		"ssh-ed25519 " + strings.Repeat("A", 1<<20), "\x00\xff",
	} {
		if _, err := operator.ParseKey(bad); !errors.Is(err, core.Kind(core.InvalidInput)) {
			t.Errorf("%.40q: %v", bad, err)
		}
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
		if err != nil || again.Fingerprint != k.Fingerprint {
			t.Errorf("%q became %q: %v", text, k.Key, err)
		}
	})
}

func open(t *testing.T, path string) *engine.Engine {
	t.Helper()
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	eng, err := engine.Open(t.Context(), engine.Options{Store: db})
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := eng.Swarm.CreateTenant(ctx, c, c.Tenant); err != nil {
			t.Fatal(err)
		}
	}
	ops := eng.Operators
	put := func(c core.Caller, name string, role operator.Role, want string, keys ...operator.Key) {
		t.Helper()
		if _, action, err := ops.Put(ctx, c, operator.Operator{Name: name, Role: role, Keys: keys}); err != nil || action != want {
			t.Fatalf("%s: %s, %v; want %s", name, action, err, want)
		}
	}
	put(by, "bob", operator.Viewer, "created", key(t, 1), key(t, 2))
	put(by, "bob", operator.Viewer, "unchanged", key(t, 1), key(t, 2))
	put(other, "robert", operator.Admin, "created", key(t, 1))
	if _, _, err := ops.Put(ctx, by, operator.Operator{Name: "eve", Role: operator.Admin, Keys: []operator.Key{key(t, 2)}}); !errors.Is(err, core.Kind(core.Conflict)) {
		t.Errorf("another's key: %v", err)
	}
	grants := ops.Grants(key(t, 1).Fingerprint)
	if len(grants) != 2 {
		t.Fatalf("%+v", grants)
	}
	bob := operator.Grant{Tenant: "t_acme", Name: "bob", Role: operator.Viewer, Print: key(t, 2).Fingerprint}
	held, changed := ops.Holds(bob)
	if !held {
		t.Fatal("the grant does not hold")
	}
	put(by, "bob", operator.Approver, "changed", key(t, 1))
	<-changed
	if held, _ := ops.Holds(bob); held || len(ops.Grants(bob.Print)) != 0 {
		t.Error("a key that was taken away still opens")
	}
	if _, err := ops.Remove(ctx, other, "robert"); err != nil {
		t.Fatal(err)
	}
	if _, err := ops.Remove(ctx, other, "robert"); !errors.Is(err, core.Kind(core.NotFound)) {
		t.Errorf("removed twice: %v", err)
	}
	for _, tenant := range []string{"t_acme", "t_beta"} {
		if deltas, err := eng.Reconcile(ctx, tenant); err != nil || len(deltas) > 0 {
			t.Errorf("%s: %v, %v", tenant, deltas, err)
		}
	}
	if err := eng.Store().(*store.DB).Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path).Operators.Grants(key(t, 1).Fingerprint)
	if len(again) != 1 || again[0].Role != operator.Approver || again[0].Tenant != "t_acme" {
		t.Errorf("after a restart %+v", again)
	}
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
		{"keys", operator.Operator{Name: "bob", Role: operator.Viewer, Keys: []operator.Key{many[0], many[0]}}},
	} {
		if err := c.who.Check(); core.AsError(err).Details["field"] != c.field {
			t.Errorf("%+v: %v", c.who, err)
		}
	}
}
