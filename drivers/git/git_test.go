package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/expect"
)

func TestEverySettingThatRunsSomethingIsKnown(t *testing.T) {
	names := gittest.Unsorted(t)
	expect.True(t, len(names) == 0, "git lists settings that look as if they run something: say in gittest whether they do: %v", names)
}

// theirs is a repository with one commit, made by git without our care.
func theirs(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	plain(t, ".", "init", "-q", "-b", "main", dir)
	expect.No(t, os.WriteFile(filepath.Join(dir, "a"), []byte("text\n"), 0o644))
	plain(t, dir, "add", ".")
	plain(t, dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "first")
	return dir
}

func plain(t *testing.T, dir string, args ...string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("git %v: %v\n%s", args, err, out)
	}
}

// TestTheCanaryIsHeard shows that the hostile repository is one: without our
// care its programs do run.
func TestTheCanaryIsHeard(t *testing.T) {
	c, dir := gittest.NewCanary(t), theirs(t)
	c.Infest(filepath.Join(dir, ".git"), dir)
	plain(t, dir, "status")
	plain(t, dir, "add", ".")
	plain(t, dir, "diff")
	plain(t, dir, "commit", "-m", "x")
	plain(t, dir, "cat-file", "-e", strings.Repeat("12", 20))
	ran := c.Ran()
	for _, want := range []string{"core.fsmonitor", "filter.x.clean", "remote.origin.url", "hook.post_index_change"} {
		if !slices.Contains(ran, want) && !(want == "core.fsmonitor" && slices.Contains(ran, "include.path")) {
			t.Errorf("%s did not run, but %v", want, ran)
		}
	}
	t.Log(ran)
}

// TestGitOnAForeignRepositoryFetchesNothing is the second line: no driver gives
// git a foreign repository, and if one did, no missing object is fetched, no
// hook runs and nothing is asked of fsmonitor.
func TestGitOnAForeignRepositoryFetchesNothing(t *testing.T) {
	c, dir := gittest.NewCanary(t), theirs(t)
	gitDir, cells := filepath.Join(dir, ".git"), gittest.Git(t)
	c.Infest(gitDir, dir)
	missing := strings.Repeat("12", 20)
	expect.No(t, os.WriteFile(filepath.Join(gitDir, "refs/heads/gone"), []byte(missing+"\n"), 0o644))
	for _, args := range [][]string{
		{"rev-parse", "--verify", "gone^{commit}"},
		{"cat-file", "-p", missing},
		{"cat-file", "-e", missing},
		{"log", "-1", "gone"},
		{"ls-tree", "-r", missing},
		{"read-tree", missing},
		{"for-each-ref", "--format=%(objecttype)"},
		{"rev-parse", "HEAD^{commit}"},
		{"ls-files", "--others", "--cached"},
		{"update-ref", "refs/heads/new", "HEAD"},
		{"write-tree"},
		{"fsck", "--connectivity-only"},
		{"fetch", "origin"},
		{"gc", "--auto"},
		{"symbolic-ref", "HEAD"},
	} {
		out, err := cells.Run(t.Context(), git.Call{Dir: dir, GitDir: gitDir, WorkTree: dir, Write: []string{dir, c.Dir()}, Args: args})
		ran := c.Ran()
		expect.True(t, len(ran) == 0, "git %v ran %v", args, ran)
		t.Logf("git %v: %v %.80q", args, err, out)
	}
}

func TestWhatGitPrintsAndSaysIsBounded(t *testing.T) {
	dir := theirs(t)
	expect.No(t, os.Truncate(filepath.Join(dir, "a"), git.MaxAnswer+1))
	call := git.Call{Dir: dir, GitDir: filepath.Join(dir, ".git"), WorkTree: dir}
	cells := gittest.Git(t)
	do := func(args ...string) ([]byte, error) {
		call.Args = args
		return cells.Run(t.Context(), call)
	}
	id := expect.Of(do("hash-object", "-w", "a"))(t)
	expect.Says(t, expect.Fault(do("cat-file", "blob", strings.TrimSpace(string(id)))), "more than")
	expect.Says(t, expect.Fault(do("rev-parse", "--verify", "none")), "git rev-parse exited with status 128: fatal: ")
}
