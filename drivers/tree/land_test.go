package tree_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"swarmdeck/engine/tree"
)

// taken takes a tree over, and has the record of it say so.
func (r rig) taken(t tree.Tree, q tree.Join) tree.Tree {
	r.Helper()
	out, err := r.over(t, q)
	no(r, err)
	if len(out.Conflicts) > 0 {
		r.Fatal("conflicts in", out.Conflicts)
	}
	now, err := r.d.Now(r.Context(), t)
	no(r, err)
	t.Since, t.Head, t.BaseCommit = out.State, now.Head, out.Commit
	return t
}

// TestAnAgentThatCommitsIsTakenOverAgainAndAgain has each way of taking over follow each
// other: what the agent commits later is made of what it had before.
func TestAnAgentThatCommitsIsTakenOverAgainAndAgain(t *testing.T) {
	r := newRig(t)
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]string, 2000) // large enough that its next version is told as a difference
	for n := range text {
		text[n] = fmt.Sprint(n, random.Uint64(), "\n")
	}
	for n := range 150 {
		r.write(r.repo, fmt.Sprintf("many/%d", n), strings.Repeat(fmt.Sprint(n, "\n"), 20))
	}
	r.git(r.repo, "add", ".")
	r.git(r.repo, "commit", "-qm", "many")
	ada := r.tree("ada", r.repo)
	for n, mode := range []tree.Mode{tree.Squash, tree.Rebase, tree.Squash, tree.Merge, tree.Rebase} {
		for part := range 2 {
			text[random.IntN(len(text))] = fmt.Sprintf("of %d, %d\n", n, part)
			r.write(ada.Path, "text", strings.Join(text, ""))
			r.write(ada.Path, fmt.Sprintf("sub/%d/%d", n, part), "x\n")
			if n == 2 {
				for m := range 120 { // a pack of its own
					r.write(ada.Path, fmt.Sprintf("many/%d", m), strings.Repeat(fmt.Sprint(n, part, m, "\n"), 20))
				}
			}
			r.git(ada.Path, "add", ".")
			r.git(ada.Path, "commit", "-qm", fmt.Sprintf("%d.%d", n, part))
		}
		ada = r.taken(ada, tree.Join{Key: fmt.Sprint("t", n), Mode: mode})
		if r.git(r.repo, "rev-parse", "HEAD^{tree}") != r.git(ada.Path, "rev-parse", "HEAD^{tree}") {
			t.Fatal(n, "the base has something else")
		}
		r.git(r.repo, "fsck", "--full", "--strict")
	}
}
