package store_test

import (
	"path/filepath"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB, dir string, opt store.Options) store.Store {
		return expect.Of(store.Open(filepath.Join(dir, "data.db"), opt))(t)
	})
}
