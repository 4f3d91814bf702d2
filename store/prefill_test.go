package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
)

// TestTheFileIsWrittenAheadOfItsUse: only past the used part, and only when
// little is left there.
func TestTheFileIsWrittenAheadOfItsUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	used := bytes.Repeat([]byte{7}, 8192)
	expect.No(t, os.WriteFile(path, used, 0o600))
	f := expect.Of(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	var a ahead
	for _, step := range []struct{ used, size int64 }{
		{8192, 8192 + 1<<20},
		{8192 + 100<<10, 8192 + 1<<20},
		{8192 + 600<<10, 8192 + 600<<10 + 1<<20},
		{64 << 20, 66 << 20}, // a large commit made it grow by itself
	} {
		a.start(f, step.used)
		expect.No(t, a.wait())
		expect.Is(t, expect.Of(f.Stat())(t).Size(), step.size, step.used, "used: size")
	}
	data, err := os.ReadFile(path)
	expect.True(t, err == nil && bytes.Equal(data[:8192], used) && len(bytes.Trim(data[8192:], "\x00")) == 0,
		"what was used has changed, or what follows is not zeros: %v", err)
	f.Close()
	a.start(f, 80<<20)
	expect.Fails(t, a.wait(), "a file that can't be synced was grown")
}
