package home

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
	"swarmdeck/expect"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	expect.No(t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.No(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestAnAgentsLinksLeadTheSkeletonNowhere(t *testing.T) {
	skeleton, path, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(skeleton, ".tool/settings"), "fresh")
	write(t, filepath.Join(skeleton, ".tool/deep/more"), "fresh")
	expect.No(t, os.Symlink(outside, filepath.Join(path, ".tool")))
	h := Home{Options: Options{Skeleton: skeleton}, Path: path}
	expect.Fails(t, h.Furnish(), "the home was filled through a link that leads out of it")
	left, err := os.ReadDir(outside)
	expect.True(t, err == nil && len(left) == 0, "%v was written outside: %v", left, err)
}

func TestALoginHoldsNothingOfTheEngine(t *testing.T) {
	mine := t.TempDir()
	t.Setenv("HOME", mine)
	data := filepath.Join(mine, ".local/share/swarmdeck/swarmdeck.db")
	write(t, data, "data")
	own := expect.Of(safeopen.OwnFiles(data))(t)
	h := Home{Options: Options{Login: []string{"~/.local"}}, Path: t.TempDir(), Own: own}
	expect.Fails(t, h.Furnish(), "the data file was copied into an agent's home")
}

func TestOnlyHomesOfAgentsAreKept(t *testing.T) {
	state := t.TempDir()
	ada, eve := fleet.Agent{TenantID: "t_a", Name: "ada"}, fleet.Agent{TenantID: "t_a", Name: "eve"}
	shared := filepath.Join(state, "t_a", "shared-1")
	for _, dir := range []string{Of(state, ada), Of(state, eve), shared} {
		write(t, filepath.Join(dir, "home/x"), "x")
	}
	expect.No(t, Keep(state, []fleet.Agent{ada}, shared))
	there := func(dir string) bool { _, err := os.Stat(dir); return err == nil }
	if !there(Of(state, ada)) || !there(shared) || there(Of(state, eve)) {
		t.Error("ada, eve, shared:", there(Of(state, ada)), there(Of(state, eve)), there(shared))
	}
	err := Forget(state, ada)
	expect.True(t, err == nil && !there(Of(state, ada)), "a deleted agent's home is there %v", err)
}

// TestAHomeStaysAwayThoughWhatDiesWritesToIt has a process that makes its home
// anew, twice, as soon as that is gone.
func TestAHomeStaysAwayThoughWhatDiesWritesToIt(t *testing.T) {
	state := t.TempDir()
	ada := fleet.Agent{TenantID: "t_a", Name: "ada"}
	dir := Of(state, ada)
	write(t, filepath.Join(dir, "home/x"), "x")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			for {
				if _, err := os.Stat(dir); os.IsNotExist(err) {
					break
				}
				runtime.Gosched()
			}
			_ = os.MkdirAll(filepath.Join(dir, "home/.cache"), 0o700)
		}
	}()
	expect.No(t, Forget(state, ada))
	<-done
	_, err := os.Stat(dir)
	expect.True(t, os.IsNotExist(err), "it is back: %v", err)
}
