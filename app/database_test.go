//go:build linux

package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	// Again, from here and from a machine that has another key, or none.
	if _, err := first.open(t.Context(), need); err != nil {
		t.Fatal(err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	path, second := point()
	need.Data = path
	if _, err := second.open(t.Context(), need); !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), path+".key") {
		t.Errorf("without the key: %v", err)
	}
	need.ReadOnly = true
	if _, err := second.open(t.Context(), need); err != nil {
		t.Errorf("a reader: %v", err)
	}
	if err := second.close(); err != nil {
		t.Error(err)
	}
}
