package cell

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/procfs"
)

// proc is one process as /proc shows it.
type proc struct{ procfs.Stat }

// name is what does not change about it.
func (p proc) name() proc { return proc{procfs.Stat{PID: p.PID, Start: p.Start}} }

// look reads /proc/PID/stat; ok is false when the process is gone.
func look(pid int) (proc, bool) {
	s, err := procfs.Read(pid)
	return proc{s}, err == nil
}

// childrenOf lists the pids of a process's children, over all its threads. A
// thread that ends leaves its children to another, perhaps to one that was read
// already: of a process with threads two looks have to agree.
func childrenOf(pid int) []int {
	if !hasChildrenFiles() {
		return slices.DeleteFunc(numbers("/proc"), func(kid int) bool {
			p, ok := look(kid)
			return !ok || p.Parent != pid
		})
	}
	var before []int
	for look := range maxLooks {
		kids, threads := childrenByThread(pid)
		if threads < 2 || look > 0 && slices.Equal(kids, before) {
			return kids
		}
		before = kids
	}
	return before
}

// maxLooks ends the looking at a process whose children never stay the same.
const maxLooks = 8

// childrenByThread is one look, by number.
func childrenByThread(pid int) (kids []int, threads int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	tids := numbers(dir)
	for _, tid := range tids {
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
	slices.Sort(kids)
	return slices.Compact(kids), len(tids)
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
	core.Sort(list, func(a, b proc) int { return cmp.Compare(a.Start, b.Start) })
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
		if t, err := procfs.ReadFile(dir + strconv.Itoa(tid) + "/stat"); err == nil && !t.Stopped() && !t.Dead() {
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
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) {
			_ = unix.Kill(p.PID, sig)
		}
		return
	}
	defer unix.Close(fd)
	if now, ok := look(p.PID); ok && now.Start == p.Start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// named is the command line of an init, by which the next engine finds it.
func named(run, engine string) []string { return []string{"swarmdeck", Word, run, engine} }

// maxRun bounds the name of a run that an init can take on while it waits.
const maxRun = 200

// noRun is what the name of an init ends with that has no run.
const noRun = "/waiting"

// waitingFor is the name of an init that has no run yet, with room for one.
func waitingFor(instance string) string {
	name := instance + noRun
	return name + strings.Repeat(" ", maxRun-len(name))
}

// rename writes the name of a run over the one in this process's command line.
// Go's arguments lie where the kernel has put them and shows them.
func rename(old, run string) {
	place := unsafe.Slice(unsafe.StringData(old), len(old))
	if len(run) > len(place) || old == run {
		return
	}
	for i := copy(place, run); i < len(place); i++ {
		place[i] = ' '
	}
}

// ofInit is the run and the engine that an init's command line names, "" for
// what is none.
func ofInit(pid int) (run, engine string) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return "", ""
	}
	words := splitZero(data)
	if len(words) != 4 || words[0] != "swarmdeck" || words[1] != Word {
		return "", ""
	}
	return strings.TrimRight(words[2], " "), words[3]
}
