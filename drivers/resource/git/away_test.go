package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestARestoreLeavesWorktreesThatAreAway(t *testing.T) {
	p := newPlace(t)
	usb := filepath.Join(p.base, "usb")
	p.git(p.root, "worktree", "add", "-q", usb)
	expect.No(t, os.Rename(usb, usb+".away"))
	r, snap := p.kept("s1")
	dest := filepath.Join(p.base, "fork")
	expect.Of(p.d.Restore(t.Context(), tenant, "r1", snap, r, dest))(t)
	expect.No(t, p.d.Undo(t.Context(), tenant, "r1", r, dest))
	known := p.git(p.root, "worktree", "list")
	expect.True(t, strings.Contains(known, usb) && !strings.Contains(known, ".swarmdeck-"), "worktrees: %s", known)
}
