package dockertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Podman is a podman with a place of its own and without a network, which serves others.
type Podman struct {
	Dir  string // its own; tests may put files there
	Host string // the value of CONTAINER_HOST

	service *exec.Cmd
}

// confOf and storageOf are its settings, in a directory. It raises no limit, since it may be
// in a machine that lets nobody; and runc does with cgroups of both versions at once.
const (
	confOf = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
tmp_dir = "%[1]s/tmp"
`
	storageOf = `[storage]
driver = "vfs"
graphroot = "%[1]s/data"
runroot = "%[1]s/run"
`
)

// StartPodman makes one and waits until it serves. It ends with the thread that calls, so
// that thread must be locked until Stop.
func StartPodman() (*Podman, error) {
	if _, err := exec.LookPath("podman"); err != nil || os.Getuid() != 0 {
		return nil, fmt.Errorf("a podman of its own needs root, podman and runc (on Debian: podman, docker.io)")
	}
	dir, err := os.MkdirTemp("", "podman")
	if err != nil {
		return nil, err
	}
	p := &Podman{Dir: dir, Host: "unix://" + filepath.Join(dir, "sock")}
	for name, text := range map[string]string{"containers.conf": confOf, "storage.conf": storageOf} {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, text, dir), 0o600); err != nil {
			p.Stop()
			return nil, err
		}
	}
	p.service = p.Command("system", "service", "--time", "0", p.Host)
	p.service.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := p.service.Start(); err != nil {
		p.service = nil
		p.Stop()
		return nil, err
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := p.Command("--url", p.Host, "info").CombinedOutput()
		if err == nil {
			return p, nil
		}
		if time.Now().After(end) {
			p.Stop()
			return nil, fmt.Errorf("no podman serves here: %w\n%s", err, out)
		}
	}
}

// Command is the podman command.
func (p *Podman) Command(args ...string) *exec.Cmd {
	cmd := exec.Command("podman", args...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(p.Dir, "containers.conf"), "CONTAINERS_STORAGE_CONF="+filepath.Join(p.Dir, "storage.conf"))
	return cmd
}

// Stop ends all that it has.
func (p *Podman) Stop() {
	if p.service != nil {
		_ = p.Command("rm", "--all", "--force", "--time", "0").Run()
		_ = p.service.Process.Signal(syscall.SIGTERM)
		_ = p.service.Wait()
	}
	_ = os.RemoveAll(p.Dir)
}
