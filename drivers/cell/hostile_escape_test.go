package cell

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attemptsToApprove try to be heard by the engine as somebody else. What a
// process of the engine's is told there is tried on the built program.
func attemptsToApprove() []attempt {
	dial := func(path func(w *world) string) func(w *world) string {
		return func(w *world) string {
			c, err := net.DialTimeout("unix", path(w), time.Second)
			if err != nil {
				return ""
			}
			c.Close()
			return "connected to " + path(w)
		}
	}
	return []attempt{
		{family: approve, name: "the engine's socket", do: dial(func(w *world) string { return w.Socket })},
		{family: approve, name: "its socket by a link", do: func(w *world) string {
			_ = os.Symlink(w.Socket, "door")
			defer os.Remove("door")
			return dial(func(*world) string { return "door" })(w)
		}},
		{family: approve, name: "its socket by the init's root", do: dial(func(w *world) string { return "/proc/1/root" + w.Socket })},
		{family: approve, name: "its socket by the engine's root", do: dial(func(w *world) string { return fmt.Sprintf("/proc/%d/root%s", w.Engine, w.Socket) })},
		{family: approve, name: "its socket by ..", do: dial(func(*world) string { return "../data/s" })},
		{family: approve, name: "its abstract socket", do: dial(func(w *world) string { return w.Abstract })},
		{family: approve, name: "replace its socket", do: func(w *world) string {
			if os.Remove(w.Socket) != nil {
				return ""
			}
			return "removed"
		}},
		{family: approve, name: "the init's line to the engine by /proc", do: func(w *world) string {
			for _, pid := range []int{1, os.Getppid()} {
				if f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, controlFile), os.O_RDWR, 0); err == nil {
					f.Close()
					return "opened"
				}
			}
			return ""
		}},
		{family: approve, name: "the init's line to the engine by pidfd_getfd", do: func(w *world) string {
			return stolen(targets(w)...)
		}},
		{family: approve, name: "an inherited descriptor", alone: true, do: func(*world) string {
			fds, _ := os.ReadDir("/proc/self/fd")
			for _, fd := range fds {
				n, _ := strconv.Atoi(fd.Name())
				var st unix.Stat_t
				if unix.Fstat(n, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
					return fd.Name() + " is a socket"
				}
			}
			return ""
		}},
	}
}

// inits are what could be the init of this cell.
func inits() []int {
	list := []int{1}
	for pid := os.Getpid(); pid > 1; {
		p, ok := look(pid)
		if !ok {
			break
		}
		pid = p.Parent
		list = append(list, pid)
	}
	return append(list, os.Getppid())
}

// targets are the inits, the engine and a process of its user, but for what has
// their number in a name space of the attacker's own.
func targets(w *world) []int {
	list := inits()
	for pid, started := range w.Started {
		if p, ok := look(pid); !ok || p.Start == started {
			list = append(list, pid)
		}
	}
	return list
}

// stolen takes a descriptor of another process.
func stolen(pids ...int) string {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		for n := range 16 {
			if got, err := unix.PidfdGetfd(fd, n, 0); err == nil {
				_ = unix.Close(got)
				_ = unix.Close(fd)
				return fmt.Sprintf("descriptor %d of %d", n, pid)
			}
		}
		_ = unix.Close(fd)
	}
	return ""
}

// stay starts a process that is to outlive the run.
func stay(w *world, name string, attr *syscall.SysProcAttr, env ...string) (*os.Process, error) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return nil, err
	}
	return os.StartProcess(sleep, []string{w.Mark + ":" + name, "300"}, &os.ProcAttr{Env: env, Sys: attr})
}

// stayBy has a shell start one that is to outlive the run. STAY stands for it.
func stayBy(name, script string) attempt {
	return attempt{family: escape, name: name, alone: true, do: func(w *world) string {
		bash, err := exec.LookPath("bash")
		if err != nil {
			return ""
		}
		script := strings.ReplaceAll(script, "STAY", fmt.Sprintf(`bash -c 'exec -a %s:%s sleep 300'`, w.Mark, strings.ReplaceAll(name, " ", "-")))
		cmd := exec.Command(bash, "-c", script)
		cmd.Env = append(os.Environ(), "MARK="+w.Mark)
		_ = cmd.Start()
		_ = exec.Command("sleep", "0.2").Run() // the rest is for its children to do
		return ""
	}}
}

