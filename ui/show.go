package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
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
	p := tea.NewProgram(rest.of(m), program...)
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
