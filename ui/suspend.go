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
	if d.opt.Terminal.Hold != nil {
		d.opt.Terminal.Hold()
	}
	return tea.Exec(suspension(d.opt.Terminal.Suspend), func(error) tea.Msg { return tea.ResumeMsg{} })
}

// suspension gives the screen up for as long as the program at its other end
// is stopped.
type suspension func()

func (s suspension) Run() error {
	s()
	return nil
}

func (suspension) SetStdin(io.Reader)  {}
func (suspension) SetStdout(io.Writer) {}
func (suspension) SetStderr(io.Writer) {}
