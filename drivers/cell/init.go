package cell

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Word is the first argument by which this program becomes the init of a cell.
const Word = "-cell"

// Entered makes this process a part of a cell, if its command line says that it
// is one, and returns its exit status. It is the first that a program does.
func Entered(args, env []string) (code int, is bool) {
	switch {
	case len(args) < 2:
		return 0, false
	case args[1] == Word:
		return run(args), true
	case args[1] == LimitWord:
		return limited(args[2:], env), true
	}
	return 0, false
}

// run is the life of a cell's init. It makes the cell, starts the command,
// collects what ends in it and does what the engine wants, until nothing of the
// cell is left; then it returns the exit status. Other processes can't look
// into it: it holds no more than its order, but what it does must not be theirs
// to change.
func run(args []string) int {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	// Caught, and so not handed on to the command: signals from within the cell
	// are nothing to this process.
	signal.Notify(make(chan os.Signal, 1))
	i := &initial{over: make(chan struct{}), ended: make(chan struct{}), empty: make(chan struct{}), called: make(chan os.Signal, 1)}
	signal.Notify(i.called, unix.SIGTERM)
	if err := i.begin(args); errors.Is(err, io.EOF) {
		return 0
	} else if err != nil {
		i.fail(err)
		return 1
	}
	go i.obey()
	go i.watch()
	go i.collect()
	<-i.over
	return 0
}

// initial is an init.
type initial struct {
	order order
	page  *page
	blind bool          // /proc shows other processes than the cell's
	main  int           // pid of the command
	over  chan struct{} // closed when nothing is left, or nothing shall be
	once  sync.Once
	ended chan struct{} // closed when it is known how the command ended
	empty chan struct{} // closed when nothing is left
	// called hears of the engine that came back. Others may send the same: it
	// counts only once the engine has gone.
	called chan os.Signal
	keep   *keeper // nil when nothing is kept

	mu     sync.Mutex
	paused bool        // the engine wants it
	orphan bool        // the engine has gone
	silent bool        // the engine does not hold the cell
	still  atomic.Bool // frozen now
}

// fail tells why there is no cell.
func (i *initial) fail(err error) {
	m := message{Kind: saidFailed, Error: err.Error()}
	if len(m.Error) > 1024 {
		m.Error = m.Error[:1024]
	}
	_ = errors.As(err, &m.Errno)
	m.NoWall = errors.As(err, new(noWall))
	_ = send(controlFile, m, -1)
}

func (i *initial) begin(args []string) (err error) {
	if err := unix.CloseRange(controlFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep what is not the command's: %w", err)
	}
	if i.page, err = openPage(); err != nil {
		return err
	}
	run, err := receiveFiles()
	if err != nil {
		return err
	}
	rename(args[2], run)
	if i.order, err = ordered(); err != nil {
		return err
	}
	o := &i.order
	if !o.Spaces {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become subreaper: %w", err)
		}
	}
	if o.Network {
		if err := i.network(); err != nil {
			return noWall{err}
		}
	}
	var missing []string
	if o.Places != nil {
		if o.pins, err = build(o.Places); err != nil {
			return noWall{fmt.Errorf("make the cell's files: %w", err)}
		}
	} else if o.Spaces {
		// Without it the command sees the machine's processes, and can't reach them.
		_ = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		if unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") != nil {
			i.blind, missing = true, append(missing, layerProcfs)
		}
	}
	if err := o.Limits.apply(); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if i.page.left() <= 0 { // the engine's right to the data ended while this was made ready
		return errNotHeld
	}
	type started struct {
		pid     int
		missing []string
		err     error
	}
	out := make(chan started, 1)
	besides(func() { // its thread ends with it: what is taken from it is taken for good
		pid, more, err := o.start()
		out <- started{pid, more, err}
	})
	s := <-out
	if s.err != nil {
		return s.err
	}
	i.main = s.pid
	if o.Keep != nil {
		i.keep = newKeeper(o)
	}
	debug.SetGCPercent(100)
	for fd := range 3 { // they are the command's
		_ = unix.Close(fd)
	}
	err = send(controlFile, message{Kind: saidStarted, PID: s.pid, Missing: append(missing, s.missing...)}, -1)
	if o.Cgroup > 0 {
		go i.leaveGroup()
	}
	// An engine that dies before it has heard of the start never knew of it: the
	// cell ends with the error, unless there may be something to keep.
	if i.keep != nil {
		return nil
	}
	return err
}

