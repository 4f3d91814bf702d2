package drivertest

import (
	"os"
	"path/filepath"
	"testing"

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
