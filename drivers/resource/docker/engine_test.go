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
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/dockertest"
	"swarmdeck/drivers/resource/docker"
	"swarmdeck/expect"
)

func TestMain(m *testing.M) {
	runtime.LockOSThread() // the engine ends with the thread that started it
	started.start()
	code := m.Run()
	if started.Engine != nil {
		started.Stop()
	}
	os.Exit(code)
}

// started is the docker engine of this run, whose images are made here.
var started daemon

type daemon struct {
	*dockertest.Engine
	why string // there is none
}

func (d *daemon) start() {
	engine, err := dockertest.Start()
	if err != nil {
		d.why = err.Error()
		return
	}
	d.Engine = engine
	os.Setenv("DOCKER_HOST", d.Host)
	os.Unsetenv("DOCKER_CONTEXT")
	if err := d.pack(); err != nil {
		d.why = err.Error()
	}
}

// pack makes a tar of the only image.
func (d *daemon) pack() error {
	source := filepath.Join(d.Dir, "pause.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"syscall\"\n\nfunc main() { syscall.Pause() }\n"), 0o600); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(d.Dir, "pause"), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	if out, err = exec.Command("tar", "-C", d.Dir, "-cf", filepath.Join(d.Dir, "image.tar"), "pause").CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return nil
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
	expect.Must(e.t, err == nil, "docker %v: %v: %s", args, err, &stderr)
	return strings.TrimSpace(string(out))
}

// image makes an image with a name; each is another one.
func (e *engineCLI) image(name string) string {
	e.t.Helper()
	return e.docker("image", "import", "--message", name, filepath.Join(started.Dir, "image.tar"), name)
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
	expect.No(e.t, os.WriteFile(e.file(volume), []byte(text), 0o600))
}

func (e *engineCLI) read(volume string) string {
	e.t.Helper()
	text := expect.Of(os.ReadFile(e.file(volume)))(e.t)
	return string(text)
}
