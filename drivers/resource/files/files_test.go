package files

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/expect"
)

const tenant = "t_test"

func newDriver(t testing.TB, opt Options) *Driver {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	return expect.Of(New(opt))(t)
}

// kept takes a snapshot of a path.
func kept(t testing.TB, d *Driver, id, path string) (dag.Resource, dag.Snapshot) {
	t.Helper()
	r := expect.Of(d.Look(t.Context(), path))(t)
	got := expect.Of(d.Snapshot(t.Context(), tenant, id, r, nil))(t)
	return r, dag.Snapshot{ID: id, ResourceRef: r.ID, Method: got.Method, ExternalRef: got.Ref}
}

// picture is all that can be told of a tree, a line each.
func picture(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		fmt.Fprintf(&b, "%q %v %d", rel, info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		case info.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			fmt.Fprintf(&b, " -> %q", to)
		}
		b.WriteByte('\n')
		return nil
	})
	expect.No(t, err)
	return b.String()
}

// grow makes a random tree, with the names and links that trees may have.
func grow(t testing.TB, r *rand.Rand, root string, n int) {
	t.Helper()
	expect.No(t, os.MkdirAll(root, 0o755))
	dirs := []string{root}
	names := []string{"a", "b.go", "with space", "new\nline", "bell\a", "\x1b[31mred", "bad\xff\xfeutf8", "quo\"te", "back\\slash", "ünï", "\u202ertl", "..x", "-rf"}
	old := time.Unix(1_700_000_000, 123_456_789)
	for range n {
		path := filepath.Join(dirs[r.IntN(len(dirs))], fmt.Sprintf("%s%d", names[r.IntN(len(names))], r.Uint32()))
		switch r.IntN(5) {
		case 0:
			expect.No(t, os.Mkdir(path, 0o700))
			dirs = append(dirs, path)
		case 1:
			targets := []string{"nowhere", "/etc/passwd", "../../../..", "a", ".", strings.Repeat("long/", 100)}
			expect.No(t, os.Symlink(targets[r.IntN(len(targets))], path))
		default:
			data := make([]byte, r.IntN(3000)*r.IntN(2))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			expect.No(t, os.WriteFile(path, data, 0o600))
			expect.No(t, os.Chmod(path, os.FileMode(0o400|r.IntN(0o1000))))
			expect.No(t, os.Chtimes(path, old, old.Add(time.Duration(r.Int64N(1e15)))))
		}
	}
	for _, d := range slices.Backward(dirs) {
		expect.No(t, os.Chtimes(d, old, old))
	}
}

func TestATreeIsMadeAgainAsItWas(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDriver(t, Options{})
		root := filepath.Join(t.TempDir(), "tree")
		grow(t, r, root, 1+r.IntN(60))
		want := picture(t, root)
		res, snap := kept(t, d, "s1", root)

		dest := filepath.Join(t.TempDir(), "fork")
		made := expect.Of(d.Restore(t.Context(), tenant, "r1", snap, res, dest))(t)
		if p, err := PathOf(made); err != nil || p != dest || made.ID == res.ID {
			t.Fatalf("made %+v at %q: %v", made, p, err)
		}
		if got := picture(t, dest); got != want {
			t.Fatalf("seed %d: the copy differs:\n%s\nwant\n%s", seed, got, want)
		}

		// What happens to the original afterwards is undone in its place.
		grow(t, r, root, 10)
		expect.No(t, RemoveTree(filepath.Join(root, firstName(t, root))))
		expect.Of(d.Restore(t.Context(), tenant, "r2", snap, res, ""))(t)
		if got := picture(t, root); got != want {
			t.Fatalf("seed %d: the tree in its place differs:\n%s\nwant\n%s", seed, got, want)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(root), ".swarmdeck*")); len(left) > 0 {
			t.Fatalf("seed %d: left behind: %v", seed, left)
		}
	}
}

func firstName(t *testing.T, dir string) string {
	t.Helper()
	return expect.Of(os.ReadDir(dir))(t)[0].Name()
}

