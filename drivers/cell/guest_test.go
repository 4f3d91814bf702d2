package cell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// guestWord is the variable, on the kernel's command line, by which this
// program is the first process of a machine that is there for these tests
// alone; .ci/guest boots it. Tests in it find out by the same.
const guestWord = "CELL_GUEST"

// guest is the life of such a machine: it makes what a machine has, runs the
// tests as root and as an ordinary user to whom a cgroup is delegated, says how
// that went and switches the machine off.
func guest() {
	code := 1
	if err := furnish(); err != nil {
		fmt.Println(err)
	} else if code = inGuest("root", "/sys/fs/cgroup", 0); code == 0 {
		err := delegated("/sys/fs/cgroup/user", nobody)
		if err != nil {
			fmt.Println(err)
			code = 1
		} else {
			code = inGuest("an ordinary user", "/sys/fs/cgroup/user", nobody)
		}
	}
	fmt.Println("guest: exit", code)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// furnish makes the machine: what the kernel unpacked is its file system.
func furnish() error {
	// The kernel's first file system can't be left for another; one that is
	// mounted over it can, as the cells do.
	err := errors.Join(os.MkdirAll("/new", 0o755), unix.Mount("/", "/new", "", unix.MS_BIND, ""), os.Chdir("/new"),
		unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/"))
	for _, m := range [...]struct {
		kind, at string
		mode     os.FileMode
	}{
		{"proc", "/proc", 0o755},
		{"sysfs", "/sys", 0o755},
		{"devtmpfs", "/dev", 0o755},
		{"devpts", "/dev/pts", 0o755},
		{"mqueue", "/dev/mqueue", 0o1777},
		{"tmpfs", "/tmp", 0o1777},
		{"tmpfs", "/dev/shm", 0o1777},
		{"cgroup2", "/sys/fs/cgroup", 0o755},
	} {
		if err == nil && m.kind != "cgroup2" {
			err = os.MkdirAll(m.at, 0o755)
		}
		if err == nil {
			if err = unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
				err = fmt.Errorf("mount %s: %w", m.at, err)
			}
		}
		if err == nil && m.mode&0o1000 != 0 {
			err = unix.Chmod(m.at, 0o1777)
		}
	}
	if err == nil {
		err = errors.Join(os.Symlink("/proc/self/fd", "/dev/fd"), loopbackUp())
	}
	return err
}

// delegated makes a cgroup as systemd does for Delegate=yes.
func delegated(dir string, uid int) error {
	err := errors.Join(put(filepath.Dir(dir), "cgroup.subtree_control", "+memory +pids"), os.Mkdir(dir, 0o755), os.Chown(dir, uid, uid))
	for _, name := range []string{"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		err = errors.Join(err, os.Chown(filepath.Join(dir, name), uid, uid))
	}
	return err
}

// inGuest runs the tests in a cgroup and as a user, and returns their exit status.
func inGuest(who, cgroup string, uid uint32) int {
	fmt.Printf("guest: as %s\n", who)
	dir, err := os.Open(cgroup)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer dir.Close()
	child, err := os.StartProcess("/init", append([]string{"cell.test"}, os.Args[1:]...), &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/bin", "HOME=/tmp", guestWord + "=" + who}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Credential: &syscall.Credential{Uid: uid, Gid: uid}},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for { // and whatever it left, which is ours
		var ws syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &ws, 0, nil); {
		case err != nil && !errors.Is(err, syscall.EINTR):
			return 1
		case pid == child.Pid:
			return ws.ExitStatus() + left(cgroup)
		}
	}
}

// left is how many cgroups of runs there are.
func left(cgroup string) int {
	all, _ := filepath.Glob(filepath.Join(cgroup, "swarmdeck-*"))
	n := 0
	for _, dir := range all {
		if filepath.Base(dir) != engines {
			n++
			fmt.Println("guest: left", strings.TrimPrefix(dir, cgroup))
		}
	}
	return n
}
