package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"swarmdeck/drivers/drivertest/dockertest"
	"swarmdeck/expect"
)

// containers are programs that have some, each with an engine or a place of its own that
// the user's environment names.
var containers = map[string]func(u *user) (command func(args ...string) *exec.Cmd, dir string){
	"docker": func(u *user) (func(args ...string) *exec.Cmd, string) {
		runtime.LockOSThread() // the engine ends with the thread, and that with the test
		engine, err := dockertest.Start()
		if err != nil {
			u.t.Skip(err)
		}
		u.t.Cleanup(engine.Stop)
		u.set("DOCKER_HOST=" + engine.Host)
		return engine.Command, engine.Dir
	},
	"podman": func(u *user) (func(args ...string) *exec.Cmd, string) {
		runtime.LockOSThread()
		podman, err := dockertest.StartPodman()
		if err != nil {
			u.t.Skip(err)
		}
		u.t.Cleanup(podman.Stop)
		u.set("CONTAINER_HOST=" + podman.Host)
		return podman.Command, podman.Dir
	},
}

// container starts one with this machine's programs, by docker or another such program,
// and returns what carries out a command there.
func (u *user) container(program, name string) (in func(args ...string) string) {
	u.t.Helper()
	command, dir := containers[program](u)
	said := func(args ...string) string {
		u.t.Helper()
		out, err := command(args...).CombinedOutput()
		expect.No(u.t, err, program, args, out)
		return strings.TrimSpace(string(out))
	}
	root := filepath.Join(dir, "root")
	for _, dir := range []string{"usr", "etc", "root", "proc", "sys", "dev", "tmp"} {
		expect.No(u.t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	expect.No(u.t, os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky))
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		expect.No(u.t, os.Symlink("usr/"+dir, filepath.Join(root, dir)))
	}
	tar := exec.Command("tar", "-C", root, "-c", ".")
	image := expect.Of(tar.StdoutPipe())(u.t)
	take := command("image", "import", "-", "machine")
	take.Stdin = image
	expect.No(u.t, tar.Start())
	out, err := take.CombinedOutput()
	expect.Must(u.t, err == nil, "%v: %s", err, out)
	_, _ = io.Copy(io.Discard, image)
	expect.No(u.t, tar.Wait())
	said("run", "--detach", "--name", name, "--network", "none", "--volume", "/usr:/usr:ro", "machine", "sleep", "infinity")
	return func(args ...string) string { return said(append([]string{"exec", name}, args...)...) }
}

// TestAgentsWorkInAContainer reaches one by the command of its program, as docker and podman
// let everybody in: as an ordinary user, whose agents are held by what a container has of
// the wall, and as its root, who has none for a worker and is told why.
func TestAgentsWorkInAContainer(t *testing.T) {
	t.Parallel()
	for program := range containers {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			worksInAContainer(t, program)
		})
	}
}

func worksInAContainer(t *testing.T, program string) {
	u := newUser(t)
	u.program = u.built()
	in := u.container(program, "box")
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("host", "add", "box", "--command", program+" exec -i -u 1000 -e HOME=/tmp/home box")
	u.ok("host", "add", "root", "--command", program+" exec -i box sh -c {}")
	for _, name := range []string{"box", "root"} {
		expect.Await(t, name+" is up", func() bool { return strings.Contains(u.ok("host", "show", name, "-o", "json"), `"state":"up"`) })
	}
	out := u.ok("host", "list", "-o", "wide")
	expect.True(t, strings.Contains(out, "name spaces") && strings.Contains(out, "none can be started"), "%v", out)
	line := `read line; echo "$line" > got; cat /tmp/home/secret; echo over > /tmp/home/secret; echo '{"type":"result","status":"succeeded","output":{"uid":'$(id -u)'}}'; read line`
	in("sh", "-c", "mkdir -p /tmp/home && echo hidden > /tmp/home/secret && chmod 666 /tmp/home/secret")
	for _, agent := range []struct {
		name, uid string
		args      []string
	}{
		{"walled", "1000", []string{"--host", "box"}},
		{"free", "0", []string{"--host", "root", "--profile", "open", "--yes"}},
	} {
		name := agent.name
		u.ok(append([]string{"agent", "create", name, "--project", "p", "--shell", line}, agent.args...)...)
		expect.Await(t, name+" is idle", func() bool { return strings.Contains(u.ok("agent", "show", name, "-o", "json"), `"status":"idle"`) })
		id := field(u.ok("agent", "assign", name, "do it", "-o", "json"), "task_id")
		u.ok("task", "wait", id, "--timeout", patience.String())
		expect.Has(t, u.ok("result", "show", id, "-o", "json"), `"uid":`+agent.uid+`}`, name)
		if name == "walled" {
			log := u.ok("agent", "log", name, "--page-size", "100")
			expect.True(t, !strings.Contains(log, "hidden") && in("cat", "/tmp/home/secret") == "hidden", "the wall does not hold: %s", log)
		}
		u.ok("agent", "delete", name, "--yes")
	}
	for _, name := range []string{"box", "root"} {
		u.ok("host", "remove", name)
	}
	expect.Await(t, "nothing is left there", func() bool {
		return in("sh", "-c", "ls -d /tmp/home/.cache/swarmdeck /root/.cache/swarmdeck /proc/[0-9]*/exe 2>/dev/null | grep swarmdeck; for p in /proc/[0-9]*; do readlink $p/exe; done | grep swarmdeck; true") == ""
	})
}
