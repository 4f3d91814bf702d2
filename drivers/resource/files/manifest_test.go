package files

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestASnapshotWritesLittleMoreThanWhatChanged(t *testing.T) {
	const files, some, size = 2000, 20, 2048
	root := filepath.Join(t.TempDir(), "tree")
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("d%02d", i/50))
		expect.No(t, os.MkdirAll(dir, 0o755))
		write(t, filepath.Join(dir, fmt.Sprintf("f%d", i)), fmt.Sprintf("%*d", size, i))
	}
	d := newDriver(t, Options{})
	d.grain = tick
	settle(t)
	kept(t, d, "s0", root)
	for round := range 5 {
		for i := range some {
			n := (i*97 + round) % files
			write(t, filepath.Join(root, fmt.Sprintf("d%02d", n/50), fmt.Sprintf("f%d", n)), fmt.Sprintf("%*d", size, -i-round*files-1))
		}
		before := written(t)
		kept(t, d, fmt.Sprintf("s%d", round+1), root)
		if n := written(t) - before; n > 2*some*size+4096 {
			t.Errorf("round %d: %d bytes were written for %d that changed", round, n, some*size)
		}
	}
	settle(t)
	kept(t, d, "settled", root)
	before := written(t)
	_, last := kept(t, d, "same", root)
	if n := written(t) - before; n > 8192 {
		t.Errorf("%d bytes were written though nothing changed", n)
	}
	if _, whole := kept(t, newDriver(t, Options{}), "s1", root); whole.ExternalRef != last.ExternalRef {
		t.Errorf("the same state is %v and %v", last.ExternalRef, whole.ExternalRef)
	}
}

// settle lets the clock of the file system go on: what was written before is older.
func settle(t testing.TB) {
	t.Helper()
	path, from := filepath.Join(t.TempDir(), "clock"), time.Now()
	expect.Await(t, "the clock of the file system goes on", func() bool {
		write(t, path, "now")
		info, err := os.Stat(path)
		return err == nil && info.ModTime().Sub(from) > 2*tick
	})
}

// at is where a file is.
func at(t *testing.T, path string) where {
	t.Helper()
	var st unix.Stat_t
	expect.No(t, unix.Lstat(path, &st))
	return whereOf(&st)
}

// TestAnyStateIsMadeAgainWhateverWasDropped changes a tree at random, with engines that
// are started anew, and states that are given up, in any order.
func TestAnyStateIsMadeAgainWhateverWasDropped(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 3))
		opt := Options{Dir: t.TempDir()}
		d := newDriver(t, opt)
		root := filepath.Join(t.TempDir(), "tree")
		grow(t, r, root, 40)
		type state struct {
			snap dag.Snapshot
			want string
		}
		var states []state
		var res dag.Resource
		for i := range 30 {
			switch r.IntN(4) {
			case 0:
				expect.No(t, RemoveTree(filepath.Join(root, firstName(t, root))))
			case 1: // back to a state of before
				if len(states) > 0 {
					expect.Of(d.Restore(t.Context(), tenant, fmt.Sprintf("back%d", i), states[r.IntN(len(states))].snap, res, ""))(t)
				}
			}
			grow(t, r, root, 1+r.IntN(4))
			var snap dag.Snapshot
			res, snap = kept(t, d, fmt.Sprintf("s%d", i), root)
			states = append(states, state{snap, picture(t, root)})
			if r.IntN(5) == 0 {
				d = newDriver(t, opt)
			}
			if n := r.IntN(2 * len(states)); n < len(states)-1 {
				expect.No(t, errors.Join(d.Drop(t.Context(), tenant, states[n].snap), d.Sweep(t.Context(), tenant)))
				states = slices.Delete(states, n, n+1)
			}
		}
		for i, s := range states {
			dest := filepath.Join(t.TempDir(), "x")
			expect.Of(d.Restore(t.Context(), tenant, fmt.Sprintf("r%d", i), s.snap, res, dest))(t)
			if got := picture(t, dest); got != s.want {
				t.Fatalf("seed %d, %s holds\n%s\nwant\n%s", seed, s.snap.ID, got, s.want)
			}
		}
		// What nothing needs is gone.
		st := expect.Of(d.store(tenant))(t)
		need := map[string]bool{}
		for _, s := range states {
			sum, _ := parseDigest(s.snap.ExternalRef.ID)
			for _, e := range expect.Of(st.tree(sum))(t) {
				if e.Kind == regular {
					need[e.Sum.String()] = true
				}
			}
		}
		expect.No(t, d.Sweep(t.Context(), tenant))
		found, _ := filepath.Glob(filepath.Join(opt.Dir, tenant, "content/*/*"))
		expect.Is(t, len(found), len(need), "seed", seed)
	}
}