// toAll tries something on the inits, the engine and a process of its user.
func toAll(name string, do func(w *world, pid int) error) attempt {
	return attempt{family: escape, name: name, do: func(w *world) string {
		for _, pid := range targets(w) {
			if pid <= 0 || pid == 1 && !w.Spaces || pid == os.Getpid() || w.Spaces && pid > 1 && pid != os.Getppid() {
				continue // nobody here has that number, or another whom it is about
			}
			if err := do(w, pid); err == nil {
				return fmt.Sprintf("done to %d", pid)
			}
		}
		return ""
	}}
}

func attemptsToEscape() []attempt {
	own := func(name string, attr *syscall.SysProcAttr, before func()) attempt {
		return attempt{family: escape, name: name, alone: true, do: func(w *world) string {
			if before != nil {
				before()
			}
			_, _ = stay(w, strings.ReplaceAll(name, " ", "-"), attr, "PATH=/usr/bin:/bin")
			return ""
		}}
	}
	limit := func(what int) func() {
		return func() { _ = syscall.Setrlimit(what, &syscall.Rlimit{Cur: 99, Max: 99}) }
	}
	space := func(flag uintptr) func(*world) string {
		return func(*world) string {
			p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flag}})
			if err != nil {
				return ""
			}
			_, _ = p.Wait()
			return "made one"
		}
	}
	list := []attempt{
		own("another session", &syscall.SysProcAttr{Setsid: true}, nil),
		own("another group", &syscall.SysProcAttr{Setpgid: true}, nil),
		own("lowered limits", &syscall.SysProcAttr{Setsid: true}, limit(unix.RLIMIT_NOFILE)),
		own("a lowered mark", &syscall.SysProcAttr{Setsid: true}, limit(15)),
		own("subreaper of its own", &syscall.SysProcAttr{Setsid: true}, func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }),
		own("no dumps", &syscall.SysProcAttr{Setsid: true}, func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }),
		own("vfork", &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_VFORK}, nil),
		own("the parent's child", &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT}, nil),
		own("shared files and root", &syscall.SysProcAttr{Cloneflags: unix.CLONE_FS | unix.CLONE_FILES}, nil),
		own("untraced", &syscall.SysProcAttr{Cloneflags: unix.CLONE_UNTRACED | unix.CLONE_IO}, nil),
		own("no death signal", &syscall.SysProcAttr{Setsid: true}, func() { _ = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }),
		stayBy("setsid", `setsid STAY &`),
		stayBy("double fork", `(setsid STAY &) ; exit`),
		stayBy("triple fork", `( ( (setsid STAY </dev/null >/dev/null 2>&1 &) &) &)`),
		stayBy("clean environment", `env -i PATH=$PATH setsid STAY &`),
		stayBy("nohup", `nohup STAY >/dev/null 2>&1 & disown -a`),
		stayBy("all signals ignored", `trap '' $(seq 1 31) 2>/dev/null; setsid STAY &`),
		stayBy("prlimit", `prlimit --rttime=7:7 --nofile=20:20 setsid STAY &`),
		stayBy("closed descriptors", `exec 0<&- 1>&- 2>&-; setsid STAY &`),
		stayBy("held pipes", `sleep 0 | STAY &`),
		stayBy("stopped", `(STAY & kill -STOP $!) &`),
		stayBy("traced", `timeout 300 strace -f -o /dev/null STAY &`),
		stayBy("tmux", `tmux -S "$PWD/tm" -f /dev/null new-session -d "STAY"`),
		stayBy("screen", `screen -dm STAY`),
		stayBy("cron", `echo "* * * * * touch $PWD/pwned" | crontab -`),
		stayBy("at", `echo STAY | at now`),
		stayBy("systemd-run", `systemd-run --user STAY || systemd-run STAY`),
		stayBy("start-stop-daemon", `start-stop-daemon -S -b -x /bin/bash -- -c STAY`),
		stayBy("python daemon", `/usr/bin/python3 -c 'import os,signal
if os.fork()==0:
    os.setsid(); signal.pthread_sigmask(signal.SIG_BLOCK, range(1,65))
    if os.fork()==0:
        os.execvp("bash",["bash","-c","exec -a $MARK:python-daemon sleep 300"])'`),
		{family: escape, name: "stop itself", alone: true, do: func(w *world) string {
			_, _ = stay(w, "stop-itself", &syscall.SysProcAttr{Setsid: true})
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
			return ""
		}},
		{family: escape, name: "a swarm of forks", alone: true, do: func(w *world) string {
			_ = syscall.Setrlimit(unix.RLIMIT_NPROC, &syscall.Rlimit{Cur: 4096, Max: 4096})
			for i := range 64 {
				_, _ = stay(w, "swarm-"+strconv.Itoa(i), &syscall.SysProcAttr{Setsid: true})
			}
			return ""
		}},
		toAll("kill", func(_ *world, pid int) error {
			if pid == 1 || pid == os.Getppid() { // a signal that is nothing to it may arrive
				return unix.EPERM
			}
			return unix.Kill(pid, unix.SIGCONT)
		}),
		toAll("kill by pidfd", func(w *world, pid int) error {
			if pid != w.Engine && pid != w.Victim {
				return unix.EPERM
			}
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		}),
		toAll("kill by tgkill", func(w *world, pid int) error {
			if pid != w.Engine && pid != w.Victim {
				return unix.EPERM
			}
			return unix.Tgkill(pid, pid, unix.SIGCONT)
		}),
		{family: escape, name: "kill the init", do: func(w *world) string {
			for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGSEGV, unix.SIGABRT, unix.SIGKILL} {
				_ = unix.Kill(os.Getppid(), sig)
			}
			return "" // what comes of it is that the attempts end here
		}},
		{family: escape, name: "wake all", alone: true, do: func(*world) string {
			_ = unix.Kill(-1, unix.SIGCONT)
			return "" // the victim stands still, and shall
		}},
		{family: escape, name: "wake by a descriptor's owner", alone: true, do: func(w *world) string {
			r, wr, err := os.Pipe()
			if err != nil {
				return ""
			}
			defer r.Close()
			defer wr.Close()
			_, _ = unix.FcntlInt(r.Fd(), unix.F_SETOWN, w.Victim)
			_, _ = unix.FcntlInt(r.Fd(), unix.F_SETSIG, int(unix.SIGCONT))
			_, _ = unix.FcntlInt(r.Fd(), unix.F_SETFL, unix.O_ASYNC)
			_, _ = wr.WriteString("x")
			return ""
		}},
		toAll("trace", func(_ *world, pid int) error {
			err := unix.PtraceSeize(pid)
			if err == nil {
				_ = unix.PtraceDetach(pid)
			}
			return err
		}),
		toAll("limits", func(_ *world, pid int) error {
			var was unix.Rlimit
			return unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &was)
		}),
		toAll("its memory", func(_ *world, pid int) error {
			f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
			if err == nil {
				f.Close()
			}
			return err
		}),
		toAll("whom the kernel kills first", func(_ *world, pid int) error {
			return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
		}),
		toAll("its coredump filter", func(_ *world, pid int) error {
			return os.WriteFile(fmt.Sprintf("/proc/%d/coredump_filter", pid), []byte("1"), 0)
		}),
		{family: escape, name: "not to be killed first", do: func(*world) string {
			if os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) == nil {
				return "written"
			}
			return ""
		}},
		toAll("its place among others", func(_ *world, pid int) error {
			_, _, errno := unix.Syscall(unix.SYS_SCHED_SETAFFINITY, uintptr(pid), 8, uintptr(unsafe.Pointer(&[]uint64{1}[0])))
			if errno != 0 {
				return errno
			}
			return nil
		}),
		toAll("its priority", func(_ *world, pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) }),
		{family: escape, name: "the priority of all of the user", do: func(*world) string {
			if unix.Setpriority(unix.PRIO_USER, 0, 1) == nil {
				return "set"
			}
			return ""
		}},
		toAll("its input and output", func(_ *world, pid int) error {
			if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 3<<13); errno != 0 {
				return errno
			}
			return nil
		}),
		toAll("its policy", func(_ *world, pid int) error {
			param := int32(0)
			if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), 5, uintptr(unsafe.Pointer(&param))); errno != 0 {
				return errno
			}
			return nil
		}),
		toAll("its pages", func(_ *world, pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			page := make([]byte, 4096)
			vec := []unix.Iovec{{Base: &page[0], Len: 4096}}
			if _, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&vec[0])), 1, 20, 0, 0); errno != 0 {
				return errno
			}
			return nil
		}),
		{family: escape, name: "priority of real time", do: func(*world) string {
			param := int32(1)
			if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&param))); errno == 0 {
				return "taken"
			}
			return ""
		}},
		{family: escape, name: "a higher priority", do: func(*world) string {
			if unix.Setpriority(unix.PRIO_PROCESS, 0, -10) == nil {
				return "taken"
			}
			return ""
		}},
		{family: escape, name: "higher limits", do: func(*world) string {
			var was syscall.Rlimit
			if syscall.Getrlimit(unix.RLIMIT_CORE, &was) == nil && syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{Cur: was.Max, Max: was.Max + 1}) == nil {
				return "raised"
			}
			return ""
		}},
		{family: escape, name: "move to another cgroup", do: func(*world) string {
			all, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
			more, _ := filepath.Glob("/sys/fs/cgroup/*/*/cgroup.procs")
			for _, path := range append(append(all, more...), "/sys/fs/cgroup/cgroup.procs") {
				if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
					defer f.Close()
					if _, err := f.WriteString("0"); err == nil {
						return path
					}
				}
			}
			return ""
		}},
		{family: escape, name: "a cgroup mount", do: func(*world) string {
			_ = os.Mkdir("cg", 0o700)
			if unix.Mount("cgroup2", "cg", "cgroup2", 0, "") == nil {
				return "mounted"
			}
			return ""
		}},
		{family: escape, name: "a cgroup of birth", do: func(*world) string {
			dir, err := os.Open("/sys/fs/cgroup/unified")
			if err != nil {
				return ""
			}
			defer dir.Close()
			p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}})
			if err != nil {
				return ""
			}
			_, _ = p.Wait()
			return "born there"
		}},
		{family: escape, name: "clone3", do: func(*world) string {
			args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
			pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
			if errno != 0 {
				return ""
			}
			if pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
			}
			_, _ = unix.Wait4(int(pid), nil, 0, nil)
			return "made one"
		}},
		{family: escape, name: "join the engine's name spaces", do: func(w *world) string {
			for _, pid := range targets(w) {
				for _, kind := range []string{"pid", "mnt", "net", "user", "ipc", "uts", "cgroup"} {
					if fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
						err := unix.Setns(fd, 0)
						_ = unix.Close(fd)
						if err == nil {
							return kind
						}
					}
				}
				if fd, err := unix.PidfdOpen(pid, 0); err == nil {
					err := unix.Setns(fd, unix.CLONE_NEWPID|unix.CLONE_NEWNS)
					_ = unix.Close(fd)
					if err == nil {
						return "by pidfd"
					}
				}
			}
			return ""
		}},
	}
	for name, flag := range map[string]uintptr{
		"user": unix.CLONE_NEWUSER, "pid": unix.CLONE_NEWPID, "mount": unix.CLONE_NEWNS, "net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC,
		"uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "user and pid": unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
	} {
		list = append(list, attempt{family: escape, name: "clone a " + name + " name space", do: space(flag)})
		if flag&(flag-1) == 0 {
			list = append(list, attempt{family: escape, name: "unshare the " + name + " name space", alone: true, do: func(*world) string {
				if unix.Unshare(int(flag)) == nil {
					return "made one"
				}
				return ""
			}})
		}
	}
	return list
}

func nameOf(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(data)
}
