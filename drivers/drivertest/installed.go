// Package drivertest is the conformance suite of agent runtimes: what the
// fleet relies on, whatever an agent's protocol is.
//
// A driver's test gives Run a runtime and an actor: an agent of that runtime
// that performs the acts written in its prompt, one on each line (see
// Perform). The actor is a real program in a process of its own, usually the
// test binary started again.
package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
)

// Installed is the directory that .ci/agents has filled with real agents. The
// test skips itself without it, unless SWARMDECK_AGENTS names the directory:
// then whoever runs the tests wants them all.
func Installed(t *testing.T) string {
	t.Helper()
	return filled(t, "SWARMDECK_AGENTS", "agents")
}

// InstalledMCP is the directory that .ci/mcp has filled with the inspector and
// real servers, by the rules of Installed, for SWARMDECK_MCP_TOOLS.
func InstalledMCP(t *testing.T) string {
	t.Helper()
	return filled(t, "SWARMDECK_MCP_TOOLS", "mcp")
}

// filled is the directory of .cache that a script of .ci has filled.
func filled(t *testing.T, variable, script string) string {
	t.Helper()
	dir, wanted := os.LookupEnv(variable)
	if !wanted {
		dir = filepath.Join(root(t), ".cache", script)
	}
	if _, err := os.Stat(filepath.Join(dir, "installed")); err == nil {
		return dir
	}
	if wanted {
		t.Fatalf("nothing is installed in %s: run .ci/%s", dir, script)
	}
	t.Skipf("nothing is installed in .cache/%s: make %s does that", script, script)
	return ""
}

// OutsideTemp is a directory of the test's own that is not among the system's
// temporary ones, where some agents refuse to keep their files.
func OutsideTemp(t *testing.T) string {
	t.Helper()
	dir := expect.Of(os.MkdirTemp(filepath.Join(root(t), ".cache"), "test-"))(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// root is the module's directory.
func root(t *testing.T) string {
	t.Helper()
	dir := expect.Of(os.Getwd())(t)
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			t.Fatalf("%s is in no module", dir)
		}
	}
}

// Inspector is the official client of the Model Context Protocol, as .ci/mcp
// has installed it.
type Inspector struct {
	t    *testing.T
	bin  string
	home string
}

// NewInspector finds the inspector, by the rules of InstalledMCP. What it
// keeps, it keeps in a directory of the test.
func NewInspector(t *testing.T) Inspector {
	t.Helper()
	return Inspector{t, filepath.Join(InstalledMCP(t), "node_modules", ".bin"), t.TempDir()}
}

// Run starts the inspector, and returns its exit code and what it printed on
// stdout. Each start takes it a quarter of a second.
func (i Inspector) Run(args ...string) (code int, stdout string) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(i.bin, "mcp-inspector"), append([]string{"--cli"}, args...)...)
	cmd.Dir = i.home
	cmd.Env = []string{"HOME=" + i.home, "PATH=" + i.bin + ":" + os.Getenv("PATH"), "NODE_COMPILE_CACHE=" + i.home, "LANG=C.UTF-8"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			i.t.Fatal(err)
		}
		i.t.Logf("inspector %.300q: exit code %d: %s", args, exit.ExitCode(), errs.String())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// Cells keeps a test's runs in cells until the test ends. opt.Instance "" is this
// process; opt.Program "" is an init without the race detector, which begins in an
// eighth of the time that a test's own program takes.
func Cells(t testing.TB, opt cell.Options) *cell.Supervisor {
	t.Helper()
	opt.Instance = cmp.Or(opt.Instance, "test"+strconv.Itoa(os.Getpid()))
	if opt.Program == "" {
		var err error
		opt.Program, err = initial()
		expect.No(t, err)
	}
	s := expect.Of(cell.NewSupervisor(opt))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close supervisor: %v", err)
		}
	})
	return s
}

var initial = sync.OnceValues(func() (string, error) {
	return celltest.Built("init", "build", "swarmdeck/drivers/cell/celltest/init")
})
