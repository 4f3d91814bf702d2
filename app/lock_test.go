package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/command"
)

// TestCompletionWaitsForNoDataFile: it is asked for at each key, and a command
// once.
func TestCompletionWaitsForNoDataFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.db")
		owner := expect.Of(store.Open(path, store.Options{}))(t)
		defer owner.Close()
		for _, hasty := range []bool{true, false} {
			began := time.Now()
			_, err := (&machine{}).openStore(t.Context(), command.Need{Data: path, NoWait: hasty}, func() (store.Store, error) { return store.Open(path, store.Options{}) })
			took := time.Since(began)
			expect.True(t, errors.Is(err, store.ErrLocked) && hasty == (took < LockPatience), "hasty %t: %v after %v", hasty, err, took)
			expect.Says(t, err, fmt.Sprintf("open data file %s: in use by another process (pid %d)", path, os.Getpid()))
		}
	})
}

// opens has a machine open a data file, and tells when it has.
func opens(t *testing.T, m *machine, need command.Need, into chan<- store.Store) {
	go func() {
		st, err := m.openStore(t.Context(), need, func() (store.Store, error) { return store.Open(need.Data, store.Options{}) })
		expect.No(t, err)
		into <- st
	}()
}

// TestAnEngineAndCommandsWaitForEachOther: for longer than an engine needs to open, and
// whoever came first is next.
func TestAnEngineAndCommandsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.db")
		before := expect.Of(store.Open(path, store.Options{}))(t)
		var said []string
		m := &machine{warn: func(err error) { said = append(said, err.Error()) }}
		engine, short := make(chan store.Store, 1), make(chan store.Store, 1)
		opens(t, m, command.Need{Data: path, Alone: true}, engine)
		time.Sleep(tellAfter / 2)
		expect.True(t, len(said) == 0, "it says at once %q", said)
		opens(t, &machine{}, command.Need{Data: path}, short)
		time.Sleep(LockPatience - 2*tellAfter)
		expect.True(t, len(said) == 1, "it says %q", said)
		expect.Says(t, errors.New(said[0]), "waiting up to 30s")
		expect.No(t, before.Close())
		st := <-engine
		time.Sleep(tellAfter)
		expect.True(t, len(short) == 0, "a command that came later was first")
		expect.No(t, st.Close())
		expect.No(t, (<-short).Close())
	})
}
