package cell

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// withoutSpaces is the variable that has this program refuse itself all name
// spaces for good before it tests.
const withoutSpaces = "CELL_TEST_WITHOUT_SPACES"

// refuseSpaces does so, in a user name space that its parent made for it, and
// begins anew without the rights that it had for that.
func refuseSpaces() {
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
	_ = os.Unsetenv(withoutSpaces)
	err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	fmt.Println(err)
	os.Exit(1)
}

// TestAWorkerIsHeldInEverySetting tries the attacks as others than this process
// and where the system gives less.
func TestAWorkerIsHeldInEverySetting(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests run as an ordinary one already")
	}
	everybody := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 31}}
	one := []syscall.SysProcIDMap{{ContainerID: nobody, HostID: nobody, Size: 1}}
	user := &syscall.Credential{Uid: nobody, Gid: nobody}
	for _, c := range []struct {
		name   string
		attr   syscall.SysProcAttr
		refuse bool
		spaces bool // that it has them after all
	}{
		{"an ordinary user", syscall.SysProcAttr{Credential: user}, false, true},
		{"an ordinary user without name spaces", syscall.SysProcAttr{
			Credential: user, Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one, GidMappings: one, AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
		}, true, false},
		{"root of a container", syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: everybody, GidMappings: everybody, GidMappingsEnableSetgroups: true}, false, true},
		{"root of a container without name spaces", syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: everybody, GidMappings: everybody, GidMappingsEnableSetgroups: true,
		}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "h") // a socket's path is short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			passable(t, dir)
			program := filepath.Join(dir, "cell.test")
			copied(t, program)
			tmp := filepath.Join(dir, "t")
			if err := os.Mkdir(tmp, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(tmp, int(credential(c.attr).Uid), int(credential(c.attr).Gid)); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			run := "TestAWorkerIsHeld$/all"
			cmd := exec.CommandContext(ctx, program, "-test.run", run, "-test.v", "-test.timeout", "110s")
			cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "HOME=" + tmp}, &c.attr
			if c.refuse {
				cmd.Env = append(cmd.Env, withoutSpaces+"=1")
			}
			out, err := cmd.CombinedOutput()
			said := string(out)
			switch {
			case strings.Contains(said, "can't be had"), err != nil && forbids(err) && len(out) == 0:
				t.Skipf("this system can't be made one: %v %s", err, said)
			case err != nil || !strings.Contains(said, "--- PASS: TestAWorkerIsHeld/all"):
				t.Fatalf("%v\n%s", err, said)
			case strings.Contains(said, "name spaces: true") != c.spaces:
				t.Errorf("not what was meant:\n%s", said)
			}
			for line := range strings.Lines(said) {
				if strings.Contains(line, "attempts;") || strings.Contains(line, "by nature") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

func credential(attr syscall.SysProcAttr) syscall.Credential {
	if attr.Credential == nil {
		return syscall.Credential{}
	}
	return *attr.Credential
}

// copiedTo puts it where a worker may run it: the test's own may lie where only
// root comes.
func copiedTo(t *testing.T) string {
	exe := filepath.Join(yard(t), "attacker")
	copied(t, exe)
	return exe
}

// copied puts this program where others may run it.
func copied(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
