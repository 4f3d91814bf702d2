package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/cancelreader"
	gossh "golang.org/x/crypto/ssh"
	xterm "golang.org/x/term"

	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// screen is the terminal that a client shows a cockpit on.
type screen interface {
	// name is its kind, as in TERM.
	name() string
	size() (term.Size, error)
	// take has what is typed there go to the other end, until giveBack.
	take() error
	giveBack()
	// resized gives new sizes until done.
	resized(done <-chan struct{}) <-chan term.Size
	// suspend stops who shows it until they go on; false is that they can't. The size
	// is that of then, zero when resized tells it.
	suspend() (term.Size, bool)
	// await returns when it has taken enough of what was written, or at done.
	await(done <-chan struct{})
}

// ownScreen is this process's.
type ownScreen struct {
	file *os.File

	mu    sync.Mutex
	saved *xterm.State // while it is raw
	keys  cancelreader.CancelReader
	lent  sync.Mutex // held while a program has it
}

func (*ownScreen) name() string { return os.Getenv("TERM") }

func (o *ownScreen) size() (term.Size, error) {
	w, h, err := xterm.GetSize(int(o.file.Fd()))
	return term.Size{Width: w, Height: h}, err
}

func (o *ownScreen) take() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	saved, err := xterm.MakeRaw(int(o.file.Fd()))
	if err != nil {
		return fmt.Errorf("take over the terminal: %w", err)
	}
	o.saved = saved
	return nil
}

func (o *ownScreen) giveBack() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.saved != nil {
		_ = xterm.Restore(int(o.file.Fd()), o.saved)
		o.saved = nil
	}
}

func (o *ownScreen) resized(done <-chan struct{}) <-chan term.Size {
	told, sizes := make(chan os.Signal, 1), make(chan term.Size)
	signal.Notify(told, syscall.SIGWINCH)
	go func() {
		defer signal.Stop(told)
		for {
			select {
			case <-told:
			case <-done:
				return
			}
			if size, err := o.size(); err == nil {
				select {
				case sizes <- size:
				case <-done:
					return
				}
			}
		}
	}()
	return sizes
}

// suspend stops this process as ctrl+z stops a local program, and goes on when
// the shell says so.
func (o *ownScreen) suspend() (term.Size, bool) {
	o.giveBack()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-again:
	case <-time.After(stopPatience): // nobody is there to go on with it: the system does not stop it
	}
	signal.Stop(again)
	if o.take() != nil {
		return term.Size{}, false
	}
	size, err := o.size()
	return size, err == nil
}

// Read is what is typed, but for a program that has the terminal.
func (o *ownScreen) Read(p []byte) (int, error) {
	for {
		keys, err := o.typed()
		if err != nil {
			return 0, err
		}
		n, err := keys.Read(p)
		if !errors.Is(err, cancelreader.ErrCanceled) {
			return n, err
		}
		_ = keys.Close()
	}
}

// typed waits until no program has the terminal.
func (o *ownScreen) typed() (_ io.ReadCloser, err error) {
	o.lent.Lock()
	defer o.lent.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys == nil {
		if o.keys, err = cancelreader.NewReader(o.file); err != nil {
			return nil, fmt.Errorf("read the terminal: %w", err)
		}
	}
	return o.keys, nil
}

// lend gives the terminal to a program until that ends.
func (o *ownScreen) lend(run func() error) error {
	o.lent.Lock()
	defer o.lent.Unlock()
	o.mu.Lock()
	if o.keys != nil {
		o.keys.Cancel()
		o.keys = nil
	}
	o.mu.Unlock()
	o.giveBack()
	return errors.Join(run(), o.take())
}

// await returns at once: a terminal has taken what was written to it.
func (*ownScreen) await(<-chan struct{}) {}

// passedScreen is that of a session which another engine carries out.
type passedScreen struct {
	*term.Remote
	kind string
}

func (p passedScreen) name() string                             { return p.kind }
func (p passedScreen) size() (term.Size, error)                 { return p.Size, nil }
func (passedScreen) take() error                                { return nil }
func (passedScreen) giveBack()                                  {}
func (p passedScreen) resized(<-chan struct{}) <-chan term.Size { return p.Resized }

func (p passedScreen) suspend() (term.Size, bool) {
	if p.Suspend == nil {
		return term.Size{}, false
	}
	p.Suspend()
	return term.Size{}, true
}

func (p passedScreen) await(done <-chan struct{}) {
	for p.Full != nil && p.Full() {
		select {
		case <-p.Drained:
		case <-done:
			return
		}
	}
}

var _, _ screen = (*ownScreen)(nil), passedScreen{}

// sigContinue tells the other end that a suspended client goes on.
const sigContinue = "CONT"

// stopPatience is how long a stop may take to come into effect.
const stopPatience = 300 * time.Millisecond

// suspend stops the client until it goes on, and tells the other end then.
func (r *remote) suspend() {
	if r.a.screen == nil {
		return
	}
	size, ok := r.a.screen.suspend()
	if !ok {
		return
	}
	if size.Width > 0 {
		r.resize(size)
	}
	_, _ = r.ch.SendRequest("signal", false, gossh.Marshal(struct{ Name string }{sigContinue}))
}

// lend gives the terminal to a program that the engine names: one of this user's, as the
// engine is. It reports whether that ended well.
func (r *remote) lend(payload []byte) bool {
	own, is := r.a.screen.(*ownScreen)
	var argv []string
	if !is || r.a.Lend == nil || r.a.Login != nil || core.Decode(payload, &argv) != nil || len(argv) == 0 {
		return false
	}
	err := own.lend(func() error { return r.a.Lend(argv) })
	if size, bad := own.size(); bad == nil {
		r.resize(size)
	}
	return err == nil
}

// Passing passes what a cockpit elsewhere writes on to a terminal.
type Passing struct {
	To io.Writer
	// Any says that there was something.
	Any bool
	// Screen says that the cockpit has taken the terminal over.
	Screen bool
}

func (p *Passing) Write(b []byte) (int, error) {
	p.Any = p.Any || len(b) > 0
	p.Screen = p.Screen || bytes.Contains(b, []byte(ansi.SetModeAltScreenSaveCursor))
	return p.To.Write(b)
}

// GiveBack undoes what a cockpit sets on a terminal, which one that went away
// did not: keyboard protocols, paste, focus, mouse and colour reports, the
// hidden cursor, the alternate screen.
func (p *Passing) GiveBack() {
	if !p.Screen {
		return
	}
	_, _ = io.WriteString(p.To, ansi.KittyKeyboard(0, 1)+ansi.ResetModifyOtherKeys+
		ansi.ResetModeBracketedPaste+ansi.ResetModeFocusEvent+ansi.ResetModeMouseButtonEvent+ansi.ResetModeMouseAnyEvent+
		ansi.ResetModeMouseExtSgr+ansi.ResetModeLightDark+ansi.ResetModeSynchronizedOutput+
		ansi.SetModeTextCursorEnable+ansi.ResetModeAltScreenSaveCursor)
}
