package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"
)

// addressSpace is how much of it the file may grow into before the writer has
// to wait for every reader to map it anew. It costs no memory.
const addressSpace = 64 << 30

// Open opens the data file, creating it when there is none. The file belongs
// to this process until Close: ErrLocked while another has it. A file that is
// damaged, cut short, foreign or newer than this program is ErrUnusable and
// is not written to.
func Open(path string, opt Options) (*DB, error) {
	db, err := open(path, opt)
	if err != nil {
		return nil, fmt.Errorf("open data file %s: %w", path, err)
	}
	return db, nil
}

func open(path string, opt Options) (*DB, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !opt.ReadOnly {
		if err := create(path, len(opt.Migrations)); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	db := &DB{path: path, opt: opt, readOnly: opt.ReadOnly}
	if db.bolt, db.file, err = openBolt(path, opt.ReadOnly, opt.anySchema); err != nil {
		return nil, err
	}
	db.queue.Bell, db.room.hurried = make(chan struct{}, 1), make(chan struct{})
	if opt.ReadOnly {
		err = db.inspect()
	} else {
		err = db.adopt()
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if !opt.ReadOnly {
		_ = os.Remove(compactTemp(path)) // it is in nobody's way but the disk's
		db.stopped, db.asides = make(chan struct{}), make(chan func(*writer))
		w := &writer{db: db, tenants: map[string]*tenant{}}
		go w.run()
	}
	return db, nil
}

// errOlder refuses to lose a commit in silence: with one meta page damaged
// bbolt would go on from the state before it.
var errOlder = errors.New("one of its two meta pages is damaged, the newest commit may be missing; " +
	"restore a backup, or compact the file to accept what it holds")

// openBolt opens a file that exists, under its lock, after a look at its meta
// pages; older accepts that one of them is damaged.
func openBolt(path string, readOnly, older bool) (*bbolt.DB, *os.File, error) {
	for range 3 {
		m, err := readMeta(path, false)
		if err != nil || m.damaged {
			// Perhaps a running owner was just writing it.
			m, err = readMeta(path, true)
		}
		if err != nil {
			return nil, nil, err
		}
		if m.damaged && !older {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnusable, errOlder)
		}
		db, file, err := mapBolt(path, readOnly, m.size)
		if err != nil {
			return nil, nil, err
		}
		now, err := os.Stat(path)
		if err == nil {
			if mine, e := file.Stat(); e == nil && os.SameFile(now, mine) {
				return db, file, nil
			}
		}
		// The file was exchanged (restore, compact) before we had its lock.
		if err := db.Close(); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnusable, err)
		}
	}
	return nil, nil, fmt.Errorf("%w: the file keeps being exchanged", ErrLocked)
}

func mapBolt(path string, readOnly bool, size int64) (db *bbolt.DB, file *os.File, err error) {
	space := addressSpace
	if runtime.GOOS == "windows" {
		space = 0
	}
	if size > addressSpace/2 {
		space = int(2 * size)
	}
	opt := &bbolt.Options{
		ReadOnly: readOnly,
		Timeout:  time.Nanosecond, // one attempt: zero would wait for ever
		// The map takes any run of free pages that is long enough, and so cuts up
		// those that large values need: the file would never stop growing.
		FreelistType: bbolt.FreelistArrayType,
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
			file = f
			return f, err
		},
	}
	for {
		opt.InitialMmapSize = space
		db, err = tryBolt(path, opt)
		switch {
		case err == nil:
			return db, file, nil
		case errors.Is(err, bolterr.ErrTimeout):
			return nil, nil, LockedError{lockHolder(path)}
		case outOfSpace(err) && space > 1<<30:
			space = 1 << 30
		case outOfSpace(err) && space > 0:
			space = 0
		default:
			if file != nil {
				_ = abandon(file) // a panic of bbolt leaves it open; else it is closed already
			}
			return nil, nil, fmt.Errorf("%w: %w", ErrUnusable, err)
		}
	}
}

func tryBolt(path string, opt *bbolt.Options) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged page: %v", r)
		}
	}()
	return bbolt.Open(path, 0o600, opt)
}

// lockFile opens a data file for reading and takes its lock, shared or
// exclusive, without waiting. Closing the file gives the lock up.
func lockFile(path string, exclusive bool) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		_ = f.Close()
		return nil, LockedError{lockHolder(path)}
	case err != nil:
		_ = f.Close()
		return nil, fmt.Errorf("%w: lock: %w", ErrUnusable, err)
	}
	return f, nil
}

// Lock takes the lock of a file that stands for a store which lies elsewhere, without
// waiting: ErrLocked (LockedError) where another process has it. Closing the file
// gives it up.
func Lock(path string, exclusive bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return lockFile(path, exclusive)
}

// abandon closes bbolt's file where bbolt can't any more, after a panic. Its
// mapping stays and would keep the lock alive: that goes first.
func abandon(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// LockedError is ErrLocked, with the process that has the lock where the system
// tells.
type LockedError struct {
	PID int // 0 is unknown
}

func (e LockedError) Error() string {
	if e.PID == 0 {
		return ErrLocked.Error()
	}
	return fmt.Sprintf("%v (pid %d)", ErrLocked, e.PID)
}

func (LockedError) Unwrap() error { return ErrLocked }

// HolderOf is the LockedError of a file as it stands.
func HolderOf(path string) LockedError { return LockedError{lockHolder(path)} }

// lockHolder finds the owner of the file's lock in /proc/locks, whose lines
// read "1: FLOCK ADVISORY WRITE 812 fd:01:4711 0 EOF". 0 when unknown.
func lockHolder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	data, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(st.Ino, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}

// outOfSpace reports that a mapping did not fit the address space.
func outOfSpace(err error) bool { return errors.Is(err, syscall.ENOMEM) }
