package cell

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The lease of a cell: the engine says in a page of shared memory until when cells
// may run, and an init freezes its cell from then on. One that lives holds them for
// Lease, again and again; one whose own right to the data ends says so itself.
const (
	Lease     = 12 * time.Second
	beatEvery = time.Second
	lookEvery = Lease / 4
)

// OrphanGrace is how long a cell stays, frozen, when its engine has gone.
const OrphanGrace = 30 * time.Second

// page holds the time until which cells may run, of the clock that all processes
// share. It goes on while the machine sleeps, as the time of others does.
type page struct {
	file *os.File
	data []byte
}

// newPage makes the engine's page. Nobody who gets it can write it.
func newPage() (*page, error) {
	fd, err := unix.MemfdCreate("beat", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make the page of signs: %w", err)
	}
	p := &page{file: os.NewFile(uintptr(fd), "beat")}
	if err = p.file.Truncate(int64(os.Getpagesize())); err == nil {
		p.data, err = unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_FUTURE_WRITE)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("share the page of signs: %w", err)
	}
	return p, nil
}

// openPage reads the page of an init's engine.
func openPage() (*page, error) {
	data, err := unix.Mmap(beatFile, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("read the page of signs: %w", err)
	}
	return &page{data: data}, nil
}

func (p *page) at() *int64 { return (*int64)(unsafe.Pointer(&p.data[0])) }

// hold lets cells run for so long from now on.
func (p *page) hold(left time.Duration) { atomic.StoreInt64(p.at(), sinceBoot()+int64(left)) }

// left is how long cells may run yet.
func (p *page) left() time.Duration { return time.Duration(atomic.LoadInt64(p.at()) - sinceBoot()) }

func (p *page) close() {
	if p.data != nil {
		_ = unix.Munmap(p.data)
		p.data = nil
	}
	if p.file != nil {
		p.file.Close()
	}
}

func sinceBoot() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

// Hold lets the runs of a leased supervisor go on until then, and new ones start.
func (s *Supervisor) Hold(until time.Time) { s.page.hold(time.Until(until)) }

// beat holds the cells while this process lives and there are any.
func (s *Supervisor) beat() {
	for {
		select {
		case <-s.timer.C:
			s.page.hold(Lease)
		case <-s.end:
			return
		}
	}
}
