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

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/procfs"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/serve"
)

// LockPatience is how long a command waits for a data file that others have and do not
// listen for: short commands before it, or an engine that opens, hands over or ends. After
// tellAfter it says so.
const (
	LockPatience = 30 * time.Second
	tellAfter    = time.Second
	lockPoll     = 20 * time.Millisecond
)

// openStore opens the data file, or the database. One that another process has is worked on
// there when that process listens. Short commands don't, and take turns with others and
// with who is to be the engine: one that finds the file locked waits to be the next.
func (p *machine) openStore(ctx context.Context, need command.Need, open func() (store.Store, error)) (store.Store, error) {
	file, name := need.Data, "open data file "+need.Data
	if db := command.DatabaseIn(need.Data); db != "" {
		file, name = need.Data+".run/lock", "database "+postgres.NameOf(db)
	}
	next, told := func() {}, need.NoWait
	defer func() { next() }()
	mine := need.NoWait
	for began := time.Now(); ; {
		if !mine {
			next, mine = turnAt(file)
		}
		if mine {
			if db, err := open(); err == nil || !errors.Is(err, store.ErrLocked) {
				return db, err
			}
		}
		locked := store.HolderOf(file)
		conn, unheard := socket.Dial(ctx, need.Data)
		switch {
		case unheard == nil && (!need.Alone || holderOf(locked, conn).stays()): // which knows who may be told that it has the file
			if p.conn != nil {
				_ = p.conn.Close()
			}
			p.conn, p.login = conn, nil
			return nil, &command.ExitError{Code: command.ExitElsewhere}
		case unheard == nil:
			_ = conn.Close()
		case need.NoWait:
			return nil, fmt.Errorf("%s: %w", name, locked)
		}
		waited := time.Since(began)
		if waited >= tellAfter && !told {
			told = true
			if need.Alone || p.seen {
				p.warn(fmt.Errorf("%w; waiting up to %s for it to end", holderOf(locked, nil).has(need.Data), LockPatience))
			}
		}
		if waited >= LockPatience {
			if need.Alone {
				return nil, holderOf(locked, nil).has(need.Data)
			}
			return nil, fmt.Errorf("%s: %w", name, locked)
		}
		if core.Within(ctx.Done(), lockPoll) {
			return nil, fmt.Errorf("%w: %w", ctx.Err(), store.ErrLocked)
		}
	}
}

// turnAt makes this process the next to open a file, until end is called; it is not mine
// while another process is. Who can't write to the file, or finds none, waits for nobody.
func turnAt(path string) (end func(), mine bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return func() {}, true
	}
	// A lock apart from that of the file's owner, on a byte that it does not reach.
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: 1 << 62, Len: 1})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		_ = f.Close()
		return func() {}, false
	}
	return func() { _ = f.Close() }, true
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
