package cell

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func attemptsToRead() []attempt {
	// each tries a way on all secret files.
	each := func(name string, do func(path string) string) attempt {
		return attempt{family: read, name: name, do: func(w *world) string {
			for i, path := range w.secrets() {
				if proof := do(path); proof != "" {
					return fmt.Sprintf("%s: %s (%d)", path, proof, i)
				}
			}
			return ""
		}}
	}
	plain := func(name string, path func(w *world) string) attempt {
		return attempt{family: read, name: name, do: func(w *world) string { return w.read(path(w)) }}
	}
	opens := func(name string, paths ...string) attempt {
		return attempt{family: read, name: name, do: func(*world) string {
			for _, pattern := range paths {
				all, _ := filepath.Glob(pattern)
				for _, path := range all {
					fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
					if err != nil {
						continue
					}
					n, err := unix.Read(fd, make([]byte, 64))
					_ = unix.Close(fd)
					if n > 0 && err == nil {
						return path
					}
				}
			}
			return ""
		}}
	}
	none := &world{}
	of := func(name string, do func(w *world, pid int) string) attempt {
		return attempt{family: read, name: name, do: func(w *world) string {
			for _, pid := range targets(w) {
				if proof := do(w, pid); proof != "" {
					return fmt.Sprintf("%d: %s", pid, proof)
				}
			}
			return ""
		}}
	}
	return []attempt{
		plain("the data file", func(w *world) string { return w.Data + "/swarmdeck.db" }),
		plain("the audit key", func(w *world) string { return w.Data + "/swarmdeck.db.key" }),
		plain("spilled output", func(w *world) string { return w.Data + "/spill/1" }),
		plain("an ssh key", func(w *world) string { return w.Home + "/.ssh/id_ed25519" }),
		plain("cloud credentials", func(w *world) string { return w.Home + "/.aws/credentials" }),
		plain("gh's token", func(w *world) string { return w.Home + "/.config/gh/hosts.yml" }),
		plain("a history", func(w *world) string { return w.Home + "/.bash_history" }),
		plain("a file of the user", func(w *world) string { return w.Home + "/notes" }),
		plain("another agent's file", func(w *world) string { return w.Foreign + "/secret" }),
		plain("another agent's git", func(w *world) string { return w.Foreign + "/.git/config" }),
		plain("another agent's home", func(w *world) string { return w.Kept + "/secret" }),
		plain("the machine's temporary files", func(w *world) string { return w.Scratch + "/secret" }),
		plain("by ..", func(*world) string { return "../scratch/secret" }),
		each("by its own root", func(path string) string { return none.read("/proc/self/root" + path) }),
		each("by many ..", func(path string) string { return none.read(strings.Repeat("../", 30) + path) }),
		of("by another's root", func(w *world, pid int) string { return w.read(fmt.Sprintf("/proc/%d/root%s/secret", pid, w.Scratch)) }),
		of("by another's directory", func(w *world, pid int) string {
			for _, up := range []string{"", "/..", "/../..", "/../../.."} {
				if got := w.read(fmt.Sprintf("/proc/%d/cwd%s%s/secret", pid, up, w.Scratch)); got != "" {
					return got
				}
				if entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/cwd%s", pid, up)); err == nil && pid == w.Engine {
					return entries[0].Name()
				}
			}
			return ""
		}),
		each("by a symbolic link", func(path string) string {
			defer os.Remove("l")
			_ = os.Symlink(path, "l")
			return none.read("l")
		}),
		each("by a link in a chain", func(path string) string {
			defer os.RemoveAll("chain")
			_ = os.Mkdir("chain", 0o700)
			_ = os.Symlink(filepath.Dir(path), "chain/a")
			_ = os.Symlink("a", "chain/b")
			return none.read("chain/b/" + filepath.Base(path))
		}),
		each("by a hard link", func(path string) string {
			defer os.Remove("h")
			_ = os.Link(path, "h")
			return none.read("h")
		}),
		each("by a hard link to a link", func(path string) string {
			defer os.Remove("h2")
			_ = unix.Linkat(unix.AT_FDCWD, path, unix.AT_FDCWD, "h2", unix.AT_SYMLINK_FOLLOW)
			return none.read("h2")
		}),
		each("by renaming it in", func(path string) string {
			if os.Rename(path, "renamed") != nil {
				return ""
			}
			return none.read("renamed")
		}),
		each("by O_PATH and its descriptor", func(path string) string {
			fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			return none.read(fmt.Sprintf("/proc/self/fd/%d", fd))
		}),
		each("by openat2", func(path string) string {
			fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY})
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			data := make([]byte, 4096)
			n, _ := unix.Read(fd, data)
			return seen(data[:max(n, 0)])
		}),
		each("by running it", func(path string) string {
			out, _ := exec.Command("sh", path).CombinedOutput()
			return seen(out)
		}),
		each("by a program that loads it", func(path string) string {
			cmd := exec.Command("/bin/true")
			cmd.Env = []string{"LD_PRELOAD=" + path}
			out, _ := cmd.CombinedOutput()
			if bytes.Contains(out, []byte("invalid ELF header")) {
				return "it was read"
			}
			return ""
		}),
		each("by its names", func(path string) string {
			if all, err := os.ReadDir(filepath.Dir(path)); err == nil {
				for _, e := range all {
					if e.Name() == filepath.Base(path) {
						return "it is listed"
					}
				}
			}
			return ""
		}),
		{family: read, name: "that it is there", do: func(w *world) string {
			if !w.Spaces { // names and sizes can be seen
				return ""
			}
			for _, path := range w.secrets() {
				if _, err := os.Lstat(path); err == nil {
					return path
				}
			}
			return ""
		}},
		{family: read, name: "by watching", do: func(w *world) string {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			for _, path := range w.secrets() {
				dir := filepath.Dir(path) // which may be there without what it holds, on the way to a home that is kept
				if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_ALL_EVENTS); err == nil && w.machines(dir) {
					return path
				}
			}
			return ""
		}},
		{family: read, name: "by fanotify", do: func(*world) string {
			if fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID, 0); err == nil {
				_ = unix.Close(fd)
				return "made one"
			}
			return ""
		}},
		{family: read, name: "by a handle", do: func(w *world) string {
			if w.Handle == nil {
				return ""
			}
			for _, at := range []string{".", "/", "/usr", "/tmp", "/etc"} {
				dir, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				if err != nil {
					continue
				}
				fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(w.Kind, w.Handle), unix.O_RDONLY)
				_ = unix.Close(dir)
				if err == nil {
					data := make([]byte, 4096)
					n, _ := unix.Read(fd, data)
					_ = unix.Close(fd)
					return "opened " + seen(data[:max(n, 0)])
				}
			}
			return ""
		}},
		{family: read, name: "by io_uring", do: func(*world) string {
			params := make([]byte, 120)
			if fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params[0])), 0); errno == 0 {
				_ = unix.Close(int(fd))
				return "made one"
			}
			return ""
		}},
		of("the environment", func(w *world, pid int) string { return w.read(fmt.Sprintf("/proc/%d/environ", pid)) }),
		of("the command line", func(w *world, pid int) string { return w.read(fmt.Sprintf("/proc/%d/cmdline", pid)) }),
		of("the map of its memory", func(w *world, pid int) string {
			if data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)); len(data) > 0 && pid != os.Getpid() {
				return "read"
			}
			return ""
		}),
		of("its memory", func(w *world, pid int) string {
			f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
			if err != nil {
				return ""
			}
			defer f.Close()
			data := make([]byte, 64)
			_, _ = f.ReadAt(data, int64(w.Address))
			return seen(data)
		}),
		of("its memory by process_vm_readv", func(w *world, pid int) string {
			data := make([]byte, 64)
			local := []unix.Iovec{{Base: &data[0], Len: uint64(len(data))}}
			if _, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(w.Address), Len: len(data)}}, 0); err != nil {
				return ""
			}
			return seen(data)
		}),
		of("its memory by ptrace", func(w *world, pid int) string {
			if pid == os.Getppid() && !w.Spaces || unix.PtraceSeize(pid) != nil {
				return ""
			}
			_ = unix.PtraceDetach(pid)
			return "traced"
		}),
		of("its descriptors", func(w *world, pid int) string {
			fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
			for _, fd := range fds {
				if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); err == nil {
					return to
				}
			}
			return ""
		}),
		of("what it waits for", func(w *world, pid int) string {
			for _, name := range []string{"stack", "syscall", "auxv", "io", "personality"} {
				if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)); err == nil && len(data) > 0 {
					return name
				}
			}
			return ""
		}),
		of("a copy of a descriptor", func(_ *world, pid int) string { return stolen(pid) }),
		{family: read, name: "by comparing with others", do: func(w *world) string {
			if _, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(w.Victim), 0, 0, 0, 0); errno == 0 {
				return "compared"
			}
			return ""
		}},
		{family: read, name: "processes of the machine", do: func(w *world) string {
			for _, pid := range numbers("/proc") {
				if strings.Contains(nameOf(pid), "TOPSECRET-") {
					return fmt.Sprint(pid)
				}
			}
			return ""
		}},
		{family: read, name: "the init's order", do: func(w *world) string {
			for _, pid := range inits() {
				if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/fd/%d", pid, orderFile)); err == nil && len(data) > 0 {
					return "read"
				}
				if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && bytes.Contains(data, []byte("=")) && pid != os.Getpid() {
					return "environment"
				}
			}
			return ""
		}},
		{family: read, name: "the machine's mounts", do: func(w *world) string {
			data, _ := os.ReadFile("/proc/self/mountinfo")
			if bytes.Contains(data, []byte("/sys/fs/cgroup")) {
				return "cgroups"
			}
			return ""
		}},
		{family: read, name: "the machine's sockets", do: func(w *world) string {
			data, _ := os.ReadFile("/proc/net/unix")
			if bytes.Contains(data, []byte(w.Abstract)) {
				return w.Abstract
			}
			return ""
		}},
		opens("the kernel's memory", "/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kpagecount", "/proc/kpageflags"),
		opens("the kernel's log", "/dev/kmsg", "/proc/kmsg"),
		opens("disks", "/dev/vd*", "/dev/sd*", "/dev/nvme*", "/dev/dm-*", "/dev/loop*", "/dev/ram*", "/dev/mapper/*"),
		opens("input devices and screens", "/dev/input/*", "/dev/fb*", "/dev/vcs*", "/dev/dri/*", "/dev/hidraw*", "/dev/uhid", "/dev/hwrng", "/dev/tpm*"),
		opens("password hashes", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd"),
		opens("the machine's keys", "/etc/ssh/ssh_host_*_key", "/etc/ssl/private/*", "/etc/sudoers", "/etc/krb5.keytab", "/etc/wireguard/*", "/etc/NetworkManager/system-connections/*"),
		opens("tables of the kernel", "/proc/kallsyms", "/proc/timer_list", "/proc/sched_debug", "/proc/keys", "/proc/key-users", "/proc/vmallocinfo", "/proc/slabinfo", "/sys/kernel/notes", "/sys/kernel/btf/vmlinux"),
		opens("what the machine is", "/sys/class/dmi/id/*", "/sys/firmware/*/*", "/sys/kernel/debug/*", "/sys/kernel/tracing/*", "/sys/hypervisor/*"),
		opens("run time files", "/run/*", "/run/*/*", "/var/run/*", "/var/lib/*/*", "/var/log/*", "/var/spool/*/*", "/var/mail/*", "/srv/*"),
		{family: read, name: "homes", do: func(w *world) string {
			for _, dir := range []string{"/root", "/home", w.Home} {
				entries, _ := os.ReadDir(dir)
				for _, e := range entries {
					if name := e.Name(); name != "agent" && !strings.HasPrefix(filepath.Join(dir, name), filepath.Dir(filepath.Dir(w.Dir))) {
						return filepath.Join(dir, name)
					}
				}
			}
			return ""
		}},
		{family: read, name: "the kernel's log by syslog", do: func(*world) string {
			if n, err := unix.Klogctl(3, make([]byte, 4096)); err == nil && n > 0 {
				return "read"
			}
			return ""
		}},
		{family: read, name: "a disk by a node of its own", do: func(*world) string {
			for _, major := range []uint32{8, 253, 254, 259, 7} {
				defer os.Remove("disk")
				if unix.Mknod("disk", unix.S_IFBLK|0o666, int(unix.Mkdev(major, 0))) == nil {
					if f, err := os.Open("disk"); err == nil {
						f.Close()
						return fmt.Sprint(major)
					}
					_ = os.Remove("disk")
				}
			}
			return ""
		}},
		{family: read, name: "memory by a node of its own", do: func(*world) string {
			defer os.Remove("mem")
			if unix.Mknod("mem", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))) == nil {
				if f, err := os.Open("mem"); err == nil {
					f.Close()
					return "opened"
				}
			}
			return ""
		}},
		{family: read, name: "shared memory of System V", do: func(w *world) string {
			mem, err := unix.SysvShmAttach(w.Segment, 0, unix.SHM_RDONLY)
			if err != nil {
				return ""
			}
			defer func() { _ = unix.SysvShmDetach(mem) }()
			return seen(mem[:64])
		}},
		{family: read, name: "the list of System V", do: func(w *world) string {
			data, _ := os.ReadFile("/proc/sysvipc/shm")
			if bytes.Contains(data, fmt.Appendf(nil, " %d ", w.Segment)) {
				return "listed"
			}
			return ""
		}},
		{family: read, name: "a message queue", do: func(w *world) string {
			q, err := queue(w.Queue, unix.O_RDONLY|unix.O_NONBLOCK)
			if err != nil {
				return ""
			}
			defer unix.Close(int(q))
			return "opened"
		}},
		opens("shared memory", "/dev/shm/*", "/dev/mqueue/*", "/dev/hugepages/*"),
		{family: read, name: "keyrings", do: func(*world) string {
			for _, ring := range []int{unix.KEY_SPEC_SESSION_KEYRING, unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING, unix.KEY_SPEC_PROCESS_KEYRING} {
				if _, err := unix.KeyctlGetKeyringID(ring, false); err == nil {
					return fmt.Sprint(ring)
				}
			}
			return ""
		}},
		{family: read, name: "by a key request", do: func(*world) string {
			if _, err := unix.RequestKey("user", "swarmdeck", "", unix.KEY_SPEC_SESSION_KEYRING); !refusedBy(err) {
				return fmt.Sprint(err)
			}
			return ""
		}},
		{family: read, name: "counters of the processor", do: func(*world) string {
			attr := &unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_CPU_CLOCK}
			if fd, err := unix.PerfEventOpen(attr, 0, -1, -1, 0); err == nil {
				_ = unix.Close(fd)
				return "opened"
			}
			return ""
		}},
		{family: read, name: "terminals", do: func(w *world) string {
			ttys, _ := filepath.Glob("/dev/tty[0-9]*")
			var own, st unix.Stat_t
			if !w.Tty || unix.Fstat(0, &own) != nil || unix.Stat("/dev/console", &st) != nil || own.Rdev != st.Rdev {
				ttys = append(ttys, "/dev/console")
			}
			if !w.Tty {
				ttys = append(ttys, "/dev/tty")
			}
			if unix.Stat("/dev/pts", &st) == nil && st.Dev == w.Terminals { // else they are its own
				all, _ := filepath.Glob("/dev/pts/[0-9]*")
				ttys = append(ttys, all...)
			}
			for _, path := range ttys {
				if fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0); err == nil {
					_ = unix.Close(fd)
					return path
				}
			}
			return ""
		}},
		{family: read, name: "by the moment of a write", alone: true, do: func(w *world) string {
			// Exchange a file for a link while it is opened: what is opened is judged.
			stop := time.Now().Add(200 * time.Millisecond)
			go func() {
				for time.Now().Before(stop) {
					_ = os.WriteFile("race.a", nil, 0o600)
					_ = os.Rename("race.a", "race")
					_ = os.Symlink(w.Scratch+"/secret", "race.b")
					_ = os.Rename("race.b", "race")
				}
			}()
			for time.Now().Before(stop) {
				if got := w.read("race"); got != "" {
					return got
				}
			}
			return ""
		}},
	}
}
