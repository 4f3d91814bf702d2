package cell

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The lease of a cell: the engine shows in a page of shared memory that it
// lives, and an init that sees no sign for as long as Lease freezes its cell.
const (
	Lease     = 12 * time.Second
	beatEvery = time.Second
	lookEvery = Lease / 4
)

// OrphanGrace is how long a cell stays, frozen, when its engine has gone.
const OrphanGrace = 30 * time.Second

// page holds the time of the engine's last sign, of the clock that all
// processes share.
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
	p.beat()
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

func (p *page) beat() { atomic.StoreInt64(p.at(), monotonic()) }

// silent is how long ago the last sign was.
func (p *page) silent() time.Duration { return time.Duration(monotonic() - atomic.LoadInt64(p.at())) }

func (p *page) close() {
	if p.data != nil {
		_ = unix.Munmap(p.data)
		p.data = nil
	}
	if p.file != nil {
		p.file.Close()
	}
}

func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}
