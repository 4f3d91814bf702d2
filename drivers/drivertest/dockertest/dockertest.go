// Package dockertest runs a docker engine for tests, with a place and a socket of
// its own and without a network; and a podman that serves so.
package dockertest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Engine is one that runs.
type Engine struct {
	Dir  string // its own; tests may put files there
	Host string // the value of DOCKER_HOST

	cmd   *exec.Cmd
	said  bytes.Buffer
	ended chan struct{} // closed once it has
}

// Start starts one and waits until it answers. It ends with the thread that calls, so
// that thread must be locked until Stop.
func Start() (e *Engine, err error) {
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		return nil, fmt.Errorf("a docker engine of its own needs root and dockerd (on Debian: docker.io)")
	}
	e = &Engine{ended: make(chan struct{})}
	if e.Dir, err = os.MkdirTemp("", "docker"); err != nil {
		return nil, err
	}
	e.Host = "unix://" + filepath.Join(e.Dir, "sock")
	e.cmd = exec.Command("dockerd", "--data-root", e.Dir+"/data", "--exec-root", e.Dir+"/exec", "--pidfile", e.Dir+"/pid", "--host", e.Host,
		"--storage-driver", "vfs", "--bridge", "none", "--iptables=false", "--ip6tables=false")
	e.cmd.Stdout, e.cmd.Stderr = &e.said, &e.said
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := e.cmd.Start(); err != nil {
		_ = os.RemoveAll(e.Dir)
		return nil, err
	}
	go func() {
		_ = e.cmd.Wait()
		close(e.ended)
	}()
	if err := e.await(); err != nil {
		e.Stop()
		return nil, fmt.Errorf("no docker engine starts here: %w\n%s", err, e.said.Bytes()[max(0, e.said.Len()-2000):])
	}
	return e, nil
}

func (e *Engine) await() error {
	for end := time.Now().Add(2 * time.Minute); e.Command("version").Run() != nil; time.Sleep(20 * time.Millisecond) {
		select {
		case <-e.ended:
			return fmt.Errorf("dockerd ended: %s", e.cmd.ProcessState)
		default:
			if time.Now().After(end) {
				return fmt.Errorf("dockerd does not answer")
			}
		}
	}
	return nil
}

// Command is the docker command with this engine.
func (e *Engine) Command(args ...string) *exec.Cmd {
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.Host, "DOCKER_CONTEXT=")
	return cmd
}

// Stop ends it, and all that it has.
func (e *Engine) Stop() {
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	<-e.ended
	_ = os.RemoveAll(e.Dir)
}

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
