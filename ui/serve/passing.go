package serve

import (
	"bytes"
	"io"

	"github.com/charmbracelet/x/ansi"
)

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
