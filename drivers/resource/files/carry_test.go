package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

func TestARestoreLeavesAloneWhatSnapshotsLeaveOut(t *testing.T) {
	root := filepath.Join(t.TempDir(), "tree")
	put := func(files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(root, name)
			expect.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
			write(t, path, text)
		}
	}
	put(map[string]string{
		".gitignore": ".env\nmodules/\n", "sub/.gitignore": "*.o\n!keep.o\n", "main": "before",
		".env": "secret", "modules/deep/a": "lib", "sub/x.o": "obj", "sub/keep.o": "kept", "large": strings.Repeat("x", 100), "later": "before",
	})
	expect.No(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	d := newDriver(t, Options{Limits: Limits{Files: 100, Bytes: 1000, File: 50, Depth: 9}})
	r := expect.Of(d.Look(t.Context(), root))(t)
	got := expect.Of(d.Snapshot(t.Context(), tenant, "s1", r, nil))(t)
	notes := strings.Join(got.Notes, "; ")
	for _, want := range []string{"1 files larger than 50 bytes were left out: large", "3 files and directories that a .gitignore names were left out: .env, modules, sub/x.o", "1 pipes"} {
		expect.Has(t, notes, want, "notes are")
	}
	// They do not change the state, whatever they become.
	put(map[string]string{".env": "other", "modules/deep/b": "lib", "large": strings.Repeat("y", 200)})
	res, snap := kept(t, d, "s2", root)
	expect.Is(t, snap.ExternalRef, got.Ref, "what is left out changes the state")
	nowhere(t, d, "secret")

	// They stay when the rules change too: by those of the snapshot or of now.
	put(map[string]string{"sub/y.o": "obj", ".gitignore": "later\nnew\nplain/\n", "large": "small now", "main": "after", "later": "after", "new/a": "new", "plain/sub/a": "x", "gone": "new"})
	expect.No(t, os.RemoveAll(filepath.Join(root, "sub", "keep.o")))
	expect.Of(d.Restore(t.Context(), tenant, "r1", snap, res, ""))(t)
	for name, want := range map[string]string{
		".gitignore": ".env\nmodules/\n", "main": "before", "later": "before", "sub/keep.o": "kept", // of the snapshot
		".env": "other", "modules/deep/a": "lib", "modules/deep/b": "lib", "sub/x.o": "obj", "sub/y.o": "obj", "large": "small now", "new/a": "new", "plain/sub/a": "x",
	} {
		if data, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(data) != want {
			t.Errorf("%s: %q %v, want %q", name, data, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "gone")); !os.IsNotExist(err) {
		t.Errorf("what is new since is there: %v", err)
	}
	expect.Of(os.Lstat(filepath.Join(root, "pipe")))(t)
	// A fork has none of them.
	dest := filepath.Join(t.TempDir(), "fork")
	expect.Of(d.Restore(t.Context(), tenant, "r2", snap, res, dest))(t)
	if all := picture(t, dest); strings.Contains(all, "lib") || strings.Contains(all, "pipe") || strings.Contains(all, "large") || !strings.Contains(all, "keep.o") {
		t.Errorf("the fork has\n%s", all)
	}
}
