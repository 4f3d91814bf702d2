package files

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestMountPointsAreRead(t *testing.T) {
	got, err := mountPoints("36 35 98:0 / /a\\040b\\134c rw shared:1 - ext4 /dev/x rw\n37 36 0:5 /sub /d\\09 rw - tmpfs none rw\n")
	if want := []string{`/a b\c`, `/d\09`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, not %q", got, err, want)
	}
	_, err = mountPoints("36 35\n")
	expect.Fails(t, err, "a line cut off was read")
}

func TestWhatIsMountedInATreeSurvives(t *testing.T) {
	base := t.TempDir()
	root, other := filepath.Join(base, "tree"), filepath.Join(base, "other")
	point := filepath.Join(root, "a b", "in")
	for _, dir := range []string{point, other} {
		expect.No(t, os.MkdirAll(dir, 0o755))
	}
	write(t, filepath.Join(root, "file"), "x")
	write(t, filepath.Join(other, "dear"), "keep")
	d := newDriver(t, Options{})
	r, snap := kept(t, d, "s1", root)
	// Of the same file system, so that its device tells nothing.
	if out, err := exec.Command("mount", "--bind", other, point).CombinedOutput(); err != nil {
		t.Skipf("can't mount here: %v %s", err, out)
	}
	mounted := true
	unmount := func() {
		if out, err := exec.Command("umount", "-l", point).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
		mounted = false
	}
	t.Cleanup(func() {
		if mounted {
			unmount()
		}
	})
	var refused *core.Error
	if _, err := d.Restore(t.Context(), tenant, "r1", snap, r, ""); !errors.As(err, &refused) || refused.Code != core.Conflict || !strings.Contains(err.Error(), point) {
		t.Errorf("restored over a mount: %v", err)
	}
	expect.Fails(t, RemoveTree(root), "a tree with a mount was removed")
	if data, err := os.ReadFile(filepath.Join(other, "dear")); err != nil || string(data) != "keep" {
		t.Errorf("what was mounted: %q %v", data, err)
	}
	unmount()
	_, err := d.Restore(t.Context(), tenant, "r1", snap, r, "")
	expect.No(t, err, "restore with nothing mounted")
}
