package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// sshTo has the name ssh mean the machine's own with a key and a host key of the
// test's, and returns the address of a host that it reaches.
func (u *user) sshTo() (address string) {
	u.t.Helper()
	return u.sshAt(u.sshd())
}

// sshAt is sshTo where sshd listens already.
func (u *user) sshAt(addr string) (address string) {
	u.t.Helper()
	program, err := exec.LookPath("ssh")
	if err != nil {
		u.t.Skip("ssh is missing (openssh-client)")
	}
	_, known := pair(u.t, 1)
	hostname, port, _ := strings.Cut(addr, ":")
	bin := filepath.Join(u.home, "bin")
	for path, text := range map[string]string{
		"known": fmt.Sprintf("[%s]:%s %s\n", hostname, port, known),
		"config": fmt.Sprintf("IdentityFile %s\nIdentitiesOnly yes\nStrictHostKeyChecking yes\nUserKnownHostsFile %s\nGlobalKnownHostsFile /dev/null\n",
			keyFile(u.t, 0), filepath.Join(u.home, "known")),
		"bin/ssh": fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", program, filepath.Join(u.home, "config")),
	} {
		path = filepath.Join(u.home, path)
		expect.No(u.t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.No(u.t, os.WriteFile(path, []byte(text), 0o755))
		expect.No(u.t, os.Chmod(path, 0o700))
	}
	for i, v := range u.env {
		if strings.HasPrefix(v, "PATH=") {
			u.env[i] = "PATH=" + bin + ":" + strings.TrimPrefix(v, "PATH=")
		}
	}
	return "ssh://" + u.name() + "@" + addr
}

// withHost is a user of an engine with a host, box, that a real sshd reaches.
func withHost(t *testing.T, flags ...string) *user {
	t.Helper()
	u := newUser(t)
	u.program = u.built()
	address := u.sshTo()
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok(append([]string{"host", "add", "box", address}, flags...)...)
	expect.Await(t, "the host is up", func() bool {
		return strings.Contains(u.ok("host", "show", "box", "-o", "json"), `"state":"up"`)
	})
	return u
}

// keepers are the processes of a host's keeper that do what is said.
func (u *user) keepers(what string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if len(words) > 3 && words[1] == "-keeper" && strings.HasPrefix(words[0], u.home) && (what == "" || words[2] == what) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestAnAgentWorksOnAHost has one on this machine, which a real sshd reaches. Its
// link is cut in the midst of a task: the prompt is given once, and its outcome
// arrives.
func TestAnAgentWorksOnAHost(t *testing.T) {
	t.Parallel()
	u := withHost(t, "--label", "os=debian", "--slots", "2")
	for want, args := range map[string][]string{
		"only cols, rows":                   {"--runtime", "terminal", "--options", `{"read":["/x"]}`},
		"only mode, model":                  {"--runtime", "acp", "--options", `{"shared":true}`},
		"only interrupt":                    {"--options", `{"read":["/x"]}`},
		"an absolute directory of the host": {"--dir", "here"}, "not found": {"--host", "nowhere"},
	} {
		code, _, stderr := u.run(append(append([]string{"agent", "create", "bad", "--project", "p", "--host", "box"}, args...), "--", "true")...)
		expect.True(t, code != 0 && strings.Contains(stderr, want), "%v: %d %s", args, code, stderr)
	}
	line := `while read line; do echo "$line" >> got; echo began; case $line in *more*) sleep 300;; esac; sleep 2; echo '{"type":"result","status":"succeeded","output":{"on":"host"}}'; done`
	u.ok("agent", "create", "far", "--project", "p", "--host", "box", "--shell", line)
	expect.Await(t, "the agent is idle", func() bool { return strings.Contains(u.ok("agent", "show", "far", "-o", "json"), `"status":"idle"`) })
	id := field(u.ok("agent", "assign", "far", "do it", "-o", "json"), "task_id")
	expect.Await(t, "it has begun", func() bool { return strings.Contains(u.ok("agent", "log", "far", "--page-size", "100"), "began") })
	for _, pid := range u.keepers("link") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	expect.Has(t, u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json"), `"succeeded"`)
	expect.Has(t, u.ok("result", "show", id, "-o", "json"), `{"on":"host"}`)
	work, _ := filepath.Glob(filepath.Join(u.home, ".cache/swarmdeck/keeper-*/agents/far/work/got"))
	expect.Must(t, len(work) == 1, "%v", work)
	got, err := os.ReadFile(work[0])
	expect.True(t, err == nil && strings.Count(string(got), "\n") == 1, "the prompt: %q %v", got, err)
	log := u.ok("agent", "log", "far", "--page-size", "100")
	expect.True(t, strings.Count(log, "began") == 1 && strings.Contains(log, "can't be reached"), "%s", log)
	u.ok("agent", "pause", "far")
	expect.Await(t, "it is paused", func() bool { return strings.Contains(u.ok("agent", "show", "far", "-o", "json"), `"paused":true`) })
	u.ok("agent", "resume", "far")
	u.ok("estop", "on", "--reason", "try")
	out := u.ok("estop", "show")
	expect.True(t, !strings.Contains(out, "not acknowledged"), "%v", out)
	u.ok("estop", "off", "--reason", "tried")
	id = field(u.ok("agent", "assign", "far", "more", "-o", "json"), "task_id")
	expect.Await(t, "it works again", func() bool { return strings.Count(u.ok("agent", "log", "far", "--page-size", "100"), "began") == 2 })
	u.ok("task", "cancel", id, "--reason", "enough")
	code, _, stderr := u.run("host", "remove", "box")
	expect.True(t, code != 0 && strings.Contains(stderr, "agents have their place there: far"), "%v %v", code, stderr)
	u.ok("host", "drain", "box")
	code, _, stderr = u.run("agent", "create", "more", "--project", "p", "--host", "box", "--", "true")
	expect.True(t, code != 0 && strings.Contains(stderr, "is draining"), "%v %v", code, stderr)
	expect.Has(t, u.ok("host", "list"), "up, draining")
	u.ok("agent", "delete", "far", "--yes")
	u.ok("host", "remove", "box")
	expect.Await(t, "no keeper is left", func() bool { return len(u.keepers("")) == 0 })
	_, err = os.Stat(filepath.Join(u.home, ".cache/swarmdeck"))
	expect.True(t, os.IsNotExist(err), "files are left there: %v", err)
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}

// TestAHostThatCantBeReachedSaysWhy has one that refuses the key, one whose key is
// another, and one that is no shell.
func TestAHostThatCantBeReachedSaysWhy(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.program = u.built()
	address := u.sshTo()
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("host", "add", "stranger", strings.Replace(address, u.name()+"@", "nobody-there@", 1))
	u.ok("host", "add", "words", "--command", "echo hello")
	u.ok("host", "add", "none", "--command", "no-such-program -i {}")
	for name, want := range map[string]string{"stranger": "Permission denied", "words": "before there was a link", "none": "no-such-program"} {
		expect.Await(t, name+" says why", func() bool { return strings.Contains(u.ok("host", "show", name, "-o", "json"), want) })
	}
	expect.No(t, os.WriteFile(filepath.Join(u.home, "known"), nil, 0o600))
	u.ok("host", "add", "unknown", address)
	expect.Await(t, "an unknown host says why", func() bool {
		return strings.Contains(u.ok("host", "show", "unknown", "-o", "json"), "Host key verification failed")
	})
	began := time.Now()
	code, _, stderr := u.run("host", "remove", "none")
	expect.True(t, code != 0 && strings.Contains(stderr, "say --force") && time.Since(began) >= 10*time.Second, "%v %v", code, stderr)
	u.ok("host", "remove", "none", "--force")
	for _, bad := range []string{"ssh://a:b@c", "ssh://-oProxyCommand=x", "ssh://a@-x", "http://x", "ssh://x/y", "x"} {
		code, _, _ := u.run("host", "add", "bad", bad)
		expect.True(t, code == 1 || code == 2, "%v %v", bad, code)
	}
	out := u.ok("host", "list", "-o", "json")
	expect.True(t, !strings.Contains(out, `"none"`) && !strings.Contains(out, `"bad"`), "%v", out)
}
