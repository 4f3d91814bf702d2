package cell

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attemptsToSignal reach processes that are not the run's. The victim stands
// still, and is looked at when all is over.
func attemptsToSignal() []attempt {
	toForeign := func(name string, do func(pid int) error) attempt {
		return attempt{family: escape, name: name, do: func(w *world) string {
			if w.Spaces { // nobody here has that number, or another whom it is not about
				return ""
			}
			for _, pid := range []int{w.Victim, w.Engine} {
				if err := do(pid); err == nil {
					return fmt.Sprintf("done to %d", pid)
				}
			}
			return ""
		}}
	}
	call := func(number uintptr, args ...uintptr) error {
		var a [5]uintptr
		copy(a[:], args)
		if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], 0); errno != 0 {
			return errno
		}
		return nil
	}
	queued := func() uintptr {
		return uintptr(unsafe.Pointer(&unix.Siginfo{Signo: int32(unix.SIGCONT), Code: -1}))
	}
	return []attempt{
		toForeign("kill by tkill", func(pid int) error { return call(unix.SYS_TKILL, uintptr(pid), uintptr(unix.SIGCONT)) }),
		toForeign("kill by rt_sigqueueinfo", func(pid int) error {
			return call(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGCONT), queued())
		}),
		toForeign("kill by rt_tgsigqueueinfo", func(pid int) error {
			return call(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(pid), uintptr(unix.SIGCONT), queued())
		}),
		toForeign("kill with a number of 64 bits", func(pid int) error {
			return call(unix.SYS_KILL, uintptr(pid)|0xf<<32, uintptr(unix.SIGCONT)|0xf<<32)
		}),
		toForeign("kill its group", func(pid int) error {
			group, err := unix.Getpgid(pid)
			if err != nil {
				return err
			}
			return unix.Kill(-group, unix.SIGCONT)
		}),
		toForeign("enter its group", func(pid int) error {
			group, err := unix.Getpgid(pid)
			if err != nil {
				return err
			}
			return unix.Setpgid(0, group)
		}),
		toForeign("kill by its directory in /proc", func(pid int) error {
			for _, how := range []int{unix.O_RDONLY, unix.O_PATH} {
				fd, err := unix.Open(fmt.Sprintf("/proc/%d", pid), how|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				if err != nil {
					continue
				}
				err = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
				_ = unix.Close(fd)
				if err == nil {
					return nil
				}
			}
			return unix.EPERM
		}),
		toForeign("be told of by a descriptor, by F_SETOWN_EX", func(pid int) error {
			return owned(func(fd int) error {
				return call(unix.SYS_FCNTL, uintptr(fd), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&[2]int32{1, int32(pid)})))
			})
		}),
		toForeign("be told of by a descriptor, by FIOSETOWN", func(pid int) error {
			return owned(func(fd int) error {
				n := int32(pid)
				return call(unix.SYS_IOCTL, uintptr(fd), fioSetOwn, uintptr(unsafe.Pointer(&n)))
			})
		}),
		toForeign("be told of by a descriptor, by SIOCSPGRP", func(pid int) error {
			return owned(func(fd int) error {
				n := int32(pid)
				return call(unix.SYS_IOCTL, uintptr(fd), siocSetOwn, uintptr(unsafe.Pointer(&n)))
			})
		}),
		{family: escape, name: "kill the init by its group", do: func(w *world) string {
			if w.Spaces {
				return ""
			}
			cmd := exec.Command("/bin/sh", "-c", "kill -KILL 0")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: os.Getppid()}
			_ = cmd.Run()
			_ = unix.Kill(-os.Getppid(), unix.SIGKILL)
			return "" // what comes of it is that the attempts end here
		}},
	}
}

// owned has a socket of this process signal somebody, and something come to it.
// That it may be set is no proof: Landlock holds the signal.
func owned(set func(fd int) error) error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	if err := set(ends[0]); err != nil {
		return err
	}
	_, _ = unix.FcntlInt(uintptr(ends[0]), unix.F_SETSIG, int(unix.SIGCONT))
	_, _ = unix.FcntlInt(uintptr(ends[0]), unix.F_SETFL, unix.O_ASYNC)
	_, _ = unix.Write(ends[1], []byte("x"))
	return unix.EPERM
}
