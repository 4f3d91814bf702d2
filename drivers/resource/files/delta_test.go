package files

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	time.Sleep(3 * tick)
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
	time.Sleep(3 * tick)
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
			if _, err := d.Restore(t.Context(), tenant, fmt.Sprintf("r%d", i), s.snap, res, dest); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, s.snap.ID, err)
			}
			if got := picture(t, dest); got != s.want {
				t.Fatalf("seed %d, %s holds\n%s\nwant\n%s", seed, s.snap.ID, got, s.want)
			}
		}
		// What nothing needs is gone.
		st := expect.Of(d.store(tenant))(t)
		need := map[string]bool{}
		for _, s := range states {
			sum, _ := parseDigest(s.snap.ExternalRef.ID)
			all := expect.Of(st.tree(sum))(t)
			for _, e := range all {
				if e.kind == regular {
					need[e.sum.String()] = true
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
	root := t.TempDir()
	write(t, filepath.Join(root, "a"), "one")
	write(t, filepath.Join(root, "b"), "two")
	kept(t, d, "s1", root)
	s := expect.Of(d.store(tenant))(t)
	was := s.recall(root)
	for _, name := range []string{"a", "b"} { // one after the other, as they settle
		now := *was
		now.all = slices.Clone(was.all)
		for i := range now.all {
			if now.all[i].path == name {
				now.all[i].at = at(t, filepath.Join(root, name))
			}
		}
		s.remember(root, was, &now)
		was = &now
	}
	recalled := func() *seen {
		t.Helper()
		s := expect.Of(newDriver(t, opt).store(tenant))(t)
		return s.recall(root)
	}
	if got := recalled(); got == nil || !slices.Equal(got.all[1:], was.all[1:]) {
		t.Fatalf("recalled %+v", got)
	}
	// What is cut tells what stands before it, and what is written next is read.
	path := s.seenPath(root)
	data := expect.Of(os.ReadFile(path))(t)
	expect.No(t, os.WriteFile(path, data[:len(data)-1], 0o600))
	got := recalled()
	if got == nil || got.all[1].at != was.all[1].at || got.all[2].at != (where{}) {
		t.Fatalf("of what is cut: %+v", got)
	}
	if s.note(root, got, was); !slices.Equal(recalled().all[1:], was.all[1:]) {
		t.Error("what was written behind what is cut is not read")
	}
	// Of a state that is not kept any more nothing is believed: its contents may be gone.
	expect.No(t, errors.Join(d.Drop(t.Context(), tenant, dag.Snapshot{ID: "s1"}), d.Sweep(t.Context(), tenant)))
	if s.recall(root) != nil || recalled() != nil {
		t.Error("a state that is gone is recalled")
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

func FuzzDelta(f *testing.F) {
	d := delta{base: digest{1}, deep: 2, changes: []change{
		{entry: entry{kind: regular, mode: 0o644, size: 3, path: "a\n"}}, {entry: entry{path: "b\xff"}, gone: true}, {entry: entry{kind: link, mode: 0o777, target: "/x", path: "c"}},
	}}
	f.Add(d.encode(10))
	f.Add([]byte(firstOfDelta + strings.Repeat("0", 64) + " 1 0\n-\"a\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, is, err := decodeDelta(data)
		if !is || err != nil {
			return
		}
		bytes := d.bytes
		lines := int64(len(d.encode(0))) - int64(len(fmt.Sprintf("%s%s %d %d\n", firstOfDelta, d.base, d.deep, d.bytes)))
		again, _, err := decodeDelta(d.encode(bytes - lines))
		if err != nil || again.bytes != bytes || len(again.changes) != len(d.changes) {
			t.Fatalf("%+v becomes %+v: %v", d, again, err)
		}
		apply([]entry{{kind: directory, path: "."}, {kind: regular, path: "a"}}, d.changes)
	})
}

func FuzzSeen(f *testing.F) {
	f.Add(encodeSeen(digest{1}, []entry{{kind: regular, path: "a", size: 3}, {kind: regular, path: "b/c"}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, all, whole := decodeSeen(data); whole > int64(len(data)) || len(all) > len(data)/seenHead {
			t.Fatalf("%d files, %d bytes of %d", len(all), whole, len(data))
		}
	})
}
