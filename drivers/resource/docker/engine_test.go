package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/resource/docker"
)

func TestMain(m *testing.M) {
	runtime.LockOSThread() // the engine ends with the thread that started it
	started.start()
	code := m.Run()
	started.stop()
	os.Exit(code)
}

// started is the docker engine of this run.
var started daemon

// daemon is a real docker engine with a place and a socket of its own, without
// a network, whose images are made here.
type daemon struct {
	dir string
	why string // there is none
	cmd *exec.Cmd
	// ended is closed once the engine has ended.
	ended chan struct{}
}

func (d *daemon) start() {
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		d.why = "a docker engine of its own needs root and dockerd (on Debian: docker.io)"
		return
	}
	var said bytes.Buffer
	if err := d.run(&said); err != nil {
		d.stop()
		d.why = fmt.Sprintf("no docker engine starts here: %v\n%s", err, said.Bytes()[max(0, said.Len()-2000):])
	}
}

// run starts the engine, waits until it answers, and makes a tar of its image.
func (d *daemon) run(said io.Writer) (err error) {
	if d.dir, err = os.MkdirTemp("", "docker"); err != nil {
		return err
	}
	socket := "unix://" + filepath.Join(d.dir, "sock")
	cmd := exec.Command("dockerd", "--data-root", d.dir+"/data", "--exec-root", d.dir+"/exec", "--pidfile", d.dir+"/pid", "--host", socket,
		"--storage-driver", "vfs", "--bridge", "none", "--iptables=false", "--ip6tables=false")
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.cmd, d.ended = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(d.ended)
	}()
	os.Setenv("DOCKER_HOST", socket)
	os.Unsetenv("DOCKER_CONTEXT")
	for end := time.Now().Add(2 * time.Minute); exec.Command("docker", "version").Run() != nil; time.Sleep(20 * time.Millisecond) {
		select {
		case <-d.ended:
			return fmt.Errorf("dockerd ended: %s", cmd.ProcessState)
		default:
			if time.Now().After(end) {
				return fmt.Errorf("dockerd does not answer")
			}
		}
	}
	source := filepath.Join(d.dir, "pause.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"syscall\"\n\nfunc main() { syscall.Pause() }\n"), 0o600); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(d.dir, "pause"), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	if out, err = exec.Command("tar", "-C", d.dir, "-cf", filepath.Join(d.dir, "image.tar"), "pause").CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return nil
}

func (d *daemon) stop() {
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		<-d.ended
	}
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
}

// engineCLI is the docker command, which writes down what it is asked and may
// break the next copy in the middle.
type engineCLI struct {
	docker.CLI
	t         *testing.T
	said      []string
	breakCopy bool
}

// engine gives a test the engine, which has nothing but the image busybox.
func engine(t *testing.T) *engineCLI {
	t.Helper()
	if started.why != "" {
		t.Skip(started.why)
	}
	e := &engineCLI{CLI: docker.Command{Cells: drivertest.Cells(t, cell.Options{})}, t: t}
	e.image("busybox")
	t.Cleanup(func() {
		for kind, list := range map[string]string{"container": "--all", "volume": "--quiet", "image": "--all"} {
			for _, id := range strings.Fields(e.docker(kind, "ls", "--quiet", list)) {
				_, _ = exec.Command("docker", kind, "rm", "--force", id).CombinedOutput() // an image has more names than one
			}
		}
	})
	return e
}

func (e *engineCLI) Run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	e.said = append(e.said, strings.Join(args, " "))
	if in != nil && e.breakCopy {
		e.breakCopy, in = false, io.LimitReader(in, 1000)
	}
	return e.CLI.Run(ctx, in, out, args...)
}

// docker runs a command that must succeed.
func (e *engineCLI) docker(args ...string) string {
	e.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("docker", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		e.t.Fatalf("docker %v: %v: %s", args, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// image makes an image with a name; each is another one.
func (e *engineCLI) image(name string) string {
	e.t.Helper()
	return e.docker("image", "import", "--message", name, filepath.Join(started.dir, "image.tar"), name)
}

func (e *engineCLI) idOf(image string) string {
	e.t.Helper()
	return e.docker("image", "inspect", "--format", "{{.Id}}", image)
}

func (e *engineCLI) has(kind, name string) bool {
	return exec.Command("docker", kind, "inspect", name).Run() == nil
}

// run starts a container that does nothing until it is killed.
func (e *engineCLI) run(name string) string {
	e.t.Helper()
	return e.docker("container", "run", "--detach", "--name", name, "--network", "none", "busybox", "/pause")
}

// file is where a volume has its one file; the volume is made if need be.
func (e *engineCLI) file(volume string) string {
	e.t.Helper()
	e.docker("volume", "create", volume)
	return filepath.Join(e.docker("volume", "inspect", "--format", "{{.Mountpoint}}", volume), "file")
}

func (e *engineCLI) write(volume, text string) {
	e.t.Helper()
	if err := os.WriteFile(e.file(volume), []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *engineCLI) read(volume string) string {
	e.t.Helper()
	text, err := os.ReadFile(e.file(volume))
	if err != nil {
		e.t.Fatal(err)
	}
	return string(text)
}
