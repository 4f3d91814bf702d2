package emulator

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"swarmdeck/engine/core"
)

// tame takes from the library what a program could do harm by, and adds what it
// is to tell. Of several handlers the last is asked first; one that returns false
// leaves a sequence to those before.
func (e *Emulator) tame(t *vt.Emulator) {
	for _, final := range "@ABCDEFGHILMPSTXZ`abdef" {
		t.RegisterCsiHandler(int(final), func(params ansi.Params) bool {
			bound(params)
			return false
		})
	}
	t.RegisterCsiHandler('J', func(params ansi.Params) bool {
		if n, _, _ := params.Param(0, 0); n == 3 && !e.inFull {
			e.history.clear()
		}
		return false
	})
	for _, set := range []bool{true, false} {
		final := byte('l')
		if set {
			final = 'h'
		}
		t.RegisterCsiHandler(ansi.Command('?', 0, final), func(params ansi.Params) bool { return e.fills(params, set) })
	}
	for _, cmd := range []int{8, 7, 10, 11, 12, 110, 111, 112} { // links, places and colours of its own
		t.RegisterOscHandler(cmd, func([]byte) bool { return true })
	}
	for _, cmd := range []int{0, 1, 2} {
		t.RegisterOscHandler(cmd, func(data []byte) bool { return len(data) > maxOSC })
	}
	t.RegisterOscHandler(9, e.notice)
	t.RegisterOscHandler(133, func(data []byte) bool {
		if _, mark, ok := strings.Cut(osc(data), ";"); ok && mark != "" && e.on.Prompt != nil {
			e.on.Prompt(mark[0])
		}
		return true
	})
	t.RegisterOscHandler(777, e.told)
}

// bound makes numbers of a sequence no larger than what they can have an effect
// by: some are counted up to.
func bound(params ansi.Params) {
	for i := range params {
		if n := params[i].Param(0); n > maxRepeat {
			params[i] = ansi.Param(ansi.Parameter(maxRepeat, params[i].HasMore()))
		}
	}
}

// fills takes the modes that give a program the screen to itself: the library's
// second screen keeps what leaves it without bound.
func (e *Emulator) fills(params ansi.Params, on bool) bool {
	rest := false
	for _, p := range params {
		switch p.Param(-1) {
		case 47, 1047, 1049:
			e.fill(on)
		default:
			rest = true
		}
	}
	if rest {
		for i, p := range params {
			if n := p.Param(-1); n == 47 || n == 1047 || n == 1049 {
				params[i] = ansi.Param(ansi.Parameter(0, p.HasMore()))
			}
		}
	}
	return !rest
}

// osc is the text of a sequence, "" of one that is too long.
func osc(data []byte) string {
	if len(data) > maxOSC {
		return ""
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

// notice takes OSC 9: a progress, or a notification.
func (e *Emulator) notice(data []byte) bool {
	_, text, _ := strings.Cut(osc(data), ";")
	if state, is := strings.CutPrefix(text, "4;"); is || text == "4" {
		if state, _, _ = strings.Cut(state, ";"); e.on.Progress != nil {
			e.on.Progress(state == "1" || state == "3")
		}
		return true
	}
	if text != "" && e.on.Notice != nil {
		e.on.Notice(core.ClipTo(text, 500))
	}
	return true
}

// told takes OSC 777: a notification, or what a hook says.
func (e *Emulator) told(data []byte) bool {
	parts := strings.SplitN(osc(data), ";", 4)
	for len(parts) < 4 {
		parts = append(parts, "")
	}
	switch {
	case parts[1] == "notify" && e.on.Notice != nil:
		e.on.Notice(core.ClipTo(strings.Trim(parts[2]+": "+parts[3], ": "), 500))
	case parts[1] == "swarmdeck" && e.on.Hook != nil:
		e.on.Hook(core.ClipTo(parts[2], 32), core.ClipTo(parts[3], 500))
	}
	return true
}
