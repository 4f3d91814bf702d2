package emulator

import (
	"fmt"

	"swarmdeck/engine/terminal"
)

// modes are how a terminal works, as its program sets it.
type modes struct {
	wrap    bool // goes on in the next line behind the last column
	insert  bool // characters push what is behind them
	newline bool // a line feed returns as well
	hidden  bool // the cursor
	appKeys bool // arrows are told the other way
	pasting bool // a paste is to be told as one
	mouse   mouse
	sgr     bool // the mouse is told in numbers
}

// mouse is what of it a program asks for, each with all before it.
type mouse uint8

const (
	noMouse mouse = iota
	mousePresses
	mouseButtons // releases too
	mouseDrags
	mouseMoves
)

// pointed is what a program hears of the mouse, "" of what it did not ask for.
func (m *modes) pointed(in *terminal.Mouse) string {
	code := map[terminal.MouseButton]int{terminal.MouseMiddle: 1, terminal.MouseRight: 2, terminal.WheelUp: 64, terminal.WheelDown: 65}[in.Button]
	least := mousePresses
	switch in.Act {
	case terminal.MouseRelease:
		least = mouseButtons
	case terminal.MouseDrag:
		least, code = mouseDrags, code+32
	}
	if m.mouse < least {
		return ""
	}
	for bit, on := range map[int]bool{4: in.Shift, 8: in.Alt, 16: in.Ctrl} {
		if on && m.mouse > mousePresses {
			code += bit
		}
	}
	if m.sgr {
		final := 'M'
		if in.Act == terminal.MouseRelease {
			final = 'm'
		}
		return fmt.Sprintf("\x1b[<%d;%d;%d%c", code, in.X+1, in.Y+1, final)
	}
	if in.Act == terminal.MouseRelease {
		code |= 3 // which button it was can't be told
	}
	if in.X > 222 || in.Y > 222 {
		return "" // nor can places further off
	}
	return "\x1b[M" + string([]byte{byte(32 + code), byte(33 + in.X), byte(33 + in.Y)})
}

// Numbers of private modes.
const (
	modeAppKeys     = 1
	modeOrigin      = 6
	modeWrap        = 7
	modePresses     = 9
	modeCursor      = 25
	modeFull        = 47
	modeButtons     = 1000
	modeDrags       = 1002
	modeMoves       = 1003
	modeSGR         = 1006
	modeFullToo     = 1047
	modeSave        = 1048
	modeFullAndSave = 1049
	modePasting     = 2004
)

func usualModes() modes { return modes{wrap: true} }

// flag is a mode that is on or off and no more.
func (e *Emulator) flag(n int) *bool {
	switch n {
	case modeAppKeys:
		return &e.appKeys
	case modeWrap:
		return &e.wrap
	case modeSGR:
		return &e.sgr
	case modePasting:
		return &e.pasting
	}
	return nil
}

// mode sets a private mode.
func (e *Emulator) mode(n int, on bool) {
	if f := e.flag(n); f != nil {
		*f = on
		e.cur.over = e.cur.over && e.wrap
		return
	}
	switch n {
	case modeCursor:
		e.hidden = !on
	case modeOrigin:
		e.cur.origin = on
		e.goTo(0, 0)
	case modePresses, modeButtons, modeDrags, modeMoves:
		if e.mouse = noMouse; on {
			e.mouse = mouseOf(n)
		}
	case modeSave:
		if on {
			e.grid().saved = e.cur
		} else {
			e.restore(e.grid())
		}
	case modeFullAndSave:
		switch {
		case on && !e.inFull:
			e.main.saved = e.cur
			e.fill(true)
		case !on && e.inFull:
			e.fill(false)
			e.restore(e.main)
		}
	case modeFull, modeFullToo:
		e.fill(on)
	}
}

func mouseOf(n int) mouse {
	switch n {
	case modePresses:
		return mousePresses
	case modeButtons:
		return mouseButtons
	case modeDrags:
		return mouseDrags
	}
	return mouseMoves
}

// modeIs is what is answered to who asks for a private mode: 1 set, 2 not set, 0
// not known.
func (e *Emulator) modeIs(n int) int {
	on := false
	switch f := e.flag(n); {
	case f != nil:
		on = *f
	case n == modeCursor:
		on = !e.hidden
	case n == modeOrigin:
		on = e.cur.origin
	case n == modeFull, n == modeFullToo, n == modeFullAndSave:
		on = e.inFull
	case n == modePresses, n == modeButtons, n == modeDrags, n == modeMoves:
		on = e.mouse == mouseOf(n)
	default:
		return 0
	}
	if on {
		return 1
	}
	return 2
}

// soften puts back what a program that ended in the midst of its work left set.
func (e *Emulator) soften() {
	g := e.grid()
	e.insert, e.hidden, e.wrap, e.appKeys = false, false, true, false
	g.top, g.bottom, g.saved = 0, g.rows-1, cursor{}
	e.cur = cursor{x: e.cur.x, y: e.cur.y}
}

// fill gives a program the screen to itself, empty, or ends that.
func (e *Emulator) fill(on bool) {
	if on == e.inFull {
		return
	}
	if e.inFull = on; on {
		e.full = newGrid(e.size, nil)
	} else {
		e.full = nil
	}
	e.cur.over = false
}
