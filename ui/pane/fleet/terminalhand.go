package fleet

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/loop"
	"swarmdeck/engine/terminal"
	"swarmdeck/ui/pane"
)

// Typing implements pane.Hand. What is typed at a terminal is never a key of the
// cockpit, whoever has the keyboard, until it is let go of.
func (p *Terminal) Typing() (scope string, on bool) {
	if p.typing || p.lost {
		return "terminal-typing", true
	}
	return TerminalName, !p.free && p.err == nil && !p.Item().Empty()
}

func (p *Terminal) Secret() bool { return p.pic != nil && p.pic.Unseen }

func (p *Terminal) Press(_ pane.Env, k tea.KeyPressMsg) tea.Cmd {
	in := terminal.Input{Key: k.String()}
	if k.Text != "" && k.Mod&^tea.ModShift == 0 {
		in = terminal.Input{Text: k.Text}
	}
	return p.put(in)
}

func (p *Terminal) Paste(_ pane.Env, text string) tea.Cmd { return p.put(terminal.Input{Paste: text}) }

// maxQueue bounds what is typed while the engine takes nothing.
const maxQueue = 1000

func (p *Terminal) put(in ...terminal.Input) tea.Cmd {
	if !p.typing {
		return pane.Say(writer(p.desk)+" has the keyboard: what you type goes nowhere", false)
	}
	if len(p.queue) >= maxQueue {
		return pane.Say("too much was typed ahead: the rest is lost", true)
	}
	p.queue = append(p.queue, in...)
	p.typed = time.Now()
	loop.Ring(p.hurry)
	return tea.Batch(p.scroll(-p.back), p.send()) // who types sees what comes of it
}

// send hands on what was typed, together what came together.
func (p *Terminal) send() tea.Cmd {
	if p.under || len(p.queue) == 0 {
		return nil
	}
	in, seat, sitting := slices.Clone(p.queue), p.seat, p.sitting
	p.queue, p.under = nil, true
	return pane.Ask(TerminalName, func(ctx context.Context) any {
		return came{sitting: sitting, typed: true, err: seat.Type(ctx, in)}
	})
}

// wheelLines are what one turn of the wheel scrolls by.
const wheelLines = 3

// Mouse implements pane.Pointed. A program that asked for the mouse has it while its
// operator types; else the wheel scrolls, which for a program that has the screen to
// itself are arrows.
func (p *Terminal) Mouse(_ pane.Env, msg tea.MouseMsg, x, y int) tea.Cmd {
	if p.pic == nil {
		return nil
	}
	if p.pic.Mouse && p.typing {
		in, ok := pointed(msg)
		if !ok {
			return nil
		}
		in.X, in.Y = x, y+top(p.h, p.pic)
		return p.put(terminal.Input{Mouse: &in})
	}
	by, arrow := wheelLines, "up"
	switch wheel, is := msg.(tea.MouseWheelMsg); {
	case !is:
		return nil
	case wheel.Button == tea.MouseWheelDown:
		by, arrow = -wheelLines, "down"
	case wheel.Button != tea.MouseWheelUp:
		return nil
	}
	if p.pic.Full && p.typing {
		return p.put(slices.Repeat([]terminal.Input{{Key: arrow}}, wheelLines)...)
	}
	return p.scroll(by)
}

// pointed is what the mouse did, for the program.
func pointed(msg tea.MouseMsg) (in terminal.Mouse, ok bool) {
	m := msg.Mouse()
	in = terminal.Mouse{Shift: m.Mod.Contains(tea.ModShift), Alt: m.Mod.Contains(tea.ModAlt), Ctrl: m.Mod.Contains(tea.ModCtrl)}
	switch msg.(type) {
	case tea.MouseClickMsg, tea.MouseWheelMsg:
		in.Act = terminal.MousePress
	case tea.MouseReleaseMsg:
		in.Act = terminal.MouseRelease
	case tea.MouseMotionMsg:
		in.Act = terminal.MouseDrag
	}
	switch m.Button {
	case tea.MouseLeft:
		in.Button = terminal.MouseLeft
	case tea.MouseMiddle:
		in.Button = terminal.MouseMiddle
	case tea.MouseRight:
		in.Button = terminal.MouseRight
	case tea.MouseWheelUp:
		in.Button = terminal.WheelUp
	case tea.MouseWheelDown:
		in.Button = terminal.WheelDown
	default:
		return in, false
	}
	return in, true
}

// scroll moves the picture up by lines.
func (p *Terminal) scroll(lines int) tea.Cmd {
	if p.seat == nil || p.pic == nil || lines == 0 {
		return nil
	}
	p.back = min(max(p.back+lines, 0), p.pic.Above)
	seat, sitting, back := p.seat, p.sitting, p.back
	p.waiting = false // it waits with what is scrolled to
	p.moves++         // and no picture of before moves it back
	moves := p.moves
	return pane.Ask(TerminalName, func(context.Context) any {
		pic, err := seat.Screen(0, back)
		return seen{sitting: sitting, moves: moves, pic: pic, desk: seat.Desk(), err: err}
	})
}