func TestASingleFileIsKeptToo(t *testing.T) {
	d := newDriver(t, Options{})
	path := filepath.Join(t.TempDir(), "notes.txt")
	write(t, path, "before")
	res, snap := kept(t, d, "s1", path)
	write(t, path, "after")
	expect.Of(d.Restore(t.Context(), tenant, "r1", snap, res, ""))(t)
	if data, _ := os.ReadFile(path); string(data) != "before" {
		t.Errorf("restored %q", data)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	expect.No(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestTheSameIDIsDoneOnce(t *testing.T) {
	d := newDriver(t, Options{})
	root := t.TempDir()
	write(t, filepath.Join(root, "a"), "one")
	res, snap := kept(t, d, "s1", root)
	write(t, filepath.Join(root, "a"), "two")
	if _, again := kept(t, d, "s1", root); again.ExternalRef != snap.ExternalRef {
		t.Error("a snapshot taken again under its id is of another state")
	}
	if _, other := kept(t, d, "s2", root); other.ExternalRef == snap.ExternalRef {
		t.Error("a change was not seen")
	}
	dest := filepath.Join(t.TempDir(), "fork")
	for range 2 {
		expect.Of(d.Restore(t.Context(), tenant, "r1", snap, res, dest))(t)
		if data, _ := os.ReadFile(filepath.Join(dest, "a")); string(data) != "one" && string(data) != "mine" {
			t.Errorf("restored %q", data)
		}
		write(t, filepath.Join(dest, "a"), "mine")
	}
	if data, _ := os.ReadFile(filepath.Join(dest, "a")); string(data) != "mine" {
		t.Errorf("a restore that was done is done again: %q", data)
	}
	_, err := d.Restore(t.Context(), tenant, "r2", snap, res, dest)
	expect.Is(t, core.AsError(err).Code, core.Conflict, "another restore over it")
	expect.No(t, d.Undo(t.Context(), tenant, "r1", res, dest))
	if _, err := os.Lstat(dest); !os.IsNotExist(err) {
		t.Errorf("what was undone is there: %v", err)
	}
	expect.No(t, d.Undo(t.Context(), tenant, "r1", res, dest))
}

func TestAFileChangedWithinTheClocksGrainIsReadAgain(t *testing.T) {
	d := newDriver(t, Options{})
	root := t.TempDir()
	path := filepath.Join(root, "a")
	var refs []string
	for i := range 20 {
		write(t, path, fmt.Sprintf("%02d", i)) // same size, and often the same time
		_, snap := kept(t, d, fmt.Sprintf("s%d", i), root)
		refs = append(refs, snap.ExternalRef.ID)
	}
	slices.Sort(refs)
	expect.Is(t, len(slices.Compact(refs)), 20, "some of 20 states were taken for another")
}

func TestWhatDidNotChangeIsNotReadAgain(t *testing.T) {
	d := newDriver(t, Options{})
	root := t.TempDir()
	path := filepath.Join(root, "a")
	write(t, path, "one")
	long := time.Now().Add(-time.Hour)
	expect.No(t, os.Chtimes(path, long, long))
	s := expect.Of(d.store(tenant))(t)
	var st unix.Stat_t
	expect.No(t, unix.Lstat(path, &st))
	// What was seen is said to have another content: it is believed.
	e := entry{Kind: regular, Path: "a", Size: st.Size, Mtime: st.Mtim.Nano(), Sum: "another", at: whereOf(&st)}
	s.remember(root, nil, &seen{all: []entry{e}})
	_, snap := kept(t, d, "s1", root)
	sum, _ := parseDigest(snap.ExternalRef.ID)
	all, err := s.tree(sum)
	if err != nil || all[1].Sum != e.Sum {
		t.Errorf("it was read: %v %v", all, err)
	}
}

func TestWhatIsDroppedGoesAndTheRestStays(t *testing.T) {
	d := newDriver(t, Options{})
	root := t.TempDir()
	write(t, filepath.Join(root, "shared"), "shared")
	write(t, filepath.Join(root, "a"), "one")
	res, first := kept(t, d, "s1", root)
	write(t, filepath.Join(root, "a"), "two")
	_, second := kept(t, d, "s2", root)
	for range 2 {
		expect.No(t, errors.Join(d.Drop(t.Context(), tenant, first), d.Sweep(t.Context(), tenant)))
	}
	_, err := d.Restore(t.Context(), tenant, "r1", first, res, filepath.Join(t.TempDir(), "x"))
	expect.Is(t, core.AsError(err).Code, core.NotFound, "a dropped snapshot")
	expect.Of(d.Restore(t.Context(), tenant, "r2", second, res, filepath.Join(t.TempDir(), "x")))(t)
	found, _ := filepath.Glob(filepath.Join(d.opt.Dir, tenant, "content/*/*"))
	expect.Is(t, len(found), 2, "contents kept", found)
}

func TestADamagedSnapshotIsNotRestored(t *testing.T) {
	d := newDriver(t, Options{})
	root := filepath.Join(t.TempDir(), "tree")
	expect.No(t, os.Mkdir(root, 0o700))
	write(t, filepath.Join(root, "a"), "one")
	res, snap := kept(t, d, "s1", root)
	write(t, filepath.Join(root, "a"), "two")
	want := picture(t, root)
	for _, glob := range []string{"content/*/*", "tree/*"} {
		found, _ := filepath.Glob(filepath.Join(d.opt.Dir, tenant, glob))
		expect.No(t, os.Chmod(found[0], 0o600))
		write(t, found[0], "bad")
		_, err := d.Restore(t.Context(), tenant, "r1", snap, res, "")
		if core.AsError(err).Code != core.Conflict || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", glob, err)
		}
		if got := picture(t, root); got != want {
			t.Errorf("%s: the tree was changed:\n%s", glob, got)
		}
	}
}

func TestBadPlacesAreNamed(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "tree")
	expect.No(t, os.MkdirAll(filepath.Join(root, "sub"), 0o700))
	d := newDriver(t, Options{Own: filepath.Join(root, "sub", "data.db")})
	for _, target := range []string{"", "nul\x00", filepath.Join(base, "none"), "/", "/dev/null", strings.Repeat("a/", 4000)} {
		if _, err := d.Look(t.Context(), target); core.AsError(err).Code != core.InvalidInput || !strings.Contains(err.Error(), "target") {
			t.Errorf("look at %.20q: %v", target, err)
		}
	}
	write(t, filepath.Join(root, "sub", "data.db"), "engine")
	write(t, filepath.Join(root, "sub", "data.db.key"), "engine")
	res, snap := kept(t, d, "s1", root)
	for _, dest := range []string{filepath.Join(root, "x"), root, base, filepath.Join(base, "none/x"), "/", "nul\x00"} {
		if _, err := d.Restore(t.Context(), tenant, "r1", snap, res, dest); core.AsError(err).Code != core.InvalidInput || !strings.Contains(err.Error(), "to") {
			t.Errorf("restore to %q: %v", dest, err)
		}
	}
	if _, err := d.Restore(t.Context(), tenant, "r1", snap, res, ""); core.AsError(err).Code != core.InvalidInput || !strings.Contains(err.Error(), "engine") {
		t.Errorf("the engine's data is replaced: %v", err)
	}
	expect.Of(d.Restore(t.Context(), tenant, "r1", snap, res, filepath.Join(base, "x")))(t)
	if all := picture(t, filepath.Join(base, "x")); strings.Contains(all, "data.db") {
		t.Errorf("the engine's files were copied:\n%s", all)
	}
	for _, id := range []string{"", "../x", ".x", "a/b", strings.Repeat("a", 129)} {
		_, err := d.Snapshot(t.Context(), tenant, id, res, nil)
		expect.Is(t, core.AsError(err).Code, core.InvalidInput, "id", id)
	}
	_, err := d.Snapshot(t.Context(), "../t", "s2", res, nil)
	expect.Fails(t, err, "a tenant that is none")
	if _, err := d.Snapshot(t.Context(), tenant, "s2", dag.Resource{ID: "x", Metadata: resource.Metadata("files", "relative", nil)}, nil); core.AsError(err).Code != core.InvalidInput {
		t.Errorf("a resource without a path: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Snapshot(ctx, tenant, "s3", res, nil)
	expect.Err(t, err, context.Canceled)
}

func TestAPlaceOfAnyNameIsFoundAgain(t *testing.T) {
	d := newDriver(t, Options{})
	for _, name := range []string{"plain", "new\nline", "\u202ertl", "bad\xff", strings.Repeat("long", 60)} {
		root := filepath.Join(t.TempDir(), name, name)
		expect.No(t, os.MkdirAll(root, 0o700))
		write(t, filepath.Join(root, "a"), "one")
		res, snap := kept(t, d, "s-"+hex.EncodeToString([]byte(name))[:4], root)
		if path, err := PathOf(res); err != nil || path != root {
			t.Errorf("%q is found as %q: %v", root, path, err)
		}
		if strings.ContainsFunc(res.Name, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) || len(res.Name) > 510 {
			t.Errorf("%q is shown as %q", root, res.Name)
		}
		write(t, filepath.Join(root, "a"), "two")
		expect.Of(d.Restore(t.Context(), tenant, "r1-"+snap.ID, snap, res, ""))(t)
		if data, _ := os.ReadFile(filepath.Join(root, "a")); string(data) != "one" {
			t.Errorf("%q: %q", root, data)
		}
	}
}

func TestAProbeTellsWhatIsThere(t *testing.T) {
	d := newDriver(t, Options{})
	root := filepath.Join(t.TempDir(), "tree")
	expect.No(t, os.Mkdir(root, 0o700))
	r := expect.Of(d.Look(t.Context(), root))(t)
	if l, err := d.Probe(t.Context(), r); l != dag.Alive || err != nil {
		t.Error(l, err)
	}
	expect.No(t, os.Remove(root))
	if l, err := d.Probe(t.Context(), r); l != dag.Dead || err != nil {
		t.Error(l, err)
	}
}

func TestHowFarASnapshotHasComeIsTold(t *testing.T) {
	d := newDriver(t, Options{})
	r, _ := kept(t, d, "s1", t.TempDir())
	path := expect.Of(PathOf(r))(t)
	if done, all := d.Copying(r); done != 0 || all != 0 {
		t.Errorf("%d of %d when it is over", done, all)
	}
	var first, second atomic.Int64
	over := d.begins(path, &first, 5)
	again := d.begins(path, &second, 7)
	over()
	second.Store(3)
	if done, all := d.Copying(r); done != 3 || all != 7 {
		t.Errorf("%d of %d", done, all)
	}
	again()
	if _, all := d.Copying(r); all != 0 {
		t.Errorf("%d when both are over", all)
	}
}
