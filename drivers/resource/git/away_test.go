package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARestoreLeavesWorktreesThatAreAway(t *testing.T) {
	p := newPlace(t)
	usb := filepath.Join(p.base, "usb")
	p.git(p.root, "worktree", "add", "-q", usb)
	if err := os.Rename(usb, usb+".away"); err != nil {
		t.Fatal(err)
	}
	r, snap := p.kept("s1")
	dest := filepath.Join(p.base, "fork")
	if _, err := p.d.Restore(t.Context(), tenant, "r1", snap, r, dest); err != nil {
		t.Fatal(err)
	}
	if err := p.d.Undo(t.Context(), tenant, "r1", r, dest); err != nil {
		t.Fatal(err)
	}
	if known := p.git(p.root, "worktree", "list"); !strings.Contains(known, usb) || strings.Contains(known, ".swarmdeck-") {
		t.Errorf("worktrees: %s", known)
	}
}
