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
