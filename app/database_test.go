//go:build linux

package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
	"swarmdeck/store/postgres/postgrestest"
	"swarmdeck/ui/command"
)

func TestAnEngineWorksOnADatabaseThatItsDataFilePointsTo(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "engine")
	point := func() (string, *deck) {
		path := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(path, []byte(dsn+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path, newDeck(&machine{dir: t.TempDir(), here: func() {}, fail: func(error) {}, warn: func(err error) { t.Log(err) }})
	}
	path, first := point()
	need := command.Need{Data: path, Log: command.Log{Format: "text", Level: "error", File: filepath.Join(t.TempDir(), "log")}}
	eng, err := first.open(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Store().CreateTenant(t.Context(), "t_acme"); err != nil {
		t.Fatal(err)
	}
	beside := newDeck(&machine{dir: t.TempDir(), here: func() {}, fail: func(error) {}, warn: func(err error) { t.Log(err) }})
	at := need
	at.NoWait = true
	if _, err := beside.open(t.Context(), at); !errors.As(err, new(store.LockedError)) {
		t.Errorf("beside another process of this machine: %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	// Again, from here and from a machine that has another key.
	if eng, err = first.open(t.Context(), need); err != nil {
		t.Fatal(err)
	}
	alice := core.Caller{Tenant: "t_acme", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	if err := eng.Audit.Refuse(t.Context(), alice, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	firstPath := path
	path, second := point()
	need.Data = path
	var untrusted *audit.UntrustedError
	if _, err := second.open(t.Context(), need); !errors.Is(err, store.ErrUnusable) || !errors.As(err, &untrusted) {
		t.Fatalf("without a key that the log trusts: %v", err)
	}
	if err := second.close(); err != nil {
		t.Error(err)
	}
	trusting := need
	trusting.Data = firstPath
	if eng, err = first.open(t.Context(), trusting); err != nil {
		t.Fatal(err)
	}
	if _, err := eng.TrustKey(t.Context(), alice, untrusted.Request); err != nil {
		t.Fatal(err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	need.Data = path
	if eng, err = second.open(t.Context(), need); err != nil {
		t.Fatal("with a key that the log trusts:", err)
	}
	if err := eng.Audit.Refuse(t.Context(), alice, audit.Entry{Type: "x", Subject: "y", ID: "z"}, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := eng.Verify(t.Context(), "t_acme", nil); err != nil || !r.OK || len(r.Keys) != 2 {
		t.Error(r, err)
	}
	if err := second.close(); err != nil {
		t.Error(err)
	}
	need.ReadOnly = true
	if _, err := second.open(t.Context(), need); err != nil {
		t.Errorf("a reader: %v", err)
	}
	if err := second.close(); err != nil {
		t.Error(err)
	}
}
