package tree_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

// taken takes a tree over, and has the record of it say so.
func (r rig) taken(t tree.Tree, q tree.Join) tree.Tree {
	r.Helper()
	out, err := r.over(t, q)
	no(r, err)
	expect.Must(r, len(out.Conflicts) == 0, "conflicts in %v", out.Conflicts)
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
		expect.Must(t, r.git(r.repo, "rev-parse", "HEAD^{tree}") == r.git(ada.Path, "rev-parse", "HEAD^{tree}"), "%v the base has something else", n)
		r.git(r.repo, "fsck", "--full", "--strict")
	}
}

// TestFilesThatGitCallsCleanAreClean has files that lie there otherwise than they are
// kept, as the repository wants it.
func TestFilesThatGitCallsCleanAreClean(t *testing.T) {
	for name, as := range map[string]struct{ attributes, config string }{
		"attributes": {"*.bat text eol=crlf\n", ""},
		"autocrlf":   {"*.bat ident\n", "[core]\n\tautocrlf = true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if as.attributes != "" {
				r.write(r.repo, ".gitattributes", as.attributes)
			}
			if as.config != "" {
				r.write(r.repo, ".git/config", r.read(r.repo, ".git/config")+as.config)
			}
			r.write(r.repo, "run.bat", "one $Id$\r\ntwo\r\n")
			r.write(r.repo, "gone.bat", "gone $Id$\r\n")
			r.git(r.repo, "add", ".")
			r.git(r.repo, "commit", "-qm", "lines")
			for _, file := range []string{"run.bat", "gone.bat", "a"} { // as a clone has it
				no(t, os.Remove(filepath.Join(r.repo, file)))
			}
			r.git(r.repo, "checkout", "-q", ".")
			ada := r.tree("ada", r.repo)
			r.write(ada.Path, "run.bat", r.read(ada.Path, "run.bat")+"three\n")
			r.write(ada.Path, "new.bat", "new\n")
			no(t, os.Remove(filepath.Join(ada.Path, "gone.bat")))
			_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
			no(t, err)
			expect.Is(t, r.git(r.repo, "status", "--short"), "")
			got := r.read(r.repo, "run.bat") + r.read(r.repo, "new.bat")
			expect.True(t, strings.HasSuffix(got, "two\r\nthree\r\nnew\r\n"), "%q", got)
			// What git calls changed is not overwritten.
			bob := r.tree("bob", r.repo)
			r.write(bob.Path, "run.bat", "bob\n")
			r.write(r.repo, "run.bat", "mine\r\n")
			expect.Err(t, expect.Fault(r.over(bob, tree.Join{Key: "t2", Mode: tree.Squash})), core.Kind(core.Conflict))
		})
	}
}

// TestASparseCheckoutStaysSparse takes over files that are not checked out.
func TestASparseCheckoutStaysSparse(t *testing.T) {
	for _, how := range []string{"--no-cone", "--sparse-index"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			r.write(r.repo, "in/x", "x\n")
			r.write(r.repo, "out/y", "y\n")
			r.write(r.repo, "out/z", "z\n")
			r.git(r.repo, "add", ".")
			r.git(r.repo, "commit", "-qm", "in and out")
			r.git(r.repo, "sparse-checkout", "set", how, "in")
			ada := r.tree("ada", r.repo)
			r.write(ada.Path, "in/x", "X\n")
			r.write(ada.Path, "out/y", "Y\n")
			r.write(ada.Path, "out/new", "new\n")
			no(t, os.Remove(filepath.Join(ada.Path, "out/z")))
			_, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
			no(t, err)
			expect.Is(t, r.git(r.repo, "status", "--short"), "")
			_, err = os.Stat(filepath.Join(r.repo, "out"))
			expect.True(t, err != nil && r.read(r.repo, "in/x") == "X\n", "other files are checked out than were wanted")
			r.git(r.repo, "sparse-checkout", "disable")
			expect.Is(t, r.read(r.repo, "out/y")+r.read(r.repo, "out/new")+r.read(r.repo, "out/z"), "Y\nnew\n", "the files are not those of the merge")
		})
	}
}

