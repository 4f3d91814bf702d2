package cell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func attemptsToWrite() []attempt {
	to := func(name string, paths func(w *world) []string) attempt {
		return attempt{family: write, name: name, do: func(w *world) string {
			for _, path := range paths(w) {
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err == nil {
					f.Close()
					return path
				}
				f, err = os.OpenFile(filepath.Join(filepath.Dir(path), "pwned"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
				if err == nil {
					f.Close()
					own := !w.machines(f.Name())
					_ = os.Remove(f.Name())
					if !own {
						return f.Name()
					}
				}
			}
			return ""
		}}
	}
	all := func(paths ...string) func(*world) []string { return func(*world) []string { return paths } }
	// changed tries a call on files that are not the run's.
	changed := func(name string, do func(path string) error) attempt {
		return attempt{family: write, name: name, do: func(w *world) string {
			for _, path := range []string{w.Outside, "../outside", w.Scratch + "/secret", w.Data + "/swarmdeck.db"} {
				if do(path) == nil && (w.machines(path+".pwned") || w.machines(filepath.Join(filepath.Dir(path), "pwned.l")) || w.machines(path)) {
					return path
				}
			}
			return ""
		}}
	}
	// called tries a call; what is wrong with its arguments may be all that
	// holds it back, and is not counted as a refusal.
	called := func(name string, do func() error) attempt {
		return attempt{family: write, name: name, do: func(*world) string {
			if err := do(); !refusedBy(err) {
				return fmt.Sprint("reached the kernel: ", err)
			}
			return ""
		}}
	}
	mounts := func(name string, do func(at string) error) attempt {
		return attempt{family: write, name: name, do: func(w *world) string {
			at := filepath.Join(w.Dir, "mnt")
			_ = os.Mkdir(at, 0o700)
			defer os.Remove(at)
			if do(at) == nil {
				_ = unix.Unmount(at, unix.MNT_DETACH)
				return "mounted"
			}
			return ""
		}}
	}
	raw := func(n uintptr, args ...uintptr) error {
		args = append(args, 0, 0, 0, 0, 0, 0)
		if _, _, errno := unix.Syscall6(n, args[0], args[1], args[2], args[3], args[4], args[5]); errno != 0 {
			return errno
		}
		return nil
	}
	zero := make([]byte, 256)
	at := uintptr(unsafe.Pointer(&zero[0]))
	list := []attempt{
		to("the engine's files", func(w *world) []string { return []string{w.Data + "/swarmdeck.db", w.Data + "/spill/1"} }),
		to("what a login runs", func(w *world) []string {
			return []string{w.Home + "/.bashrc", w.Home + "/.ssh/authorized_keys", w.Home + "/notes", "/root/.bashrc", "/root/.ssh/authorized_keys"}
		}),
		to("another agent's files", func(w *world) []string {
			return []string{w.Foreign + "/secret", w.Foreign + "/.git/config", w.Kept + "/secret"}
		}),
		to("the machine's temporary files", func(w *world) []string { return []string{w.Scratch + "/secret"} }),
		to("by ..", all("../outside", "../scratch/secret")),
		to("the system", all("/etc/passwd", "/etc/shadow", "/etc/ld.so.preload", "/etc/hosts", "/usr/bin/env", "/usr/local/bin/x", "/bin/sh", "/lib/x", "/opt/x", "/etc/profile.d/x")),
		to("what the system runs", all("/etc/cron.d/x", "/etc/crontab", "/var/spool/cron/crontabs/root", "/etc/systemd/system/x", "/etc/rc.local", "/etc/udev/rules.d/x", "/etc/init.d/x")),
		to("settings of the kernel", all("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/randomize_va_space",
			"/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger", "/proc/sys/kernel/ns_last_pid", "/proc/sys/user/max_user_namespaces", "/proc/irq/0/smp_affinity", "/proc/acpi/wakeup", "/proc/latency_stats", "/proc/mtrr")),
		to("sysfs", all("/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state", "/sys/devices/system/cpu/cpu0/online", "/sys/devices/system/cpu/cpu1/online", "/sys/module/kernel/parameters/panic",
			"/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/class/net/lo/mtu")),
		to("settings by another root", func(w *world) []string {
			return []string{"/proc/1/root/proc/sys/kernel/core_pattern", fmt.Sprintf("/proc/%d/root/etc/passwd", w.Engine), "/proc/self/root/etc/passwd"}
		}),
		{family: write, name: "the settings of a user name space", do: func(*world) string {
			for _, path := range []string{"/proc/self/uid_map", "/proc/self/gid_map", "/proc/1/uid_map"} {
				if os.WriteFile(path, []byte("0 0 1"), 0) == nil {
					return path
				}
			}
			return ""
		}},
		{family: write, name: "by a symbolic link", do: func(w *world) string {
			defer os.Remove("out")
			_ = os.Symlink(w.Outside, "out")
			f, err := os.OpenFile("out", os.O_WRONLY, 0)
			if err != nil {
				return ""
			}
			f.Close()
			return "opened"
		}},
		{family: write, name: "by a hard link", do: func(w *world) string {
			for _, from := range []string{w.Outside, "/etc/passwd", "/usr/bin/env"} {
				_ = os.Remove("hard")
				if os.Link(from, "hard") == nil {
					return from
				}
			}
			return ""
		}},
		{family: write, name: "by renaming out", do: func(w *world) string {
			_ = os.WriteFile("mine", []byte("mine"), 0o600)
			defer os.Remove("mine")
			for _, to := range []string{w.Scratch + "/pwned", "../pwned", w.Outside, w.Foreign + "/pwned", w.Home + "/pwned"} {
				if os.Rename("mine", to) == nil && w.machines(to) {
					return to
				}
			}
			return ""
		}},
		{family: write, name: "by exchanging", do: func(w *world) string {
			_ = os.WriteFile("mine", []byte("mine"), 0o600)
			defer os.Remove("mine")
			if unix.Renameat2(unix.AT_FDCWD, "mine", unix.AT_FDCWD, w.Outside, unix.RENAME_EXCHANGE) == nil {
				return "exchanged"
			}
			return ""
		}},
		{family: write, name: "by a nameless file", do: func(w *world) string {
			fd, err := unix.Open(w.Scratch, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
			if err != nil {
				fd, err = unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
			}
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			if unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, w.Scratch+"/pwned", unix.AT_SYMLINK_FOLLOW) == nil {
				return "linked"
			}
			return ""
		}},
		{family: write, name: "moving its own directory", do: func(w *world) string {
			if os.Rename(w.Dir, w.Scratch+"/pwned") == nil || os.Rename(w.Dir, w.Dir+"2") == nil {
				return "moved"
			}
			return ""
		}},
		changed("cut", func(path string) error { return os.Truncate(path, 0) }),
		changed("cut by reading", func(path string) error { return opened(path, unix.O_RDONLY|unix.O_TRUNC) }),
		changed("cut by neither reading nor writing", func(path string) error { return opened(path, unix.O_ACCMODE|unix.O_TRUNC) }),
		changed("cut by a newer call", func(path string) error {
			fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_TRUNC})
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}),
		changed("the mode", func(path string) error { return os.Chmod(path, 0o777) }),
		changed("the mode by a descriptor", func(path string) error {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Fchmod(fd, 0o4755)
		}),
		changed("the mode by O_PATH", func(path string) error {
			fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), 0o777, 0); err == nil {
				return nil
			}
			empty := []byte{0}
			return raw(452, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), 0o777, unix.AT_EMPTY_PATH) // fchmodat2
		}),
		changed("the owner", func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			return os.Chown(path, int(st.Uid), int(st.Gid))
		}),
		changed("the times", func(path string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
		}),
		{family: write, name: "the mode of the system", do: func(*world) string { // for what it is
			for _, path := range []string{"/etc/passwd", "/usr/bin/env", "/etc", "/"} {
				fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					continue
				}
				defer unix.Close(fd)
				var st unix.Stat_t
				if unix.Fstat(fd, &st) == nil && (unix.Fchmod(fd, st.Mode&0o7777) == nil || unix.Chmod(path, st.Mode&0o7777) == nil) {
					return path
				}
			}
			return ""
		}},
		changed("attributes", func(path string) error { return unix.Setxattr(path, "user.pwned", []byte("x"), 0) }),
		changed("removing it", func(path string) error { return os.Remove(path) }),
		changed("a directory beside it", func(path string) error { return os.Mkdir(path+".pwned", 0o700) }),
		changed("a link beside it", func(path string) error { return os.Symlink("x", filepath.Join(filepath.Dir(path), "pwned.l")) }),
		changed("a pipe beside it", func(path string) error {
			return unix.Mkfifo(filepath.Join(filepath.Dir(path), "pwned.p"), 0o600)
		}),
		changed("immutable", func(path string) error {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, unix.STATX_ATTR_IMMUTABLE)
		}),
		changed("a lease", func(path string) error {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
			return err
		}),
		{family: write, name: "a lower number", alone: true, do: func(*world) string {
			was := os.Geteuid()
			for _, id := range []int{0, 1, 2, 1000} {
				if id != was && (unix.Setresuid(id, id, id) == nil || unix.Setregid(id, id) == nil || syscall.Setgroups([]int{id}) == nil) {
					return fmt.Sprint("became ", id)
				}
			}
			return ""
		}},
		{family: write, name: "a file system number", do: func(*world) string {
			if os.Geteuid() == 0 {
				return ""
			}
			if was, _ := unix.SetfsuidRetUid(0); was >= 0 {
				if now, _ := unix.SetfsuidRetUid(-1); now == 0 {
					return "root"
				}
			}
			return ""
		}},
		{family: write, name: "a program of root's", alone: true, do: func(*world) string {
			if os.Geteuid() == 0 {
				return ""
			}
			for _, dir := range []string{"/usr/bin", "/bin", "/usr/sbin"} {
				entries, _ := os.ReadDir(dir)
				for _, e := range entries {
					info, err := e.Info()
					if err != nil || info.Mode()&os.ModeSetuid == 0 {
						continue
					}
					cmd := exec.Command(filepath.Join(dir, e.Name()))
					in, err := cmd.StdinPipe()
					if err != nil || cmd.Start() != nil {
						continue
					}
					status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
					_ = cmd.Process.Kill()
					_ = in.Close() // it ends by that where it gets no signal
					_ = cmd.Wait()
					for line := range strings.Lines(string(status)) {
						if f := strings.Fields(line); len(f) > 2 && f[0] == "Uid:" && f[2] == "0" {
							return cmd.Path
						}
					}
				}
			}
			return ""
		}},
		{family: write, name: "a program that becomes its owner", do: func(w *world) string {
			defer os.Remove("suid")
			data, _ := os.ReadFile("/usr/bin/id")
			if os.WriteFile("suid", data, 0o755) != nil || os.Chmod("suid", 0o6755) != nil {
				return ""
			}
			if os.Chown("suid", 0, 0) == nil && os.Geteuid() != 0 {
				return "it is root's"
			}
			out, _ := exec.Command("./suid", "-u").Output()
			if got := strings.TrimSpace(string(out)); got != "" && got != fmt.Sprint(os.Geteuid()) {
				return got
			}
			return ""
		}},
		{family: write, name: "rights of a file", do: func(*world) string {
			defer os.Remove("caps")
			_ = os.WriteFile("caps", nil, 0o755)
			v := []byte{1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
			if unix.Setxattr("caps", "security.capability", v, 0) == nil {
				return "set"
			}
			return ""
		}},
		{family: write, name: "rights of its own", alone: true, do: func(*world) string {
			head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			full := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
			if unix.Capset(&head, &full[0]) == nil {
				return "capset"
			}
			var have [2]unix.CapUserData
			_ = unix.Capget(&head, &have[0])
			if have[0].Permitted|have[1].Permitted|have[0].Effective|have[1].Effective|have[0].Inheritable != 0 {
				return fmt.Sprintf("%+v", have)
			}
			if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == nil {
				return "no_new_privs taken back"
			}
			if unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0) == nil {
				return "securebits"
			}
			for c := range uintptr(unix.CAP_LAST_CAP) {
				if unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0) == nil {
					return "ambient"
				}
			}
			return ""
		}},
		{family: write, name: "by calls of another architecture", alone: true, do: func(*world) string {
			if _, _, errno := unix.RawSyscall(x32|unix.SYS_GETPID, 0, 0, 0); errno == 0 {
				return "x32"
			}
			return ""
		}},
		{family: write, name: "a filter of its own that allows", alone: true, do: func(*world) string {
			allow := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
			prog := unix.SockFprog{Len: 1, Filter: &allow[0]}
			_ = raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
			if unix.Unshare(unix.CLONE_NEWUSER) == nil {
				return "unshared"
			}
			return ""
		}},
		{family: write, name: "words for its terminal", do: func(*world) string {
			for fd := range 3 {
				x := byte('x')
				if raw(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&x))) == nil {
					return "typed"
				}
				// The upper half of a request is nothing to the kernel.
				if err := raw(unix.SYS_IOCTL, uintptr(fd), 1<<32|unix.TIOCSTI, uintptr(unsafe.Pointer(&x))); err == nil {
					return "typed by a long number"
				}
			}
			return ""
		}},
		mounts("mount memory", func(at string) error { return unix.Mount("x", at, "tmpfs", 0, "") }),
		mounts("mount proc", func(at string) error { return unix.Mount("x", at, "proc", 0, "") }),
		mounts("mount sysfs", func(at string) error { return unix.Mount("x", at, "sysfs", 0, "") }),
		mounts("mount devices", func(at string) error { return unix.Mount("x", at, "devtmpfs", 0, "") }),
		mounts("bind", func(at string) error { return unix.Mount("/etc", at, "", unix.MS_BIND, "") }),
		mounts("mount over the system", func(string) error { return unix.Mount("x", "/etc", "tmpfs", 0, "") }),
		mounts("write the system again", func(string) error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") }),
		mounts("write the root again", func(string) error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") }),
		mounts("write settings again", func(string) error {
			return unix.Mount("", "/proc/sys", "", unix.MS_REMOUNT|unix.MS_BIND, "")
		}),
		mounts("set attributes of a mount", func(string) error {
			return unix.MountSetattr(unix.AT_FDCWD, "/usr", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}),
		mounts("uncover a place", func(string) error {
			for _, path := range []string{"/proc/kcore", "/proc/sys", "/tmp", "/dev", "/proc", "/"} {
				if unix.Unmount(path, unix.MNT_DETACH) == nil {
					return nil
				}
			}
			return unix.EPERM
		}),
		mounts("share mounts", func(string) error { return unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, "") }),
		mounts("copy a tree", func(string) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE)
			_ = unix.Close(fd)
			return err
		}),
		mounts("mount by descriptors", func(string) error {
			fd, err := unix.Fsopen("tmpfs", 0)
			_ = unix.Close(fd)
			return err
		}),
		mounts("mount by fusermount", func(at string) error { return exec.Command("fusermount", "-u", at).Run() }),
		mounts("mount by mount", func(at string) error { return exec.Command("mount", "-t", "tmpfs", "x", at).Run() }),
		mounts("change the root", func(at string) error {
			if unix.PivotRoot(at, at) == nil {
				return nil
			}
			return unix.Chroot(at)
		}),
		called("clock", func() error {
			t := unix.Timespec{Sec: -1}
			return raw(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&t)))
		}),
		called("time of day", func() error { t := unix.Timeval{Sec: -1}; return unix.Settimeofday(&t) }),
		called("speed of the clock", func() error { _, err := unix.Adjtimex(&unix.Timex{Modes: 0x8000}); return err }),
		called("host name", func() error { name, _ := os.Hostname(); return unix.Sethostname([]byte(name)) }),
		called("domain name", func() error { return unix.Setdomainname([]byte("(none)")) }),
		called("swap", func() error { return raw(unix.SYS_SWAPON, at) }),
		called("no swap", func() error { return raw(unix.SYS_SWAPOFF, at) }),
		called("accounting", func() error { return unix.Acct("/nowhere/at/all") }),
		called("quota", func() error { return raw(unix.SYS_QUOTACTL, 0x800007<<8, at, 0, at) }),
		called("a module", func() error { return unix.InitModule(zero, "") }),
		called("a module by its file", func() error { return unix.FinitModule(-1, "", 0) }),
		called("no module", func() error { return unix.DeleteModule("no_such_module", unix.O_NONBLOCK) }),
		called("another kernel", func() error { return raw(unix.SYS_KEXEC_LOAD, 0, 1<<20, at, 0xffff<<16) }),
		called("another kernel by its file", func() error { return unix.KexecFileLoad(-1, -1, "", 0) }),
		called("reboot", func() error { return raw(unix.SYS_REBOOT, 1, 2, 3, 0) }),
		called("programs in the kernel", func() error { return raw(unix.SYS_BPF, 0xffff, at, 128) }),
		called("faults of its own", func() error { return raw(unix.SYS_USERFAULTFD, 0xffffffff) }),
		called("hang up", func() error { return raw(unix.SYS_VHANGUP) }),
		called("a key", func() error {
			_, err := unix.AddKey("user", "pwned", []byte("x"), unix.KEY_SPEC_SESSION_KEYRING)
			return err
		}),
		called("pages of others", func() error { return raw(unix.SYS_MIGRATE_PAGES, 0, 8, at, at) }),
	}
	for name, device := range map[string]uint32{"a block device": unix.S_IFBLK, "a character device": unix.S_IFCHR} {
		list = append(list, attempt{family: write, name: name, do: func(*world) string {
			for _, dir := range []string{".", "/tmp", "/dev", "/dev/shm"} {
				path := filepath.Join(dir, "node")
				if unix.Mknod(path, device|0o666, int(unix.Mkdev(1, 3))) == nil {
					f, err := os.OpenFile(path, os.O_RDWR, 0)
					_ = os.Remove(path)
					if err == nil {
						f.Close()
						return path
					}
				}
			}
			return ""
		}})
	}
	return list
}

// opened opens a file and closes it.
func opened(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}
