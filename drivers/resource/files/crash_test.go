package files

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// victim makes this program one that works on a tree until it is killed.
const victim = "SWARMDECK_TEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		work()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work does one thing with a tree: argument 1 says what, under which id.
func work() {
	d, err := New(Options{Dir: os.Args[2]})
	if err == nil {
		err = act(d, os.Args[1], os.Args[3], os.Args[4], os.Args[5])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func act(d *Driver, what, id, root, dest string) error {
	ctx := context.Background()
	r, err := d.Look(ctx, root)
	if err != nil {
		return err
	}
	if what == "snapshot" {
		_, err = d.Snapshot(ctx, tenant, id, r, nil)
		return err
	}
	got, err := d.Snapshot(ctx, tenant, "base", r, nil) // is there already
	if err != nil {
		return err
	}
	_, err = d.Restore(ctx, tenant, id, dag.Snapshot{ID: "base", ExternalRef: got.Ref}, r, dest)
	return err
}

// TestAKillLeavesTheTreeBeforeOrAfter kills what works on a tree at any time,
// and looks: the tree is the one before or the one after, never one between,
// and the same done again comes to its end.
func TestAKillLeavesTheTreeBeforeOrAfter(t *testing.T) {
	const rounds = 10
	r := rand.New(rand.NewPCG(7, 7))
	base := t.TempDir()
	store, root, dest := filepath.Join(base, "store"), filepath.Join(base, "tree"), filepath.Join(base, "fork")
	grow(t, r, root, 80)
	d := newDriver(t, Options{Dir: store})
	kept(t, d, "base", root)
	kept0 := picture(t, root)
	killed, most := 0, 0*time.Second
	for i := range rounds + 1 {
		for what, dest := range map[string]string{"snapshot": "", "restore": "", "fork": dest} {
			if what == "snapshot" || i%2 == 0 { // restore finds a tree that has changed, or one that has not
				write(t, filepath.Join(root, fmt.Sprintf("later%d", i)), fmt.Sprint(what, i))
			}
			before := picture(t, root)
			id := fmt.Sprintf("%s-%d", what, i)
			cmd := exec.Command("/proc/self/exe", map[bool]string{true: "snapshot", false: "restore"}[what == "snapshot"], store, id, root, dest)
			cmd.Env = append(os.Environ(), victim+"=1")
			expect.No(t, cmd.Start())
			if began := time.Now(); i == 0 { // how long it takes undisturbed
				expect.No(t, cmd.Wait())
				most = max(most, time.Since(began))
			} else {
				soon := time.AfterFunc(time.Duration(r.Int64N(int64(most))), func() { _ = cmd.Process.Kill() }) // any time will do
				if cmd.Wait() != nil {
					killed++
				}
				soon.Stop()
			}
			switch now := picture(t, root); {
			case what != "restore" && now != before:
				t.Fatalf("%s: the tree changed:\n%s", id, now)
			case what == "restore" && now != before && now != kept0:
				t.Fatalf("%s: a tree between:\n%s", id, now)
			}
			if what == "fork" {
				if _, err := os.Lstat(dest); err == nil && picture(t, dest) != kept0 {
					t.Fatalf("%s: a fork that is half there:\n%s", id, picture(t, dest))
				}
			}
			// The engine is started anew, and does it again.
			again := newDriver(t, Options{Dir: store})
			expect.No(t, act(again, map[bool]string{true: "snapshot", false: "restore"}[what == "snapshot"], id, root, dest), id)
			switch what {
			case "snapshot":
				look(t, again, id, before)
			case "restore":
				if picture(t, root) != kept0 {
					t.Fatalf("%s is not done", id)
				}
			case "fork":
				if picture(t, dest) != kept0 {
					t.Fatalf("%s is not done", id)
				}
				expect.No(t, RemoveTree(dest))
			}
			if left, _ := filepath.Glob(filepath.Join(base, ".swarmdeck*")); len(left) > 0 {
				t.Fatalf("%s left %v", id, left)
			}
		}
	}
	t.Logf("%d of %d were killed before their end", killed, 3*rounds)
	if killed == 0 {
		t.Error("none was killed before its end")
	}
	expect.No(t, newDriver(t, Options{Dir: store}).Drop(t.Context(), tenant, dag.Snapshot{ID: "snapshot-0"}))
	look(t, newDriver(t, Options{Dir: store}), "base", kept0)
}

// look demands what is kept under an id.
func look(t *testing.T, d *Driver, id, want string) {
	t.Helper()
	s := expect.Of(d.store(tenant))(t)
	got := expect.Of(s.receipt(id))(t)
	root := filepath.Join(t.TempDir(), "x")
	expect.No(t, os.Mkdir(root, 0o700))
	r := expect.Of(d.Look(t.Context(), root))(t)
	snap := dag.Snapshot{ID: id, ExternalRef: dag.ExtRef{Kind: refKind, ID: "sha256:" + got.Tree}}
	expect.Of(d.Restore(t.Context(), tenant, "look-"+id, snap, r, ""))(t)
	if now := picture(t, root); now != want {
		t.Fatalf("%s holds\n%s\nwant\n%s", id, now, want)
	}
}
