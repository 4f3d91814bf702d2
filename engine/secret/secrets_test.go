package secret_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/secret"
	"swarmdeck/expect"
	"swarmdeck/store"
)

type world struct {
	*enginetest.World
	*secret.Secrets
	by   core.Caller
	key  string
	held map[string]string
}

func newWorld(t *testing.T) *world {
	w := &world{World: enginetest.New(t, enginetest.Options{}), by: enginetest.Alice()}
	w.key = w.Path + ".secrets.key"
	w.again()
	return w
}

// again is what another start of the engine sees.
func (w *world) again() {
	w.Secrets = secret.New(secret.Options{Ledger: w.Ledger, Key: w.key, Held: func(string, string) map[string]string { return w.held }})
}

func (w *world) set(name, value string) {
	w.T.Helper()
	_, _, err := w.Set(w.T.Context(), w.by, name, []byte(value))
	expect.No(w.T, err)
}

func (w *world) resolved(env map[string]string) map[string]string {
	w.T.Helper()
	out, _, err := w.Resolve(w.T.Context(), w.by.Tenant, env)
	expect.No(w.T, err)
	return out
}

func TestAReferenceIsResolvedInItsTenantOnly(t *testing.T) {
	w := newWorld(t)
	w.set("ONE", "first-value\n")
	w.set("PEM", "two\nlines\n")
	w.again()
	env := map[string]string{"A": "@ONE", "B": "@PEM", "C": "@@ONE", "D": "plain"}
	before := maps.Clone(env)
	want := map[string]string{"A": "first-value", "B": "two\nlines\n", "C": "@ONE", "D": "plain"}
	got := w.resolved(env)
	expect.True(t, maps.Equal(got, want) && maps.Equal(env, before), "%q from %q", got, env)
	_, _, err := w.Resolve(t.Context(), "t_other", env)
	e := core.AsError(err)
	expect.True(t, e.Details["field"] == "env.A", "another tenant: %v", err)
	if err := w.DB.View(t.Context(), "t_acme", func(tx store.Tx) error {
		all, err := tx.(store.Inventory).Buckets()
		for _, b := range all {
			err = errors.Join(err, tx.Scan(b, nil, nil, false, func(_, value []byte) (bool, error) {
				expect.True(t, !bytes.Contains(value, []byte("first-value")), "the value lies in bucket %s", b)
				return true, nil
			}))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if _, file := w.DB.(*store.DB); file {
		data, err := os.ReadFile(w.Path)
		expect.True(t, err == nil && !bytes.Contains(data, []byte("first-value")), "the value lies in the data file: %v", err)
	}
	deltas, err := w.Ledger.Reconcile(t.Context(), "t_acme")
	expect.True(t, err == nil && len(deltas) == 0, "%v %v", deltas, err)
	expect.Of(w.Delete(t.Context(), w.by, "ONE"))(t)
	expect.Says(t, w.Check(t.Context(), w.by, env), "env.A: there is no secret ONE", "a reference to what is gone")
}

func TestTheKeyIsItsOwnersAlone(t *testing.T) {
	w := newWorld(t)
	w.set("ONE", "first-value")
	env := map[string]string{"A": "@ONE"}
	for mode, want := range map[os.FileMode]string{0o640: "others can use it", 0o604: "others can use it"} {
		expect.No(t, os.Chmod(w.key, mode))
		w.again()
		_, _, err := w.Resolve(t.Context(), "t_acme", env)
		expect.Says(t, err, want, "mode", mode)
	}
	expect.No(t, os.Remove(w.key))
	w.again()
	if all, err := w.List(t.Context(), "t_acme"); err != nil || len(all) != 1 {
		t.Errorf("the names without the key: %v %v", all, err)
	}
	if _, _, err := w.Resolve(t.Context(), "t_acme", env); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without the key: %v", err)
	}
	_, _, err := w.Set(t.Context(), w.by, "TWO", []byte("second-value"))
	expect.Err(t, err, core.Kind(core.Conflict), "a new key beside what an old one sealed")
	expect.No(t, os.WriteFile(w.key, []byte("AGE-SECRET-KEY-1NONSENSE\n"), 0o600))
	_, _, err = w.Resolve(t.Context(), "t_acme", env)
	expect.True(t, err != nil && !strings.Contains(err.Error(), "NONSENSE"), "a key that is none: %v", err)
}

func TestWhatLooksLikeACredentialIsTaken(t *testing.T) {
	w := newWorld(t)
	take := func(origin string, env map[string]string) (map[string]string, []secret.Taken) {
		t.Helper()
		out, taken, err := w.Take(t.Context(), w.by, origin, env)
		expect.No(t, err)
		return out, taken
	}
	env := map[string]string{"API_KEY": "value-number-1", "LANG": "C", "OTHER": "@ONE"}
	out, taken := take("agent:my-bot", env)
	want := map[string]string{"API_KEY": "@my_bot_API_KEY", "LANG": "C", "OTHER": "@ONE"}
	expect.True(t, maps.Equal(out, want) && len(taken) == 1 && taken[0].Changed, "%q %v", out, taken)
	out, taken = take("agent:my-bot", env)
	expect.True(t, out["API_KEY"] == "@my_bot_API_KEY" && !taken[0].Changed, "the same once more: %q %v", out, taken)
	env["API_KEY"] = "value-number-2"
	out, taken = take("agent:my-bot", env)
	expect.True(t, out["API_KEY"] == "@my_bot_API_KEY" && taken[0].Changed, "another value: %q %v", out, taken)
	w.set("x9_API_KEY", "somebody's own")
	out, _ = take("agent:9", env)
	expect.True(t, out["API_KEY"] == "@x9_API_KEY_2", "a name that is taken: %q", out)
	for _, want := range []string{"@task_API_KEY", "@task_API_KEY_2", "@task_API_KEY"} {
		env["API_KEY"] = "of-task-" + map[bool]string{true: "2", false: "1"}[want == "@task_API_KEY_2"]
		out, _ = take(secret.OfTasks, env)
		expect.True(t, out["API_KEY"] == want, "%q, want %s", out, want)
	}
	expect.Row(t, w.resolved(map[string]string{"A": "@task_API_KEY", "B": "@task_API_KEY_2", "C": "@my_bot_API_KEY"}), "A", "of-task-1", "B", "of-task-2", "C", "value-number-2")
}

func TestCredentialsAreToldByNameOrShape(t *testing.T) {
	for key, text := range map[string]string{
		"GEMINI_API_KEY": "abcdef", "PGPASSWORD": "hunter22", "github_token": "abcdef", "X": "sk-abcdefghijklmnop1234", "Y": "ghp_abcdefghijklmnopqrst",
		"Z": "AKIAABCDEFGHIJKLMNOP", "J": "eyJhbGciOiJI.eyJzdWIiOiIx.abc", "PEM": "-----BEGIN OPENSSH PRIVATE KEY-----\nx", "DB": "postgres://u:passw@host/db",
		"AWS_SECRET_ACCESS_KEY": "/abc+def/ghi", "CREDENTIALS": `{"a":1}`,
	} {
		expect.True(t, secret.LooksSecret(key, text), "%s=%s is taken for none", key, text)
	}
	for key, text := range map[string]string{
		"KEYBOARD": "german", "MAX_TOKENS": "100000", "AUTHOR": "somebody", "SSH_AUTH_SOCK": "/tmp/agent.sock", "GOOGLE_APPLICATION_CREDENTIALS": "/home/a/key.json",
		"API_KEY": "short", "TOKEN": "@NAME", "PUBLIC_KEY": "ssh-ed25519 AAAA", "PATH": "/usr/bin:/bin", "TOKEN_URL": "https://example.com/token", "AWS_ACCESS_KEY_ID": "none-at-all",
	} {
		expect.True(t, !secret.LooksSecret(key, text), "%s=%s is taken for a credential", key, text)
	}
}

func TestAnAgentPassesOnOnlyWhatItHas(t *testing.T) {
	w := newWorld(t)
	w.set("MINE", "value-of-mine")
	w.set("OTHERS", "value-of-others")
	w.held = map[string]string{"K": "@MINE"}
	agent := core.Caller{Tenant: "t_acme", Name: "bot", Kind: core.Agent}
	expect.No(t, w.Check(t.Context(), agent, map[string]string{"A": "@MINE"}))
	expect.Err(t, w.Check(t.Context(), agent, map[string]string{"A": "@OTHERS"}), core.Kind(core.Denied), "somebody else's")
	_, _, err := secret.Plain(context.Background(), "t_acme", map[string]string{"A": "@MINE"})
	expect.True(t, err != nil, "a reference means something where no secrets are kept")
}

// A ciphertext that is put in another's place opens nothing.
func TestSecretsCantBeSwapped(t *testing.T) {
	w := newWorld(t)
	w.set("ONE", "first-value")
	w.set("TWO", "second-value")
	err := w.Ledger.Append(t.Context(), w.by, func(tx *audit.Tx) error {
		one, err := tx.Get("secret", []byte("ONE"))
		if err != nil {
			return err
		}
		two, err := tx.Get("secret", []byte("TWO"))
		if err != nil {
			return err
		}
		sealed := func(data []byte) []byte { return data[bytes.Index(data, []byte(`"sealed"`)):] }
		return tx.Derived().Put("secret", []byte("ONE"), append(bytes.Clone(one[:len(one)-len(sealed(one))]), sealed(two)...))
	})
	expect.No(t, err)
	_, _, err = w.Resolve(t.Context(), "t_acme", map[string]string{"A": "@ONE"})
	expect.Says(t, err, "sealed with another key or changed")
	deltas, err := w.Ledger.Reconcile(t.Context(), "t_acme")
	expect.True(t, err == nil && len(deltas) == 2, "%v %v", deltas, err)
}
