package serve

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"swarmdeck/engine/procfs"
)

// ErrSilent is in the chain of what Attach returns when the engine is there
// and does not answer: it is stopped, or its machine is too busy.
var ErrSilent = errors.New("the engine does not answer")

// beginPatience is how long an engine may take to begin a command, and
// stoppedAfter how long one that is stopped has to be continued.
const (
	beginPatience = 30 * time.Second
	stoppedAfter  = 3 * time.Second
)

// How often a screen asks whether the engine is there, and how long it waits.
const (
	askEvery = 5 * time.Second
	askFor   = 10 * time.Second
)

// gone is what an engine did that ended a connection before its time.
func gone(pid int, by time.Time, err error) error {
	if !time.Now().Before(by) || stopped(pid) {
		return silentEngine(pid)
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}

// unbegun is the same of one that was not asked for the command yet.
func unbegun(pid int, by time.Time, err error) error {
	return fmt.Errorf("%w: %w", gone(pid, by, err), ErrUnbegun)
}

// silentEngine names the process at the other end, for who wants to act on it.
func silentEngine(pid int) error {
	if pid == 0 {
		return ErrSilent
	}
	return fmt.Errorf("%w: process %d has the data file and is stopped or too busy; `kill -CONT %d` continues a stopped one", ErrSilent, pid, pid)
}

// stopped says that a process waits to be continued, where the system tells.
func stopped(pid int) bool {
	s, err := procfs.Read(pid)
	return err == nil && s.Stopped()
}

// Owner is the process at the other end of a connection; 0 is unknown.
func Owner(conn net.Conn) (pid int) {
	if c, ok := conn.(*net.UnixConn); ok {
		_ = atSocket(c, func(sock int) (err error) {
			pid, _, err = peerOf(sock)
			return err
		})
	}
	return pid
}

// listen notes whether the engine answers, until done.
func (r *remote) listen(done <-chan struct{}) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		late := time.AfterFunc(askFor, func() { r.silent.Store(true) })
		cut := time.AfterFunc(silence*askFor, func() {
			if r.a.Login != nil { // its machine, or the way there, is away
				_ = r.conn.Close()
			}
		})
		_, _, err := r.client.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()
		cut.Stop()
		if err != nil {
			return
		}
		r.silent.Store(false)
	}
}

// keys sends what is typed. A ctrl+c while the engine is silent is this
// process's own: nobody else will heed it.
type keys struct{ r *remote }

func (k keys) Write(p []byte) (int, error) {
	if k.r.silent.Load() && (bytes.IndexByte(p, 0x03) >= 0 || bytes.Contains(p, []byte("\x1b[99;5"))) {
		k.r.dead.Store(true)
		_ = k.r.conn.Close()
		return 0, ErrSilent
	}
	return k.r.ch.Write(p)
}
