package cell

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// proc is one process as /proc shows it. Pid and start together name it for
// ever; a pid alone may be given to another process.
type proc struct {
	pid, ppid int
	start     uint64 // clock ticks since boot
	state     byte   // R S D T t Z X I …
	session   int
	group     int
}

func (p proc) dead() bool    { return p.state == 'Z' || p.state == 'X' }
func (p proc) stopped() bool { return p.state == 'T' || p.state == 't' }

// look reads /proc/PID/stat; ok is false when the process is gone.
func look(pid int) (p proc, ok bool) {
	return readStat("/proc/" + strconv.Itoa(pid) + "/stat")
}

func readStat(path string) (p proc, ok bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return proc{}, false
	}
	// The name in parentheses may hold anything, parentheses and spaces too.
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return proc{}, false
	}
	p.pid, _ = strconv.Atoi(string(bytes.TrimSpace(data[:open])))
	f := bytes.Fields(data[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return proc{}, false
	}
	p.state = f[0][0]
	p.ppid, _ = strconv.Atoi(string(f[1]))
	p.group, _ = strconv.Atoi(string(f[2]))
	p.session, _ = strconv.Atoi(string(f[3]))
	p.start, _ = strconv.ParseUint(string(f[19]), 10, 64)
	return p, true
}

// childrenOf lists the pids of a process's children, over all its threads.
func childrenOf(pid int) []int {
	if !hasChildrenFiles() {
		return slices.DeleteFunc(numbers("/proc"), func(kid int) bool {
			p, ok := look(kid)
			return !ok || p.ppid != pid
		})
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	var kids []int
	for _, tid := range numbers(dir) {
		data, err := os.ReadFile(dir + strconv.Itoa(tid) + "/children")
		if err != nil {
			continue
		}
		for _, f := range bytes.Fields(data) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				kids = append(kids, n)
			}
		}
	}
	return kids
}

// descendants lists the live and unreaped processes below one, oldest first.
func descendants(of int) []proc {
	var list []proc
	seen := map[int]bool{of: true}
	var add func(pid int)
	add = func(pid int) {
		for _, kid := range childrenOf(pid) {
			if seen[kid] {
				continue
			}
			seen[kid] = true
			if p, ok := look(kid); ok {
				list = append(list, p)
				add(kid)
			}
		}
	}
	add(of)
	slices.SortStableFunc(list, func(a, b proc) int { return cmp.Compare(a.start, b.start) })
	return list
}

// hasChildrenFiles reports whether the kernel offers them.
func hasChildrenFiles() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
}

// frozen reports whether every thread of a process has stopped or ended.
func frozen(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	for _, tid := range numbers(dir) {
		if t, ok := readStat(dir + strconv.Itoa(tid) + "/stat"); ok && !t.stopped() && !t.dead() {
			return false
		}
	}
	return true
}

// stopPending reports whether a SIGSTOP waits for a process to leave the kernel.
func stopPending(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(data, []byte("\nShdPnd:"))
	if !ok {
		return false
	}
	mask, _, _ := bytes.Cut(rest, []byte("\n"))
	bits, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
	return err == nil && bits&(1<<(unix.SIGSTOP-1)) != 0
}

// markOf reads a process's Marker variable; "" when it has none, is a zombie
// or belongs to somebody else.
func markOf(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for v := range bytes.SplitSeq(data, []byte{0}) {
		if mark, ok := bytes.CutPrefix(v, []byte(Marker+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

// innerPID is the number of a process in its own name space; 0 when it is gone.
func innerPID(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(data, []byte("\nNSpid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(f[len(f)-1]))
	return n
}

// numbers lists the entries of a directory that are numbers.
func numbers(dir string) []int {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what was read before an error counts
	list := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// send signals exactly this process, and none that got its pid later.
func (p proc) send(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) {
			_ = unix.Kill(p.pid, sig)
		}
		return
	}
	defer unix.Close(fd)
	if now, ok := look(p.pid); ok && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}
