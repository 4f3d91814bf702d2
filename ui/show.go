package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/ui/term"
)

// The terminal keeps its title, and has it back.
const (
	pushTitle = "\x1b[22;0t"
	popTitle  = "\x1b[23;0t"
)

// Show runs the cockpit on a terminal until the operator leaves or ctx ends.
// The terminal is restored whatever happens; a panic inside comes back as an
// error. Signals are the caller's: it cancels ctx.
func Show(ctx context.Context, opt Options, caps term.Caps, in io.Reader, out io.Writer) error {
	if caps.Plain {
		return fmt.Errorf("the cockpit needs a terminal: %s", caps.Why)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opt.Context = ctx
	opt.ASCII = opt.ASCII || caps.ASCII
	opt.Links = opt.Links || caps.Links
	opt.Sync = opt.Sync || caps.Sync
	if opt.Frame == 0 && caps.SSH { // a link
		opt.Frame = 100 * time.Millisecond
	}
	tty, local := out.(*os.File)
	if caps.Basic {
		out = term.NewBasic(out, caps.Term)
	} else { // the toolkit leaves an empty title behind
		_, _ = io.WriteString(out, pushTitle)
		defer func(to io.Writer) { _, _ = io.WriteString(to, popTitle) }(out)
	}
	rest := newRest(out)
	out = rest
	if local {
		e := &firstFrame{tty: tty, to: out, profile: caps.Color}
		defer e.leave()
		opt.First, out = e.paint, e
	}
	if opt.Terminal != nil {
		remote := newInput(in)
		defer remote.end()
		opt.Terminal, in = remote.of(opt.Terminal), remote
		opt.Lend = opt.Terminal.Run
	}
	program := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithColorProfile(caps.Color), tea.WithoutSignalHandler(),
		tea.WithFilter(rest.filter),
	}
	if t := opt.Terminal; t != nil {
		// The environment of this process is not that of the screen.
		program = append(program, tea.WithWindowSize(t.Width, t.Height), tea.WithEnvironment([]string{"TERM=" + caps.Term, "TERM_PROGRAM=" + caps.Program}))
	}
	m := New(opt)
	defer m.depart()
	p := tea.NewProgram(resting{m, rest}, program...)
	rest.begin(p)
	defer rest.end()
	defer context.AfterFunc(ctx, rest.end)()
	if opt.Terminal != nil {
		go follow(ctx, p, opt.Terminal)
	}
	_, err := p.Run()
	if m.toldGround {
		_, _ = io.WriteString(out, ansi.ResetModeLightDark)
	}
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the cockpit failed: %w", err)
	case ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled):
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("run the cockpit: %w", err)
	}
	return nil
}

// follow tells a program the sizes of a terminal that it can't ask, and when it
// has caught up.
func follow(ctx context.Context, p *tea.Program, t *term.Remote) {
	for {
		select {
		case s := <-t.Resized:
			p.Send(tea.WindowSizeMsg{Width: s.Width, Height: s.Height})
		case <-t.Drained:
			p.Send(drainedMsg{})
		case <-ctx.Done():
			return
		}
	}
}

// firstFrame is a terminal that shows the first frame as soon as there is one. The
// toolkit writes at the ticks of its clock only, the first of which comes 17
// ms after its start. It then draws that frame itself, on the alternate screen
// and from a cleared one, so it need not know. That screen is entered once: at a
// second time some terminals save the cursor of the first frame as that of the shell.
type firstFrame struct {
	tty     *os.File
	to      io.Writer // the same, by way of what it understands
	profile colorprofile.Profile

	mu      sync.Mutex
	begun   bool // the toolkit has written: from here on the screen is its own
	entered bool // and on the alternate screen
	painted bool
}

// paint shows a frame unless the toolkit has begun to. A failure is left to
// the toolkit, which writes to the same terminal next.
func (e *firstFrame) paint(frame string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun || e.painted {
		return
	}
	e.painted = true
	var out bytes.Buffer
	out.WriteString(ansi.SetModeAltScreenSaveCursor + ansi.ResetModeTextCursorEnable + ansi.CursorHomePosition + ansi.EraseEntireScreen)
	w := colorprofile.Writer{Forward: &out, Profile: e.profile}
	_, _ = w.WriteString(strings.ReplaceAll(frame, "\n", "\r\n"))
	_, _ = e.to.Write(out.Bytes())
}

// leave takes the frame away when the toolkit ended before it drew one: it
// then leaves no alternate screen.
func (e *firstFrame) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.painted && !e.entered {
		_, _ = io.WriteString(e.to, ansi.ResetModeAltScreenSaveCursor+ansi.SetModeTextCursorEnable)
	}
}

// Write is the toolkit's.
func (e *firstFrame) Write(p []byte) (int, error) {
	e.mu.Lock()
	e.begun = true
	shown := p
	if enter := []byte(ansi.SetModeAltScreenSaveCursor); !e.entered && bytes.Contains(p, enter) {
		e.entered = true
		if e.painted {
			shown = bytes.Replace(p, enter, nil, 1)
		}
	}
	e.mu.Unlock()
	if _, err := e.to.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Read, Close and Fd let the toolkit see that this is a terminal.
func (e *firstFrame) Read(p []byte) (int, error) { return e.tty.Read(p) }
func (e *firstFrame) Close() error               { return e.tty.Close() }
func (e *firstFrame) Fd() uintptr                { return e.tty.Fd() }
