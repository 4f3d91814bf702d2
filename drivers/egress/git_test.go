package egress_test

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestGitFetchesAndDoesNotPush has a real git before a real server: it reads by
// a rule, and pushes only by a person's word.
func TestGitFetchesAndDoesNotPush(t *testing.T) {
	no := func(err error) {
		t.Helper()
		expect.No(t, err)
	}
	git, err := exec.LookPath("git")
	no(err)
	dir, clone, trust := t.TempDir(), filepath.Join(t.TempDir(), "clone"), filepath.Join(t.TempDir(), "trust.pem")
	env := append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_SSL_CAINFO="+trust,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a.example")
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	do := func(args ...string) string {
		t.Helper()
		out, err := run(args...)
		expect.Must(t, err == nil, "git %s: %v\n%s", strings.Join(args, " "), err, out)
		return out
	}
	repo := filepath.Join(dir, "team", "r.git")
	do("init", "-q", "--bare", "-b", "main", repo)
	do("-C", repo, "config", "http.receivepack", "true")
	tree := strings.TrimSpace(do("-C", repo, "hash-object", "-w", "-t", "tree", "/dev/null"))
	do("-C", repo, "update-ref", "refs/heads/main", strings.TrimSpace(do("-C", repo, "commit-tree", tree, "-m", "first")))
	server := httptest.NewTLSServer(&cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}})
	t.Cleanup(server.Close)

	eng, alice := realEngine(t)
	w := inspected(t, eng.Egress, server)
	no(os.WriteFile(trust, w.authority.Bundle(), 0o600))
	env = append(env, "https_proxy=http://"+w.http)
	put := func(effect egress.Effect, methods []string, path string) {
		t.Helper()
		r, err := egress.NewRule(effect, "example.com")
		no(err)
		no(r.Narrow(methods, path))
		_, _, err = eng.Egress.Put(t.Context(), alice, r, 0)
		no(err)
	}
	const at = "https://example.com/team/r.git"

	put(egress.Allow, egress.ReadOnly(), "/team/*")
	do("clone", "-q", at, clone)
	do("-C", clone, "fetch", "-q", "origin")
	do("-C", clone, "commit", "-q", "--allow-empty", "-m", "second")

	// The push is one question, and its answer holds for all that belongs to it.
	bell := eng.Watch(t.Context())
	answered := make(chan judge.Approval, 1)
	go func() {
		for {
			if open, err := eng.Judge.Open(t.Context(), ada.Tenant); err == nil && len(open) > 0 {
				_, err := eng.Judge.Answer(t.Context(), alice, open[0].ApprovalID, judge.Answer{Approve: true})
				expect.True(t, err == nil, "%v", err)
				answered <- open[0]
				return
			}
			select {
			case <-bell:
			case <-t.Context().Done():
				return
			}
		}
	}()
	do("-C", clone, "push", "-q", "origin", "main")
	expect.Is(t, string((<-answered).Action.Args), `{"host":"example.com","port":443,"method":"git-receive-pack","path":"/team/r.git","process":"curl"}`)
	head := do("-C", repo, "log", "--format=%s", "main")
	expect.True(t, strings.HasPrefix(head, "second"), "%v", head)

	// With a rule nobody is asked, and what is read is read all the same.
	put(egress.Deny, []string{egress.ReceivePack}, "")
	do("-C", clone, "commit", "-q", "--allow-empty", "-m", "third")
	out, err := run("-C", clone, "push", "-q", "origin", "main")
	expect.True(t, err != nil && strings.Contains(out, "403"), "%v %s", err, out)
	do("-C", clone, "fetch", "-q", "origin")
	page, err := eng.Audit.List(t.Context(), ada.Tenant, core.Filter{Kind: "egress.refused"})
	no(err)
	expect.True(t, len(page.Items) != 0 && strings.Contains(string(page.Items[0].Payload), `"method":"git-receive-pack","path":"/team/r.git"`),
		"%v", page.Items)
	no(w.proxy.Close())
}

// realEngine is one with a tenant, and an operator of that.
func realEngine(t *testing.T) (*engine.Engine, core.Caller) {
	t.Helper()
	no := func(err error) {
		t.Helper()
		expect.No(t, err)
	}
	db, err := store.Open(filepath.Join(t.TempDir(), "data.db"), store.Options{})
	no(err)
	t.Cleanup(func() { _ = db.Close() })
	eng, err := engine.Open(t.Context(), engine.Options{Store: db})
	no(err)
	t.Cleanup(func() { _ = eng.Close() })
	alice := core.Caller{Tenant: ada.Tenant, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	_, err = eng.Swarm.CreateTenant(t.Context(), alice, ada.Tenant)
	no(err)
	return eng, alice
}
