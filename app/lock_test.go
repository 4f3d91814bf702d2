package app

import (
	"errors"
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
		}
	})
}
