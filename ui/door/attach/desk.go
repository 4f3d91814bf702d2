package attach

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"swarmdeck/ui/serve"
)

// desk is the terminal of who sits here. Ssh has one of its own behind it, so that
// this program can put a question of its own in front of what the other machine
// shows, and have the answer for itself.
type desk struct {
	in  *os.File
	own bool // ssh has a terminal of its own, and read runs

	show sync.Mutex // held for each piece of output, and while a question is asked
	out  serve.Passing

	mu   sync.Mutex
	keys io.Writer // takes what is typed; nil drops it
}

// read passes on what is typed, until the process ends.
func (d *desk) read() {
	buf := make([]byte, 4<<10)
	for {
		n, err := d.in.Read(buf)
		if err != nil {
			return
		}
		d.mu.Lock()
		to := d.keys
		d.mu.Unlock()
		if to != nil {
			_, _ = to.Write(buf[:n])
		}
	}
}

// Write shows a piece of what the other machine shows.
func (d *desk) Write(p []byte) (int, error) {
	d.show.Lock()
	defer d.show.Unlock()
	return d.out.Write(p)
}

// say shows text that is not the other machine's. The caller holds show.
func (d *desk) say(text []byte) { _, _ = d.out.To.Write(text) }

// give hands what is typed to another, and returns who had it before.
func (d *desk) give(to io.Writer) (before io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, d.keys = d.keys, to
	return before
}

// run runs ssh until it ends, and says whether the other machine showed anything.
func (d *desk) run(ssh *exec.Cmd) (shown bool, err error) {
	d.show.Lock()
	d.out = serve.Passing{To: d.out.To}
	d.show.Unlock()
	ssh.Stdin, ssh.Stdout = d.in, d
	if d.own {
		err = d.behind(ssh)
	} else {
		err = ssh.Run()
	}
	d.show.Lock()
	defer d.show.Unlock()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		d.out.GiveBack() // ssh restores the line, not the screen
	}
	return d.out.Any, err
}

// behind runs ssh with a terminal of its own as its standard input, of this one's size.
func (d *desk) behind(ssh *exec.Cmd) error {
	own, theirs, err := pty.Open()
	if err != nil {
		return fmt.Errorf("make a terminal for ssh: %w", err)
	}
	defer own.Close()
	size := func() { _ = pty.InheritSize(d.in, own) } // a terminal that tells none keeps the old one
	size()
	cooked, err := term.MakeRaw(int(d.in.Fd()))
	if err != nil {
		return fmt.Errorf("take over the terminal: %w", err)
	}
	defer term.Restore(int(d.in.Fd()), cooked) //nolint:errcheck // nothing else can be done
	ssh.Stdin, ssh.SysProcAttr = theirs, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = ssh.Start()
	_ = theirs.Close()
	if err != nil {
		return err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	var sizing sync.WaitGroup
	defer func() {
		signal.Stop(resized)
		close(resized)
		sizing.Wait()
	}()
	sizing.Go(func() {
		for range resized {
			size()
		}
	})
	go func() { _, _ = io.Copy(asked{d}, own) }() // ends when own is closed
	d.give(own)
	defer d.give(nil)
	return ssh.Wait()
}

// asked takes what ssh itself asks at its terminal: a password, a host key.
type asked struct{ *desk }

func (a asked) Write(p []byte) (int, error) {
	a.show.Lock()
	defer a.show.Unlock()
	a.say(p)
	return len(p), nil
}
