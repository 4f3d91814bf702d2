package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

// Whatever an agent that shares a repository writes into its configuration, a push takes
// the way that it was told, and nothing of it runs.
func TestAPushHasNothingOfARepositorysConfiguration(t *testing.T) {
	r := newRig(t)
	server := gittest.Serve(t)
	server.Known(t, os.Getenv("HOME"))
	url := server.Repository(t, "remote.git")
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "hers\n")
	out, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	c := gittest.NewCanary(t)
	local := r.hooked(c, "local.git")
	for _, dir := range []string{r.repo, ada.Path} {
		dot := filepath.Join(dir, ".git")
		c.Infest(dot, dir)
		for key, value := range map[string]string{
			"remote.origin.url": local, "remote.origin.pushurl": local, "remote.pushDefault": "origin",
			"url." + local + ".insteadOf": server.URL, "url." + local + ".pushInsteadOf": server.URL,
			"remote." + url + ".receivepack": c.Program("receivepack"), "remote." + url + ".url": local, "remote." + url + ".proxy": "ext::" + c.Program("proxy"),
			"http." + server.URL + ".proxy": "http://127.0.0.1:1", "http.sslVerify": "false", "core.gitProxy": c.Program("gitproxy"), "ssh.variant": "simple",
		} {
			r.git(dir, "config", "-f", filepath.Join(dot, "config"), "--add", key, value)
		}
	}
	c.Ran()
	no(t, r.d.Push(t.Context(), ada, tree.Push{URL: url, Commit: out.Commit, Branch: "swarmdeck/ada"}))
	expect.Is(t, r.git(filepath.Join(server.Dir, "remote.git"), "rev-parse", "swarmdeck/ada"), out.Commit)
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "programs of the repositories ran: %v", ran)
}

// hooked is a repository of this machine with hooks that run whatever comes.
func (r rig) hooked(c *gittest.Canary, name string) string {
	r.Helper()
	dir := filepath.Join(r.base, name)
	r.git(r.base, "init", "-q", "--bare", dir)
	for _, hook := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction"} {
		no(r, os.Symlink(c.Program(name+"."+hook), filepath.Join(dir, "hooks", hook)))
	}
	return dir
}

// Who can write a repository of this machine that a person registered runs nothing of ours
// there, and leads nowhere else.
func TestAPushToARepositoryOfThisMachineRunsNothingOfIt(t *testing.T) {
	r := newRig(t)
	c := gittest.NewCanary(t)
	ada := r.tree("ada", r.repo)
	r.write(ada.Path, "a", "hers\n")
	out, err := r.over(ada, tree.Join{Key: "t1", Mode: tree.Squash})
	no(t, err)
	remote := r.hooked(c, "local.git")
	r.git(remote, "config", "core.fsmonitor", c.Program("fsmonitor"))
	r.git(remote, "config", "core.hooksPath", filepath.Join(remote, "hooks"))
	r.git(remote, "config", "core.alternateRefsCommand", c.Program("alternates"))
	for _, url := range []string{remote, "file://" + remote} {
		branch := "swarmdeck/" + url[:1]
		if branch == "swarmdeck//" {
			branch = "swarmdeck/path"
		}
		no(t, r.d.Push(t.Context(), ada, tree.Push{URL: url, Commit: out.Commit, Branch: branch}))
		expect.Is(t, r.git(remote, "rev-parse", branch), out.Commit)
	}
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "ran: %v", ran)
	// It is exchanged for another one, or borrows from one.
	other := r.hooked(c, "other.git")
	no(t, os.Rename(remote, remote+".was"))
	no(t, os.Symlink(other, remote))
	expect.Says(t, r.d.Push(t.Context(), ada, tree.Push{URL: remote, Commit: out.Commit, Branch: "x"}), "a link leads to it")
	no(t, os.Remove(remote))
	no(t, os.Rename(remote+".was", remote))
	r.write(remote, "objects/info/alternates", filepath.Join(other, "objects")+"\n")
	r.write(remote, "commondir", other+"\n")
	_ = r.d.Push(t.Context(), ada, tree.Push{URL: remote, Commit: out.Commit, Branch: "x"})
	expect.Is(t, r.git(other, "for-each-ref"), "", "another repository was written")
	ran = c.Ran()
	expect.True(t, len(ran) == 0, "ran: %v", ran)
}

func TestAPushRefusesWhatRunsAProgram(t *testing.T) {
	r := newRig(t)
	c := gittest.NewCanary(t)
	ada := r.tree("ada", r.repo)
	for _, url := range []string{"ext::" + c.Program("ext"), "fd::3", "http://127.0.0.1:1/x", "git://127.0.0.1/x", "local.git", "-o/x:y"} {
		expect.Says(t, r.d.Push(t.Context(), ada, tree.Push{URL: url, Commit: ada.Since, Branch: "x"}), "; not ", url)
	}
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "ran: %v", ran)
}

// gh and glab ask git about the repository that they are in: it is one of the engine's.
func TestAPullRequestIsAskedForOutsideOfTheRepository(t *testing.T) {
	r := newRig(t)
	c := gittest.NewCanary(t)
	ada := r.tree("ada", r.repo)
	said := filepath.Join(r.base, "said")
	r.write(r.base, "bin/gh", "#!/bin/sh\ngit status >/dev/null 2>&1\ngit diff >/dev/null 2>&1\ngit remote -v\nprintf '%s\\n' \"$@\" >"+said+"\necho opened\n")
	no(t, os.Chmod(filepath.Join(r.base, "bin/gh"), 0o755))
	t.Setenv("PATH", filepath.Join(r.base, "bin")+":"+os.Getenv("PATH"))
	c.Infest(filepath.Join(r.repo, ".git"), r.repo)
	c.Ran()
	at, err := tree.ReadRemote("git@git.example.org:team/web.git")
	no(t, err)
	text, err := r.d.Request(t.Context(), ada, tree.Request{To: at, Branch: "fix", Base: "main", Message: "Mend it\n\nAll of it"})
	no(t, err)
	expect.True(t, strings.TrimSpace(text) == "opened", "%q", text)
	expect.Has(t, r.read(r.base, "said"), "--repo\nhttps://git.example.org/team/web\n")
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "programs of the repository ran: %v", ran)
}
