package cell

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
)

func checkSize(s terminal.Size) error {
	if s == s.Bounded() {
		return nil
	}
	return core.Invalid("terminal", s.String(), fmt.Sprintf("from %dx%d to %dx%d", terminal.MinCols, terminal.MinRows, terminal.MaxCols, terminal.MaxRows))
}

func winsize(s terminal.Size) *unix.Winsize {
	return &unix.Winsize{Col: uint16(s.Cols), Row: uint16(s.Rows)}
}

// streams are the three files of a command, its own ends and ours: pipes, or a
// terminal.
func streams(size *terminal.Size) (theirs, ours files, err error) {
	if size == nil {
		return pipes()
	}
	return openTerminal(*size)
}

// openTerminal makes a terminal: the command's end three times, and ours for what it
// reads and what it writes. It is the machine's, not the cell's, where its name is
// /dev/console.
func openTerminal(size terminal.Size) (theirs, ours files, err error) {
	fail := func(doing string, err error) (files, files, error) {
		theirs.close()
		ours.close()
		return nil, nil, fmt.Errorf("%s of a terminal: %w", doing, err)
	}
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fail("open our end", err)
	}
	ours = files{nil, os.NewFile(uintptr(fd), "terminal"), nil}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return fail("unlock our end", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, winsize(size)); err != nil {
		return fail("set the size", err)
	}
	for range 3 {
		end, err := peer(fd)
		if err != nil {
			return fail("open the command's end", err)
		}
		theirs = append(theirs, os.NewFile(uintptr(end), "terminal"))
	}
	in, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fail("hold our end", err)
	}
	ours[0] = os.NewFile(uintptr(in), "terminal")
	return theirs, ours, nil
}

// peer opens the other end, by its own number: a name could be another's.
func peer(fd int) (int, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	if end, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, flags); errno == 0 {
		return int(end), nil
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	return unix.Open("/dev/pts/"+strconv.Itoa(n), flags, 0)
}

// terminalName is the path of the terminal that this process, the init, has for its
// command, "" for none: the path may be another's where the machine has several devpts.
func terminalName() string {
	path, err := os.Readlink("/proc/self/fd/0")
	var own, there unix.Stat_t
	if err != nil || !strings.HasPrefix(path, "/dev/pts/") || unix.Fstat(0, &own) != nil || unix.Stat(path, &there) != nil || own.Dev != there.Dev || own.Rdev != there.Rdev {
		return ""
	}
	return path
}

// Resize gives a run's terminal another size, of which its program is told. A run
// without a terminal has none.
func (p *Process) Resize(to terminal.Size) error {
	if err := checkSize(to); err != nil {
		return err
	}
	return p.onTerminal(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, winsize(to)) }, "resize")
}

// Unseen reports whether the program reads a line that its terminal does not show:
// a password.
func (p *Process) Unseen() bool {
	var t *unix.Termios
	err := p.onTerminal(func(fd int) (err error) { t, err = unix.IoctlGetTermios(fd, unix.TCGETS); return err }, "look at")
	return err == nil && t.Lflag&unix.ECHO == 0 && t.Lflag&unix.ICANON != 0
}

// Foreground reports whether the first process, or one of its group, is what the
// terminal's keys reach: a shell at its prompt. It is false where that can't be told.
func (p *Process) Foreground() bool {
	group := 0
	err := p.onTerminal(func(fd int) (err error) { group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP); return err }, "look at")
	return err == nil && group == p.pid
}

func (p *Process) onTerminal(do func(fd int) error, doing string) error {
	raw, err := p.Stdin.SyscallConn()
	if err != nil {
		return fmt.Errorf("%s a terminal: %w", doing, err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("%s a terminal: %w", doing, failed)
	}
	return nil
}
