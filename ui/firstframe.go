package ui

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

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