// leaveGroup takes this process out of the run's cgroup, which is not to freeze
// it. The kernel takes ten milliseconds over that, which no start waits for.
func (i *initial) leaveGroup() {
	_, _ = unix.Write(i.order.Cgroup, []byte("0"))
	_ = unix.Close(i.order.Cgroup)
	_ = send(controlFile, message{Kind: saidApart}, -1)
}

// besides runs something in another thread than the first of this process. That
// one never ends, and what it may do is what others take the process for: in
// its command's Landlock domain, it would hear the command's signals.
func besides(do func()) {
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Gettid() != unix.Getpid() {
			do()
			return
		}
		done := make(chan struct{})
		go func() { // elsewhere: the first thread is taken
			defer close(done)
			do()
		}()
		<-done
	}()
}

// collect reaps until nothing of the cell is left.
func (i *initial) collect() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			close(i.empty)
			if i.keep == nil || i.keep.taken() {
				i.leave()
			}
			return
		case pid == i.main && (ws.Exited() || ws.Signaled()):
			i.keep.exited(ws)
			close(i.ended)
			_ = send(controlFile, message{Kind: saidExit, Status: ws}, -1)
		}
	}
}

// obey does what the engine wants. When that has gone the cell freezes, and
// ends after the grace.
func (i *initial) obey() {
	for reset := false; ; {
		var w wish
		along, err := receive(controlFile, &w)
		if along >= 0 {
			_ = unix.Close(along)
		}
		if err != nil {
			again := errors.Is(err, unix.ECONNRESET)
			if errors.Is(err, io.EOF) || again && reset {
				break
			}
			// Told before what the engine had said, once, when it left something unread.
			reset = reset || again
			continue
		}
		switch w.Kind {
		case wishGroup:
			_ = unix.Kill(-i.main, w.Signal)
		case wishAll:
			i.signal(w.Signal)
			i.keep.release()
		case wishPause:
			i.set(func() { i.paused = true }, saidPaused)
		case wishResume:
			i.set(func() { i.paused = false }, saidResumed)
		case wishServe:
			i.keep.serves(w.Task, w.On)
		case wishEnd:
			i.end()
		}
	}
	i.outlive()
}

// outlive is the rest of a cell's life once its engine has gone: it keeps what
// there is to keep, at once and again at its end.
func (i *initial) outlive() {
	select { // whoever it was that called
	case <-i.called:
	default:
	}
	i.set(func() { i.orphan = true }, "")
	i.keep.write("")
	how := EndedGrace
	select {
	case <-i.empty:
		how = ""
	case <-i.called:
		how = EndedByReturn
	case <-time.After(i.order.Grace):
	}
	if i.hasEnded() {
		<-i.ended
	}
	i.keep.write(how)
	i.end()
}

// hasEnded reports whether the command has ended, known or not.
func (i *initial) hasEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, i.main, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD) || err == nil && info.Signo != 0
}

// watch freezes the cell while the engine does not hold it.
func (i *initial) watch() {
	for {
		left := i.page.left()
		silent := left <= 0
		i.mu.Lock()
		changed := silent != i.silent
		i.mu.Unlock()
		if changed {
			i.set(func() { i.silent = silent }, "")
		}
		if silent {
			left = lookEvery / 10
		}
		time.Sleep(min(max(left, time.Millisecond), lookEvery))
	}
}

// end kills the cell. Of a name space the kernel kills the rest when its first
// process leaves.
func (i *initial) end() {
	for !i.order.Spaces && len(descendants(os.Getpid())) > 0 {
		i.signal(unix.SIGKILL)
		time.Sleep(time.Millisecond)
	}
	i.leave()
}

func (i *initial) leave() { i.once.Do(func() { close(i.over) }) }
