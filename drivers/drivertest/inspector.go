package drivertest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

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
