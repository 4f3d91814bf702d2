package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// TestWhatItWroteIsWhatThePaperNamesAndGoesWithItsLines: agents have worked in a repository;
// then the lines of docs/install.md leave no file, ref or process.
func TestWhatItWroteIsWhatThePaperNamesAndGoesWithItsLines(t *testing.T) {
	t.Parallel()
	paper := string(expect.Of(os.ReadFile("docs/install.md"))(t))
	u := newUser(t)
	run := expect.Of(os.MkdirTemp("", "run"))(t) // a socket's path is short
	defer os.RemoveAll(run)
	u.env = append(u.env, "XDG_RUNTIME_DIR="+run, "XDG_CACHE_HOME="+filepath.Join(u.home, ".cache"))
	repo := filepath.Join(u.home, "repo")
	sh := func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir, cmd.Env = repo, u.env
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "%s: %v %s", script, err, out)
		return string(out)
	}
	expect.No(t, os.Mkdir(repo, 0o700))
	sh("git init -q -b main && echo one >a && git add a && git -c user.name=a -c user.email=a@b.invalid commit -qm one")
	before := sh("find .git -type f ! -path '.git/objects/*' | sort; git for-each-ref")

	d := u.daemon()
	u.ok("agent", "create", "tess", "--project", "p", "--dir", repo, "--tree", "--", "sh", "-c", "read line; echo two >a")
	u.ok("agent", "assign", "tess", "in words", "--wait")
	u.ok("agent", "create", "term", "--project", "p", "--runtime", "terminal", "--dir", repo, "--", "cat")
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["seq","1","300000"]}`, "--wait")
	expect.No(t, os.WriteFile(filepath.Join(u.home, "value"), []byte("a secret value"), 0o600))
	u.ok("secret", "set", "CI", "--from-file", "value")
	expect.No(t, os.Remove(filepath.Join(u.home, "value")))
	expect.No(t, d.cmd.Process.Signal(unix.SIGTERM))
	expect.Of(d.cmd.Process.Wait())(t)

	// What lies there is named, and so is what any other run would write.
	named := regexp.MustCompile(`FILE(\.[a-z.]+)|(?m:^  |, )([a-z]+/?)`).FindAllStringSubmatch(paper, -1)
	isNamed := func(end string) bool {
		return end == "" || slices.ContainsFunc(named, func(m []string) bool { return m[1]+strings.TrimSuffix(m[2], "/") == end })
	}
	for _, entry := range expect.Of(os.ReadDir(filepath.Dir(u.data())))(t) {
		end, ours := strings.CutPrefix(entry.Name(), filepath.Base(u.data()))
		expect.True(t, ours && isNamed(end), "%s is not named", entry.Name())
	}
	suffix := regexp.MustCompile(`(?:need\.Data|\bat|\bdata|beside\(need\.Data\)) ?\+ ?"(?:\.run)?/?(\.?[a-z.]+)[/"]`)
	found := 0
	for _, file := range expect.Of(filepath.Glob("app/*.go"))(t) {
		for _, m := range suffix.FindAllSubmatch(expect.Of(os.ReadFile(file))(t), -1) {
			found++
			expect.True(t, isNamed(string(m[1])), "%s writes %s, which is not named", file, m[1])
		}
	}
	expect.True(t, found > 10, "%d places write beside the data file", found)

	_, away, _ := strings.Cut(paper, "## Take it away")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(away, -1)
	expect.Is(t, len(blocks), 2, "blocks of commands")
	for _, block := range blocks {
		sh(block[1])
	}
	expect.Is(t, sh("find .git -type f ! -path '.git/objects/*' | sort; git for-each-ref"), before, "the repository")
	expect.Is(t, sh("git worktree list --porcelain | grep -c ^worktree"), "1\n", "work trees")
	expect.Is(t, strings.TrimSpace(sh("find ~ -path ~/repo -prune -o -type f -print")), "", "files that are left")
	for _, link := range expect.Of(filepath.Glob("/proc/[0-9]*/cwd"))(t) {
		at, err := os.Readlink(link)
		expect.True(t, err != nil || !strings.HasPrefix(at, u.home), "%s is at %s", link, at)
	}
}
