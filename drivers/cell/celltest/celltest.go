// Package celltest is the settings in which tests try the wall around cells:
// as whom, and with how much of what a system can give.
package celltest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// WithoutSpaces is the variable that has a test's program refuse itself all
// name spaces for good, by Begin.
const WithoutSpaces = "CELL_TEST_WITHOUT_SPACES"

// Nobody is the user and the group of an ordinary user.
const Nobody = 65534

// Setting is a way to be started, by root.
type Setting struct {
	Name   string
	Attr   syscall.SysProcAttr
	Refuse bool // WithoutSpaces is to be set
	Spaces bool // it has name spaces after all
}

// Owner is the user that a setting is of.
func (s Setting) Owner() int {
	if s.Attr.Credential == nil {
		return 0
	}
	return int(s.Attr.Credential.Uid)
}

// Settings are all but that of root itself. Those of root in a container take
// minutes more and come with CELL_SETTINGS=all.
func Settings() []Setting {
	everybody := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 31}}
	one := []syscall.SysProcIDMap{{ContainerID: Nobody, HostID: Nobody, Size: 1}}
	user := &syscall.Credential{Uid: Nobody, Gid: Nobody}
	container := syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: everybody, GidMappings: everybody, GidMappingsEnableSetgroups: true}
	all := []Setting{
		{"an ordinary user", syscall.SysProcAttr{Credential: user}, false, true},
		{"an ordinary user without name spaces", syscall.SysProcAttr{
			Credential: user, Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one, GidMappings: one, AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
		}, true, false},
		{"root of a container", container, false, true},
		{"root of a container without name spaces", container, true, false},
	}
	if os.Getenv("CELL_SETTINGS") != "all" {
		return all[:2]
	}
	return all
}

// Begin refuses this process all name spaces, if WithoutSpaces is set, in a user
// name space that its parent made for it, and begins anew without the rights that
// it had for that.
func Begin() {
	if os.Getenv(WithoutSpaces) == "" {
		return
	}
	all, err := filepath.Glob("/proc/sys/user/max_*_namespaces")
	for _, path := range all {
		if err == nil {
			err = os.WriteFile(path, []byte("0"), 0)
		}
	}
	if err == nil && len(all) == 0 {
		err = os.ErrNotExist
	}
	if err != nil {
		fmt.Println("no name spaces can't be had:", err)
		os.Exit(0)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	_ = os.Unsetenv(WithoutSpaces)
	err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	fmt.Println(err)
	os.Exit(1)
}

// Copy puts a program where others may run it.
func Copy(t testing.TB, program, to string) {
	t.Helper()
	from := expect.Of(os.Open(program))(t)
	defer from.Close()
	f := expect.Of(os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755))(t)
	expect.Of(io.Copy(f, from))(t)
	expect.No(t, f.Close())
}

// Passable lets others pass to a directory of a test's.
func Passable(t testing.TB, dir string) {
	t.Helper()
	for ; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		expect.No(t, os.Chmod(dir, 0o755))
	}
}

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
