package emulator

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
)

// modes are how a terminal works, as its program sets it.
type modes struct {
	wrap    bool // goes on in the next line behind the last column
	insert  bool // characters push what is behind them
	newline bool // a line feed returns as well
	shown   bool // the cursor
	appKeys bool // arrows are told the other way
	pasting bool // a paste is to be told as one
	mouse   int  // the mode that asks for it, a higher one for more of it; 0 for none
	sgr     bool // the mouse is told in numbers
}

// Numbers of private modes.
const (
	modeAppKeys     = 1
	modeOrigin      = 6
	modeWrap        = 7
	modePresses     = 9
	modeCursor      = 25
	modeFull        = 47
	modeButtons     = 1000 // releases too
	modeDrags       = 1002
	modeMoves       = 1003
	modeSGR         = 1006
	modeFullToo     = 1047
	modeSave        = 1048
	modeFullAndSave = 1049
	modePasting     = 2004
)

func usualModes() modes { return modes{wrap: true, shown: true} }

// pointed is what a program hears of the mouse, "" of what it did not ask for.
func (m *modes) pointed(in *terminal.Mouse) string {
	button := map[terminal.MouseButton]ansi.MouseButton{
		terminal.MouseLeft: ansi.MouseLeft, terminal.MouseMiddle: ansi.MouseMiddle, terminal.MouseRight: ansi.MouseRight,
		terminal.WheelUp: ansi.MouseWheelUp, terminal.WheelDown: ansi.MouseWheelDown,
	}[in.Button]
	least := map[terminal.MouseAct]int{terminal.MousePress: modePresses, terminal.MouseRelease: modeButtons, terminal.MouseDrag: modeDrags}[in.Act]
	if m.mouse < least {
		return ""
	}
	keys, released := m.mouse > modePresses, in.Act == terminal.MouseRelease
	code := ansi.EncodeMouseButton(button, in.Act == terminal.MouseDrag, keys && in.Shift, keys && in.Alt, keys && in.Ctrl)
	switch {
	case m.sgr:
		return ansi.MouseSgr(code, in.X, in.Y, released)
	case in.X > 222 || in.Y > 222:
		return "" // places further off can't be told
	case released:
		code |= 3 // nor which button it was
	}
	return "\x1b[M" + string([]byte{32 + code, byte(33 + in.X), byte(33 + in.Y)})
}

// flag is a mode that is on or off and no more.
func (e *Emulator) flag(n int) *bool {
	switch n {
	case modeAppKeys:
		return &e.appKeys
	case modeOrigin:
		return &e.cur.origin
	case modeWrap:
		return &e.wrap
	case modeCursor:
		return &e.shown
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
	}
	switch n {
	case modeOrigin:
		e.goTo(0, 0)
	case modeWrap:
		e.cur.over = e.cur.over && on
	case modePresses, modeButtons, modeDrags, modeMoves:
		if e.mouse = 0; on {
			e.mouse = n
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

// modeIs is what is answered to who asks for a private mode: 1 set, 2 not set, 0
// not known.
func (e *Emulator) modeIs(n int) int {
	on := false
	switch f := e.flag(n); {
	case f != nil:
		on = *f
	case n == modeFull, n == modeFullToo, n == modeFullAndSave:
		on = e.inFull
	case n == modePresses, n == modeButtons, n == modeDrags, n == modeMoves:
		on = e.mouse == n
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
	e.insert, e.shown, e.wrap, e.appKeys = false, true, true, false
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

// osc takes titles, and what a program tells beside its picture. Links,
// clipboards, colours and places are passed over.
func (e *Emulator) osc(data []byte) {
	number, text, _ := strings.Cut(strings.ToValidUTF8(string(data), "\uFFFD"), ";")
	switch number {
	case "0", "2":
		e.title = core.ClipTo(text, terminal.MaxTitle)
	case "9":
		e.notice(text)
	case "133":
		if text != "" && e.on.Prompt != nil {
			e.on.Prompt(text[0])
		}
	case "777":
		e.told(text)
	}
}

// notice takes OSC 9: a progress, or a notification.
func (e *Emulator) notice(text string) {
	if state, is := strings.CutPrefix(text, "4;"); is || text == "4" {
		if state, _, _ = strings.Cut(state, ";"); e.on.Progress != nil {
			e.on.Progress(state == "1" || state == "3")
		}
		return
	}
	if text != "" && e.on.Notice != nil {
		e.on.Notice(core.ClipTo(text, 500))
	}
}

// told takes OSC 777: a notification, or what a hook says.
func (e *Emulator) told(text string) {
	parts := strings.SplitN(text, ";", 3)
	for len(parts) < 3 {
		parts = append(parts, "")
	}
	switch {
	case parts[0] == "notify" && e.on.Notice != nil:
		e.on.Notice(core.ClipTo(strings.Trim(parts[1]+": "+parts[2], ": "), 500))
	case parts[0] == "swarmdeck" && e.on.Hook != nil:
		e.on.Hook(core.ClipTo(parts[1], 32), core.ClipTo(parts[2], 500))
	}
}
