package celltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// before is the environment before a test gives itself another HOME: there Go keeps
// what it has built.
var before = os.Environ()

// Built makes a program of this module without the race detector, by the go command
// and its arguments, and gives its path.
func Built(name, command string, args ...string) (path string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for {
		_, err := os.Stat(filepath.Join(root, "go.mod"))
		if err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("find the module: %w", err)
		}
		root = filepath.Dir(root)
	}
	path = filepath.Join(root, ".cache", "built", name)
	cmd := exec.Command("go", slices.Concat([]string{command, "-buildvcs=false", "-o", path}, args)...)
	cmd.Env = before
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// Attacker is the tests of drivers/cell, which are also the attacker that they let
// loose: an attack that needs no detector begins in a quarter of the time.
var Attacker = sync.OnceValues(func() (string, error) {
	return Built("cell.test", "test", "-c", "-vet=off", "swarmdeck/drivers/cell")
})