// TestEndsOfLinesAreKeptAsGitKeepsThem has agents write ends of lines of every kind, and
// commit or not, again and again: git finds nothing to do in the base.
func TestEndsOfLinesAreKeptAsGitKeepsThem(t *testing.T) {
	for name, as := range map[string]struct{ attributes, own, config, ends string }{
		"eol=crlf":   {attributes: "*.bat text eol=crlf\n", ends: "\r\n"},
		"text=auto":  {attributes: "* text=auto\n", ends: "\n"},
		"of its own": {own: "*.bat text eol=crlf\n", ends: "\r\n"},
		"autocrlf":   {config: "[core]\n\tautocrlf = true\n", ends: "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write(r.repo, ".gitattributes", as.attributes)
			r.write(r.repo, ".git/info/attributes", as.own)
			r.write(r.repo, ".git/config", r.read(r.repo, ".git/config")+as.config)
			r.write(r.repo, "run.bat", "one\r\ntwo\r\n")
			r.git(r.repo, "add", ".")
			r.git(r.repo, "commit", "-qm", "lines")
			ada := r.tree("ada", r.repo)
			expect.Is(t, r.read(ada.Path, "run.bat"), "one"+as.ends+"two"+as.ends)
			for n, try := range []struct {
				mode   tree.Mode
				text   string // what is written, or with a + at its beginning added
				commit bool
			}{
				{tree.Squash, "a\r\nb\r\nc\r\n", false},
				{tree.Rebase, "+d\r\n", true},
				{tree.Merge, "+e\n", true},
				{tree.Squash, "a\r\nb\nx\r\n", false},
			} {
				text, more := strings.CutPrefix(try.text, "+")
				if more {
					text = r.read(ada.Path, "run.bat") + text
				}
				r.write(ada.Path, "run.bat", text)
				r.write(ada.Path, fmt.Sprintf("new%d.bat", n), text)
				if try.commit {
					r.git(ada.Path, "add", "run.bat")
					r.git(ada.Path, "commit", "-qm", fmt.Sprint(n))
				}
				ada = r.taken(ada, tree.Join{Key: fmt.Sprint("t", n), Mode: try.mode})
				r.git(r.repo, "add", "--renormalize", ".") // which looks at the files themselves
				expect.Is(t, r.git(r.repo, "status", "--short"), "")
				expect.Is(t, r.git(r.repo, "show", "HEAD:run.bat")+"\n", strings.ReplaceAll(text, "\r", ""))
			}
		})
	}
}

// TestATextIsInTheEncodingThatGitGivesIt has one that is kept in another, and one of an
// agent that is in none: that is kept as it is.
func TestATextIsInTheEncodingThatGitGivesIt(t *testing.T) {
	r := newRig(t)
	r.write(r.repo, ".gitattributes", "*.txt text working-tree-encoding=UTF-16LE\n")
	r.write(r.repo, "wide.txt", "a\x00\n\x00")
	r.git(r.repo, "add", ".")
	r.git(r.repo, "commit", "-qm", "wide")
	ada := r.tree("ada", r.repo)
	expect.Is(t, r.read(ada.Path, "wide.txt"), "a\x00\n\x00")
	r.write(ada.Path, "wide.txt", "a\x00\n\x00b\x00\n\x00")
	ada = r.taken(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	expect.Is(t, r.git(r.repo, "show", "HEAD:wide.txt"), "a\nb")
	expect.Is(t, r.read(r.repo, "wide.txt"), "a\x00\n\x00b\x00\n\x00")
	expect.Is(t, r.git(r.repo, "status", "--short"), "")
	r.write(ada.Path, "wide.txt", "odd")
	ada = r.taken(ada, tree.Join{Key: "t2", Mode: tree.Squash})
	expect.Is(t, r.git(r.repo, "show", "HEAD:wide.txt"), "odd")
	r.write(ada.Path, "wide.txt", "c\x00\n\x00")
	r.taken(ada, tree.Join{Key: "t3", Mode: tree.Squash})
	expect.Is(t, r.git(r.repo, "show", "HEAD:wide.txt"), "c")
	expect.Is(t, r.git(r.repo, "status", "--short"), "")
}

// TestWorkIsRebasedAfterASquash has an agent go on with what was taken over, whether it
// has committed some of it or nothing.
func TestWorkIsRebasedAfterASquash(t *testing.T) {
	for name, commits := range map[string]func(n int) bool{
		"never": func(int) bool { return false },
		"both":  func(n int) bool { return n%2 == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			ada := r.tree("ada", r.repo)
			want := r.read(ada.Path, "a")
			for n, mode := range []tree.Mode{tree.Squash, tree.Rebase, tree.Squash, tree.Rebase} {
				for part := range 2 {
					want += fmt.Sprintf("of %d, %d\n", n, part)
					r.write(ada.Path, "a", want)
					if part == 0 && commits(n) {
						r.git(ada.Path, "commit", "-qam", fmt.Sprintf("%d", n))
					}
				}
				ada = r.taken(ada, tree.Join{Key: fmt.Sprint("t", n), Mode: mode})
				expect.Is(t, r.read(r.repo, "a"), want)
				expect.Is(t, r.git(r.repo, "status", "--short"), "")
				r.write(r.repo, "mine", want) // the operator goes on too
				r.git(r.repo, "add", ".")
				r.git(r.repo, "commit", "-qm", "mine")
			}
		})
	}
}

// TestACommitOfWhatWasTakenOverIsNotMadeAnew has an agent commit what was squashed before:
// there is nothing of it to take over.
func TestACommitOfWhatWasTakenOverIsNotMadeAnew(t *testing.T) {
	r := newRig(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "hers\n")
	ada = r.taken(ada, tree.Join{Key: "t1", Mode: tree.Squash, Message: "squashed"})
	r.git(ada.Path, "commit", "-qam", "old")
	expect.Err(t, expect.Fault(r.over(ada, tree.Join{Key: "t2", Mode: tree.Rebase})), core.Kind(core.Conflict))
	r.write(ada.Path, "new", "new\n")
	r.git(ada.Path, "add", "new")
	r.git(ada.Path, "commit", "-qm", "new")
	out, err := r.over(ada, tree.Join{Key: "t3", Mode: tree.Rebase})
	no(t, err)
	expect.Is(t, strings.Join(out.Commits, ","), "new")
	expect.Is(t, r.git(r.repo, "log", "--format=%s"), "new\nsquashed\nfirst")
}
