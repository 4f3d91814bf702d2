package emulator

import (
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
)

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
