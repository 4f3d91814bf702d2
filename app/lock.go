//go:build linux

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/procfs"
	"swarmdeck/store"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/serve"
)

// LockPatience is how long a command waits for a data file that one other process
// has and does not listen for; AlonePatience, how long one does that is to be
// the engine itself. Each time that another has it, a command waits as long again:
// those before it take their turns.
const (
	LockPatience  = 2 * time.Second
	AlonePatience = 10 * time.Second
)

const lockPoll = 20 * time.Millisecond

// openStore opens the data file, or the database. One that another process has is worked on
// there when that process listens. Short commands don't, and take turns: one
// that finds the file locked waits a while for the other to end.
func (p *machine) openStore(ctx context.Context, need command.Need, open func() (store.Store, error)) (store.Store, error) {
	patience, told := LockPatience, false
	if need.Alone {
		patience = AlonePatience
	}
	last := 0 // process that had it
	for end := time.Now().Add(patience); ; {
		db, err := open()
		if err == nil {
			return db, nil
		}
		if !errors.Is(err, store.ErrLocked) {
			return nil, err
		}
		if by := new(store.LockedError); errors.As(err, by) && by.PID > 0 && by.PID != last {
			last, end = by.PID, time.Now().Add(patience)
		}
		conn, unheard := socket.Dial(ctx, need.Data)
		var has holder
		if need.Alone { // no other command pays for the look
			has = holderOf(err, conn)
		}
		switch {
		case unheard == nil && (!need.Alone || has.stays()): // which knows who may be told that it has the file
			if p.conn != nil {
				_ = p.conn.Close()
			}
			p.conn, p.login = conn, nil
			return nil, &command.ExitError{Code: command.ExitElsewhere}
		case unheard == nil:
			_ = conn.Close()
		case need.NoWait:
			return nil, err
		}
		if errors.As(err, new(store.LockedError)) && need.Alone {
			err = has.has(need.Data)
			if !told {
				told = true
				p.warn(fmt.Errorf("%w; waiting up to %s for it to end", err, patience))
			}
		}
		if time.Now().After(end) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), store.ErrLocked)
		case <-time.After(lockPoll):
		}
	}
}

// holder is the process that has a data file, as far as the system tells.
type holder struct {
	pid     int
	engine  bool      // it listens
	command string    // that it carries out, without its arguments; "" is the cockpit
	since   time.Time // it was started
}

// holderOf tells who has a data file from the failure to lock it and the
// connection to an engine; nil is none.
func holderOf(locked error, conn net.Conn) holder {
	pid := 0
	var by store.LockedError
	if errors.As(locked, &by) {
		pid = by.PID
	}
	if conn == nil {
		return holderBy(pid, false)
	}
	return holderBy(cmp.Or(max(serve.Owner(conn), 0), pid), true)
}

// holderBy is a process as one that has a data file; an engine listens.
func holderBy(pid int, engine bool) holder {
	h := holder{pid: pid, engine: engine, since: startOf(pid)}
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		h.command = command.Describe(words[1:]).Path
	}
	return h
}

// stays says whether it is an engine that goes on until somebody ends it.
func (h holder) stays() bool {
	return h.engine && (h.command == "" || h.command == "serve" || h.command == "mcp")
}

// has says that it has a data file.
func (h holder) has(data string) error {
	who := "a process"
	if h.engine {
		who = "engine"
	}
	if h.pid > 0 {
		who += " pid " + strconv.Itoa(h.pid)
		if h.command != "" {
			who += " (swarmdeck " + h.command + ")"
		} else if h.engine {
			who += " (the cockpit)"
		}
	}
	if !h.since.IsZero() {
		data += fmt.Sprintf(" since %s", h.since.Format(time.RFC3339))
	}
	return &command.ExitError{Code: command.ExitStore, Err: core.Errorf(core.Unavailable, "%s has %s", who, data).With("pid", h.pid)}
}

// startOf is when a process was started; zero is unknown. The system counts it
// in hundredths of a second since it started itself.
func startOf(pid int) time.Time {
	stat, err := procfs.Read(pid)
	if err != nil {
		return time.Time{}
	}
	all, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	_, boot, _ := strings.Cut(string(all), "\nbtime ")
	boot, _, _ = strings.Cut(boot, "\n")
	began, err := strconv.ParseInt(boot, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(began, 0).Add(time.Duration(stat.Start) * 10 * time.Millisecond).UTC()
}