func TestWhatWasSeenOutlivesTheEngine(t *testing.T) {
	opt := Options{Dir: t.TempDir()}
	d := newDriver(t, opt)
	d.grain = tick
	root := t.TempDir()
	write(t, filepath.Join(root, "small"), "one")
	recalled := func() *seen {
		t.Helper()
		return expect.Of(newDriver(t, opt).store(tenant))(t).recall(root)
	}
	settle(t)
	kept(t, d, "s0", root)
	if recalled() != nil {
		t.Error("what is read at once is written")
	}
	large, small := filepath.Join(root, "large"), filepath.Join(root, "small")
	write(t, large, "")
	expect.No(t, os.Truncate(large, mostUnsaved))
	settle(t)
	kept(t, d, "s1", root)
	known := func() {
		t.Helper()
		if got := recalled(); got == nil || len(got.all) != 3 || got.all[1].at != at(t, large) || got.all[2].at != at(t, small) {
			t.Fatalf("recalled %+v", got)
		}
	}
	known()
	// A state that nobody needs any more takes nothing along that was seen of its files.
	write(t, small, "two")
	settle(t)
	kept(t, d, "s2", root)
	drop := func(id string) {
		t.Helper()
		expect.No(t, errors.Join(d.Drop(t.Context(), tenant, dag.Snapshot{ID: id}), d.Sweep(t.Context(), tenant)))
	}
	drop("s0")
	drop("s1")
	known()
	// What is damaged is not believed.
	path := expect.Of(d.store(tenant))(t).seenPath(root)
	data := expect.Of(os.ReadFile(path))(t)
	for n := range data {
		expect.No(t, os.WriteFile(path, data[:n], 0o600))
		if recalled() != nil {
			t.Fatalf("%d bytes of %d are recalled", n, len(data))
		}
	}
	// Of a state that is not kept any more neither: its contents may be gone.
	expect.No(t, os.WriteFile(path, data, 0o600))
	drop("s2")
	if recalled() != nil || expect.Of(d.store(tenant))(t).recall(root) != nil {
		t.Error("a state that is gone is recalled")
	}
}

func TestADamagedManifestMakesNoOtherTree(t *testing.T) {
	d := newDriver(t, Options{})
	root := t.TempDir()
	for i := range 4 {
		write(t, filepath.Join(root, fmt.Sprint("f", i)), "before")
	}
	kept(t, d, "s1", root)
	write(t, filepath.Join(root, "f1"), "after")
	expect.No(t, os.Remove(filepath.Join(root, "f2")))
	_, snap := kept(t, d, "s2", root)
	s := expect.Of(d.store(tenant))(t)
	sum := expect.Of(parseDigest(snap.ExternalRef.ID))(t)
	want := expect.Of(s.tree(sum))(t)
	paths := expect.Of(filepath.Glob(filepath.Join(s.dir, "tree", "*")))(t)
	expect.Is(t, len(paths), 2, "manifests")
	for _, path := range paths {
		data := expect.Of(os.ReadFile(path))(t)
		expect.No(t, os.Chmod(path, 0o600))
		for n := range data {
			for _, bad := range [][]byte{data[:n], slices.Concat(data[:n], []byte{data[n] ^ 1}, data[n+1:]), slices.Concat(data[:n], []byte{data[n] ^ 0x80}, data[n+1:])} {
				expect.No(t, os.WriteFile(path, bad, 0o600))
				if got, err := s.tree(sum); err == nil && !slices.Equal(got, want) {
					t.Fatalf("byte %d of %s: %+v", n, path, got)
				}
			}
		}
		expect.No(t, os.WriteFile(path, data, 0o600))
	}
}

func TestTheOrderIsThatOfAWalk(t *testing.T) {
	sorted := []string{".", "a", "a/b", "a/b/c", "a/b!", "a!", "a!/x", "a-b", "ab", "b"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := order(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q to %q: %d", a, b, got)
			}
		}
	}
}
