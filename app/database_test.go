//go:build linux

package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/ui/command"
)

func TestAnEngineWorksOnADatabaseThatItsDataFilePointsTo(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "engine")
	point := func() (string, *engines) {
		path := filepath.Join(t.TempDir(), "data")
		expect.No(t, os.WriteFile(path, []byte(dsn+"\n"), 0o600))
		return path, newEngines(&machine{dir: t.TempDir(), here: func() {}, fail: func(error) {}, warn: func(err error) { t.Log(err) }})
	}
	path, first := point()
	need := command.Need{Data: path, Log: command.Log{Format: "text", Level: "error", File: filepath.Join(t.TempDir(), "log")}}
	eng, err := first.open(t.Context(), need)
	expect.No(t, err)
	expect.No(t, eng.Store().CreateTenant(t.Context(), "t_acme"))
	beside := newEngines(&machine{dir: t.TempDir(), here: func() {}, fail: func(error) {}, warn: func(err error) { t.Log(err) }})
	at := need
	at.NoWait = true
	_, err = beside.open(t.Context(), at)
	expect.True(t, errors.As(err, new(store.LockedError)), "beside another process of this machine: %v", err)
	expect.No(t, first.close())
	// Again, from here and from a machine that has another key.
	eng = expect.Of(first.open(t.Context(), need))(t)
	alice := core.Caller{Tenant: "t_acme", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	expect.No(t, eng.Audit.Refuse(t.Context(), alice, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil))
	expect.No(t, first.close())
	firstPath := path
	path, second := point()
	need.Data = path
	var untrusted *audit.UntrustedError
	_, err = second.open(t.Context(), need)
	expect.Must(t, errors.Is(err, store.ErrUnusable) && errors.As(err, &untrusted), "without a key that the log trusts: %v", err)
	expect.No(t, second.close())
	trusting := need
	trusting.Data = firstPath
	eng = expect.Of(first.open(t.Context(), trusting))(t)
	expect.Of(eng.TrustKey(t.Context(), alice, untrusted.Request))(t)
	expect.No(t, first.close())
	need.Data = path
	eng, err = second.open(t.Context(), need)
	expect.Must(t, err == nil, "with a key that the log trusts: %v", err)
	expect.No(t, eng.Audit.Refuse(t.Context(), alice, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil))
	r, err := eng.Verify(t.Context(), "t_acme", nil)
	expect.True(t, err == nil && r.OK && len(r.Keys) == 2, "%v %v", r, err)
	expect.No(t, second.close())
	need.ReadOnly = true
	_, err = second.open(t.Context(), need)
	expect.No(t, err, "a reader")
	expect.No(t, second.close())
}
