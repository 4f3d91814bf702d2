package files

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// repository is an empty one, and the git that made it.
func repository(t *testing.T) (root, git string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	root = t.TempDir()
	if out, err := exec.Command(git, "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return root, git
}

// TestWhatIsLeftOutIsWhatGitIgnores holds the rules against git's own.
func TestWhatIsLeftOutIsWhatGitIgnores(t *testing.T) {
	root, git := repository(t)
	words := []string{"a", "b", "ab", "a.o", "*.o", "a*", "?", "[ab]", "[!a]", "[^b]*", "**", "*", `\a`, "[[:alpha:]]", "[]a]", "a**b", `[\]a]`, "[b-a]"}
	names := []string{"a", "b", "ab", "a.o", "ba", "]", "c d", "aXb"}
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var lines []string
		for range 1 + r.IntN(4) {
			var parts []string
			for range 1 + r.IntN(3) {
				parts = append(parts, words[r.IntN(len(words))])
			}
			line := strings.Join(parts, "/")
			line = []string{"", "", "/", "!", "!/"}[r.IntN(5)] + line + []string{"", "", "/", " ", "\r"}[r.IntN(5)]
			lines = append(lines, line)
		}
		text := []string{"", "", "\ufeff"}[r.IntN(3)] + strings.Join(lines, "\n")
		write(t, filepath.Join(root, ignoreFile), text)
		rule := (*rules)(nil).below(".", text)
		var paths []string
		want := map[string]bool{}
		for range 40 {
			parts := make([]string, 1+r.IntN(3))
			for i := range parts {
				parts[i] = names[r.IntN(len(names))]
			}
			paths = append(paths, strings.Join(parts, "/"))
		}
		for _, p := range gitIgnores(t, git, root, paths) {
			want[p] = true
		}
		for _, p := range paths {
			if got := ignored(rule, p); got != want[p] {
				t.Fatalf("%q with\n%s\nis left out: %v, git: %v", p, text, got, want[p])
			}
		}
	}
}

// gitIgnores are those of some paths that git leaves out.
func gitIgnores(t *testing.T, git, root string, paths []string) []string {
	t.Helper()
	cmd := exec.Command(git, "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir, cmd.Stdin = root, strings.NewReader(strings.Join(paths, "\x00")+"\x00")
	out, _ := cmd.Output() // 1 for none
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestClassesOfPosixAreThoseOfGit(t *testing.T) {
	root, git := repository(t)
	var names []string
	for c := byte(1); c < 0x80; c++ {
		if c != '/' {
			names = append(names, "a"+string(c)) // of git alone, : is more than a name
		}
	}
	for _, class := range []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "none"} {
		text := "a[[:" + class + ":]]"
		write(t, filepath.Join(root, ignoreFile), text)
		rule := (*rules)(nil).below(".", text)
		want := gitIgnores(t, git, root, names)
		for _, name := range names {
			expect.Is(t, rule.ignores(name, false), slices.Contains(want, name), fmt.Sprintf("%q is %s", name, class))
		}
	}
}

// ignored reports that a file, or a directory on the way to it, is left out.
func ignored(r *rules, path string) bool {
	for i := range path {
		if path[i] == '/' && r.ignores(path[:i], true) {
			return true
		}
	}
	return r.ignores(path, false)
}

func FuzzIgnore(f *testing.F) {
	f.Add("*.o\n!a/**/b\n[a-z", "a/b/c.o")
	f.Fuzz(func(_ *testing.T, text, path string) {
		if fs.ValidPath(path) {
			ignored((*rules)(nil).below(".", text), path)
		}
	})
}

func TestNoRuleLeavesGitsOwnFilesOut(t *testing.T) {
	rule := (*rules)(nil).below(".", "*\nlogs\n.git\nobjects/")
	for path, want := range map[string]bool{"a": true, ".git": false, ".git/logs": false, "sub/.git": false, "sub/.git/objects": false, "x.git": true} {
		expect.Is(t, rule.ignores(path, true), want, path, "is left out")
	}
}

func TestRulesThatAreTooManyLeaveNothingOut(t *testing.T) {
	var rule *rules
	for n := range 20 {
		rule = rule.below(strings.Repeat("d/", n)+"d", strings.Repeat("a\n", ignorePatterns))
	}
	if rule.total > chainPatterns {
		t.Errorf("%d patterns hold", rule.total)
	}
}
