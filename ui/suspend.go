package ui

import (
	"io"

	tea "charm.land/bubbletea/v2"
)

// suspend stops an attached cockpit as a shell's job control does, until it is
// told to go on. One that has the engine goes on: agents, leases and everybody
// attached would stand still with it.
func (d *dialog) suspend() tea.Cmd {
	switch {
	case d.opt.Terminal == nil:
		return d.say(true, "", "the engine runs in this cockpit and would stop with it; one that is attached can be suspended")
	case d.opt.Terminal.Suspend == nil:
		return d.say(true, "", "this screen can't be suspended from here")
	}
	return d.away(func() error {
		d.opt.Terminal.Suspend()
		return nil
	}, func(error) tea.Msg { return tea.ResumeMsg{} })
}

// lend gives the screen up for a program of whoever looks.
func (d *dialog) lend(argv []string, then func(error) tea.Msg) tea.Cmd {
	return d.away(func() error { return d.opt.Lend(argv) }, then)
}

// lendTo is lend for a line of a shell about a file. An interrupt is the program's, not
// the shell's.
func (d *dialog) lendTo(line, path string, then func(error) tea.Msg) tea.Cmd {
	return d.lend([]string{"sh", "-c", "trap : INT; " + line, "sh", path}, then)
}

// away gives the screen up while something runs; what is typed meanwhile is not the
// cockpit's.
func (d *dialog) away(run func() error, then func(error) tea.Msg) tea.Cmd {
	if t := d.opt.Terminal; t != nil && t.Hold != nil {
		t.Hold()
	}
	return func() tea.Msg { return awayMsg{run, then} }
}

// awayMsg has the screen given up while it runs.
type awayMsg struct {
	absence
	then func(error) tea.Msg
}

// absence is what runs while the screen is given up.
type absence func() error

func (a absence) Run() error { return a() }

func (absence) SetStdin(io.Reader)  {}
func (absence) SetStdout(io.Writer) {}
func (absence) SetStderr(io.Writer) {}
