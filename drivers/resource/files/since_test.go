package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// since are the paths below root that changed, each with the beginning of its digest.
func since(t *testing.T, d *Driver, root string, at time.Time) (names []string, more int) {
	t.Helper()
	all, more, err := d.Since(t.Context(), root, at)
	expect.No(t, err)
	for _, f := range all {
		rel, err := filepath.Rel(root, f.Path)
		if err != nil || f.At.IsZero() {
			t.Errorf("%+v: %v", f, err)
		}
		names = append(names, rel)
	}
	slices.Sort(names)
	return names, more
}

func TestWhatChangedSinceATimeIsFoundHoweverItCameThere(t *testing.T) {
	base := expect.Of(filepath.EvalSymlinks(t.TempDir()))(t)
	root, aside := filepath.Join(base, "root"), filepath.Join(base, "aside")
	for _, dir := range []string{root, aside, filepath.Join(root, "old"), filepath.Join(aside, "deep", "er"), filepath.Join(root, ".git")} {
		expect.No(t, os.MkdirAll(dir, 0o755))
	}
	for _, path := range []string{"root/same", "root/other", "root/old/same", "aside/one", "aside/deep/er/two"} {
		write(t, filepath.Join(base, path), "before")
	}
	d := newDriver(t, Options{Own: filepath.Join(root, "own.db")})
	settle(t)
	at := time.Now()
	if got, more := since(t, d, root, at); len(got) != 0 || more != 0 {
		t.Errorf("before anything changed: %q, %d more", got, more)
	}

	write(t, filepath.Join(root, "other"), "after")
	long := time.Now().Add(-time.Hour)
	write(t, filepath.Join(root, "old", "new"), "x")
	if err := os.Chtimes(filepath.Join(root, "old", "new"), long, long); err != nil { // as an archive does
		t.Fatal(err)
	}
	expect.No(t, os.Rename(aside, filepath.Join(root, "moved")))
	expect.No(t, os.Symlink("/etc", filepath.Join(root, "link")))
	write(t, filepath.Join(root, "own.db"), "the engine's")
	write(t, filepath.Join(root, ".git", "index"), "git's")
	if got, _ := since(t, d, root, at); !slices.Equal(got, []string{"moved/deep/er/two", "moved/one", "old/new", "other"}) {
		t.Errorf("changed are %q", got)
	}
	all, _, err := d.Since(t.Context(), filepath.Join(root, "other"), at)
	if err != nil || len(all) != 1 || all[0].Size != 5 || all[0].SHA256 != strings.TrimPrefix(core.SHA256("after"), "sha256:") {
		t.Errorf("of a file alone: %+v, %v", all, err)
	}
	if got, _ := since(t, d, filepath.Join(root, "nowhere"), at); len(got) != 0 {
		t.Errorf("of a place that is not there: %q", got)
	}
}

func TestALookForWhatChangedIsBounded(t *testing.T) {
	root := expect.Of(filepath.EvalSymlinks(t.TempDir()))(t)
	at := time.Now()
	for i := range sinceNamed + 5 {
		write(t, filepath.Join(root, fmt.Sprintf("f%04d", i)), "x")
	}
	big, err := os.Create(filepath.Join(root, "a-big-one"))
	if err == nil {
		err = big.Truncate(sinceRead + 1)
	}
	expect.No(t, err)
	big.Close()
	d := newDriver(t, Options{})
	all, more, err := d.Since(t.Context(), root, at)
	if err != nil || len(all) != sinceNamed || more != 6 {
		t.Errorf("%d and %d more, %v", len(all), more, err)
	}
	if all[0].SHA256 != "" || all[0].Size != sinceRead+1 || all[1].SHA256 == "" {
		t.Errorf("what is too large to be read: %+v", all[:2])
	}
}

func BenchmarkSince10kFiles(b *testing.B) {
	const files = 10_000
	root, d := benchTree(b, files), newDriver(b, Options{})
	settle(b)
	at := time.Now()
	b.ResetTimer()
	for range b.N {
		if all, _, err := d.Since(b.Context(), root, at); err != nil || len(all) != 0 {
			b.Fatal(len(all), err)
		}
	}
	perFile(b, files)
}
