package cell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Held is the first deed of its kind that a run was refused, or a file that a person's
// tools run, or take their orders from, because it lies there, and that was made or
// changed while the run could.
type Held struct {
	Run   string `json:"-"` // as in Spec
	Whose Whose  `json:"-"`
	Deed  string `json:"deed"`            // one word
	Tried string `json:"tried,omitempty"` // what was tried, as it follows "tried to"
	// Usual says that harmless programs try it too, and go on without.
	Usual   bool   `json:"usual,omitzero"`
	Call    string `json:"call,omitempty"`    // of the kernel
	PID     int    `json:"pid,omitzero"`      // of the process, as the cell counts; 0 is unknown
	Program string `json:"program,omitempty"` // its name, which it may have given itself; printable, at most 16 bytes
	Laid    string `json:"laid,omitempty"`    // the file's path, in place of what was refused; its deed is "lay"
	When    string `json:"when,omitempty"`    // as it follows "runs on your machine when"
}

// Who asks the kernel in vain all day long is answered later from some time on:
// the init's time is not the run's.
const (
	manyDeeds = 1000
	deedDelay = time.Millisecond
)

// listener refuses deeds, and tells the engine of them.
type listener struct {
	asked   int             // where calls arrive
	network bool            // the run is parted from the machine's
	heard   map[string]bool // deeds that the engine was told of
	deeds   int             // that were refused
}

// call is a call that waits for its answer, as the kernel tells it.
type call struct {
	id     uint64
	thread uint32
	_      uint32
	number uint32
	_      uint32
	_      uint64
	args   [6]uint64
}

type answer struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

func (l *listener) ioctl(request uintptr, data unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.asked), request, uintptr(data)); errno != 0 {
		return errno
	}
	return nil
}

// listen answers calls until no more can come.
func (l *listener) listen() {
	for {
		c := new(call)
		err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(c))
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT): // who asked has gone
		case err != nil:
			return
		default:
			_ = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer{id: c.id, error: -int32(l.refuse(c))}))
		}
	}
}

// refuse answers a call that is a deed. The engine is told of the first of each
// kind before, unless that would mean to wait for it.
func (l *listener) refuse(c *call) unix.Errno {
	deed, name := deedBy(c, l.network)
	if deed != "" && !l.heard[deed] {
		m := message{Kind: saidRefused, Deed: deed, Call: name}
		m.PID = processOf(int(c.thread))
		m.Program = programOf(m.PID)
		l.heard[deed] = sendNow(controlFile, m) == nil // else with the next one
	}
	if l.deeds++; l.deeds > manyDeeds {
		time.Sleep(deedDelay)
	}
	switch {
	case deed == "":
		return unix.ENOSYS
	case deed == deedFamily || deed == deedRaw && uint32(c.args[0]) == unix.AF_PACKET:
		if l.network {
			return unix.EAFNOSUPPORT
		}
	}
	return unix.EPERM
}

// processOf is the process of a thread, 0 when it has gone.
func processOf(thread int) (pid int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nTgid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	pid, _ = strconv.Atoi(string(bytes.TrimSpace(line)))
	return pid
}

// programOf is what a process calls itself.
func programOf(pid int) string {
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return printable(string(comm), maxProgram)
}

// Bounds of names, in bytes. The kernel keeps 15 of a process's.
const (
	maxProgram = 16
	maxCall    = 32
)

// printable is a name as it may be shown: a process chooses its own.
func printable(s string, most int) string {
	s = strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, ""))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// refused tells of a deed, once of each kind whatever the init says.
func (p *Process) refused(m message) {
	d, known := deedOf(m.Deed)
	if p.sup.opt.Held == nil || !known || p.deeds[d.name] {
		return
	}
	if p.deeds == nil {
		p.deeds, p.told = map[string]bool{}, make(chan Held, len(deeds))
		p.telling.Go(func() {
			for r := range p.told {
				p.sup.opt.Held(r)
			}
		})
	}
	p.deeds[d.name] = true
	p.told <- Held{
		Run: p.whose.Name, Whose: p.work, Deed: d.name, Tried: d.tried, Usual: d.usual,
		Call: printable(m.Call, maxCall), PID: m.PID, Program: printable(m.Program, maxProgram),
	}
}

// heardAll waits until all that was refused is told.
func (p *Process) heardAll() {
	if p.told != nil {
		close(p.told)
		p.telling.Wait()
	}
}
