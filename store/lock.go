package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

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
