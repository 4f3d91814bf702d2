package cell

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// Refused is the first deed of its kind that a run was refused.
type Refused struct {
	Run   string // as in Spec
	Whose Whose
	Deed  string // one word
	Tried string // what was tried, as it follows "tried to"
	// Usual says that harmless programs try it too, and go on without.
	Usual   bool
	Call    string // of the kernel
	PID     int    // of the process, as the cell counts; 0 is unknown
	Program string // its name, which it may have given itself; printable, at most 16 bytes
}

// Who asks the kernel in vain all day long is answered later from some time on:
// the init's time is not the run's.
const (
	manyDeeds = 1000
	deedDelay = time.Millisecond
)

// refuse answers a call that is a deed. The engine is told of the first of each
// kind before, unless that would mean to wait for it.
func (b *broker) refuse(c *call) unix.Errno {
	deed, name := deedBy(c, b.bounds.network)
	if deed != "" && !b.heard[deed] {
		m := message{Kind: saidRefused, Deed: deed, Call: name}
		m.PID = processOf(int(c.thread))
		m.Program = programOf(m.PID)
		b.heard[deed] = sendNow(controlFile, m) == nil // else with the next one
	}
	b.tire()
	switch {
	case deed == "":
		return unix.ENOSYS
	case deed == deedFamily || deed == deedRaw && uint32(c.args[0]) == unix.AF_PACKET:
		if b.bounds.network {
			return unix.EAFNOSUPPORT
		}
	}
	return unix.EPERM
}

func (b *broker) tire() {
	if b.deeds++; b.deeds > manyDeeds {
		time.Sleep(deedDelay)
	}
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
	if p.sup.opt.Refused == nil || !known || p.deeds[d.name] {
		return
	}
	if p.deeds == nil {
		p.deeds, p.told = map[string]bool{}, make(chan Refused, len(deeds))
		p.telling.Go(func() {
			for r := range p.told {
				p.sup.opt.Refused(r)
			}
		})
	}
	p.deeds[d.name] = true
	p.told <- Refused{
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
