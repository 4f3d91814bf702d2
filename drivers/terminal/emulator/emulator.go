// Package emulator is the terminal that an agent's program writes to: it
// understands what the program writes and keeps the picture that this makes, as
// cells. Nothing of the program's bytes goes further than here.
//
// It is a VT220 with what xterm added that programs of today use: colours, the
// second screen, marks of pastes, the mouse. A line that scrolls costs a move of
// pointers, whatever the size, and a picture only what has changed in it, so that
// a key's echo is not kept waiting by a flood.
//
// A program may write anything. Whatever it is, the emulator neither fails nor
// grows: sequences are bounded in their effect and in their length, what has
// left the screen is kept up to a number of lines and bytes, and links,
// clipboards, pictures and the like are passed over.
//
// It is ours, since charmbracelet/x/vt v0.1.0 copies all cells for a line that scrolls (30 times the time of a log),
// keeps 10,000 lines of the second screen out of reach (242 MB at 200x50), loses a wide character at the edge, and
// ends a title at a byte 0x9c of UTF-8: what follows the star of "✳ Claude Code" is written on the screen.
package emulator

import (
	"strings"
	"sync"

	uv "github.com/charmbracelet/ultraviolet"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/terminal"
)

// Signals are what a program tells beside its picture. They are called while it
// is understood, and must not call the emulator; each may be nil.
type Signals struct {
	Bell func()
	// Notice is a notification: OSC 9 and OSC 777;notify.
	Notice func(text string)
	// Progress is OSC 9;4: on says that there is some.
	Progress func(on bool)
	// Hook is the word of OSC 777;swarmdeck;WORD[;TEXT]: what a hook of the program
	// says for sure.
	Hook func(word, text string)
	// Prompt is a shell's mark of OSC 133: A and B at its prompt, C and D around a command.
	Prompt func(mark byte)
	// Reply is what the terminal answers to the program.
	Reply func(data []byte)
}

// Bounds of one step.
const (
	chunk     = 1024 // bytes that are understood before others may look
	maxRepeat = 1000 // times that a sequence writes a character
)

// Emulator is one terminal. Its methods may be called from any goroutine.
type Emulator struct {
	on Signals

	mu     sync.Mutex
	parser parser
	size   terminal.Size
	main   *grid
	full   *grid // of a program that has the screen to itself; nil for none
	inFull bool
	cur    cursor
	modes
	tabs    *uv.TabStops
	last    rune // what was written last, for "repeat it"
	title   string
	history pipe.Tail[terminal.Line] // that have left the screen
	rev     uint64
}

// New makes one of a size, which is brought into bounds. Its revisions are higher
// than from.
func New(size terminal.Size, from uint64, on Signals) *Emulator {
	e := &Emulator{on: on, size: size.Bounded(), rev: from + 1, history: pipe.Tail[terminal.Line]{Most: terminal.MaxBack, Bytes: maxHistory}}
	e.parser.begin(e)
	e.restart()
	return e
}

// restart begins with an empty screen, as it was at first.
func (e *Emulator) restart() {
	e.main, e.full, e.inFull = newGrid(e.size, func(l *row) { e.history.Add(l.seen(), weight(l.seen())) }), nil, false
	e.cur, e.modes, e.tabs, e.last = cursor{}, usualModes(), uv.DefaultTabStops(terminal.MaxCols), 0
}

// grid is the screen that is written to.
func (e *Emulator) grid() *grid {
	if e.inFull {
		return e.full
	}
	return e.main
}

// Write understands what a program has written. It never fails.
func (e *Emulator) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), chunk)
		e.understand(rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

func (e *Emulator) understand(p []byte) {
	e.mu.Lock() // others look between two chunks
	defer e.mu.Unlock()
	e.rev++
	e.parser.understand(p)
}

// Resize changes the size, which is brought into bounds.
func (e *Emulator) Resize(to terminal.Size) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if to = to.Bounded(); to == e.size {
		return
	}
	e.size = to
	e.rev++
	by := 0
	if e.inFull {
		e.main.resize(to, e.main.saved.y)
		by = e.full.resize(to, e.cur.y)
	} else {
		by = e.main.resize(to, e.cur.y)
	}
	e.cur.x, e.cur.y, e.cur.over = min(e.cur.x, to.Cols-1), min(e.cur.y-by, to.Rows-1), false
}

// Rev is the revision of the picture.
func (e *Emulator) Rev() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rev
}

// Touch makes the picture count as another.
func (e *Emulator) Touch() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rev++
}

// Screen is the picture, back lines further up; nil if its revision is known and
// it is not scrolled.
func (e *Emulator) Screen(known uint64, back int) *terminal.Screen {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known == e.rev && known != 0 {
		return nil
	}
	above := e.history.Kept()
	s := &terminal.Screen{Rev: e.rev, Size: e.size, Title: e.title, Above: len(above), Full: e.inFull, Mouse: e.mouse > 0, Lines: make([]terminal.Line, 0, e.size.Rows)}
	if !e.inFull {
		s.Back = min(max(back, 0), s.Above)
	}
	s.X, s.Y = e.cur.x, e.cur.y+s.Back
	s.Cursor = e.shown && s.Y < s.Rows
	s.Lines = append(s.Lines, above[s.Above-s.Back:][:min(s.Back, s.Rows)]...)
	for _, l := range e.grid().lines[:s.Rows-len(s.Lines)] {
		s.Lines = append(s.Lines, l.seen())
	}
	return s
}

// Tail is the text of the last lines that are not empty, at most n.
func (e *Emulator) Tail(n int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.grid().lines
	for len(lines) > 0 && len(lines[len(lines)-1].seen()) == 0 {
		lines = lines[:len(lines)-1]
	}
	var b strings.Builder
	for _, l := range lines[max(0, len(lines)-n):] {
		b.WriteString(l.seen().Text() + "\n")
	}
	return strings.TrimRight(b.String(), "\n ")
}

// Before is the text of the cursor's line before it.
func (e *Emulator) Before() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return textOf(e.grid().lines[e.cur.y].cells[:e.cur.x])
}
