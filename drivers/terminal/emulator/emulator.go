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
package emulator

import (
	"strings"
	"sync"

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
	tabs     [terminal.MaxCols]bool
	last     rune // what was written last, for "repeat it"
	clusters clusters
	title    string
	history  history
	rev      uint64
}

// New makes one of a size, which is brought into bounds. Its revisions are higher
// than from.
func New(size terminal.Size, from uint64, on Signals) *Emulator {
	e := &Emulator{on: on, size: size.Bounded(), rev: from + 1}
	e.restart()
	return e
}

// restart begins with an empty screen, as it was at first.
func (e *Emulator) restart() {
	e.main, e.full, e.inFull = newGrid(e.size, func(l *row) { e.history.add(e.line(l)) }), nil, false
	e.cur, e.modes, e.tabs, e.last = cursor{}, usualModes(), usualTabs(), 0
}

// grid is the screen that is written to.
func (e *Emulator) grid() *grid {
	if e.inFull {
		return e.full
	}
	return e.main
}

func call(f func()) {
	if f != nil {
		f()
	}
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
	e.parser.understand(p, e)
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
	s := &terminal.Screen{Rev: e.rev, Size: e.size, Title: e.title, Above: e.history.len(), Full: e.inFull, Mouse: e.mouse != noMouse, Lines: make([]terminal.Line, 0, e.size.Rows)}
	if !e.inFull {
		s.Back = min(max(back, 0), s.Above)
	}
	s.X, s.Y = e.cur.x, e.cur.y+s.Back
	s.Cursor = !e.hidden && s.Y < s.Rows
	for y := range s.Rows {
		if y < s.Back {
			s.Lines = append(s.Lines, e.history.line(s.Above-s.Back+y))
			continue
		}
		s.Lines = append(s.Lines, e.line(e.grid().lines[y-s.Back]))
	}
	return s
}

// Tail is the text of the last lines that are not empty, at most n.
func (e *Emulator) Tail(n int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines, end := e.grid().lines, e.size.Rows
	for end > 0 && len(e.line(lines[end-1])) == 0 {
		end--
	}
	var texts []string
	for _, l := range lines[max(0, end-n):end] {
		texts = append(texts, e.line(l).Text())
	}
	return strings.TrimRight(strings.Join(texts, "\n"), "\n ")
}

// Before is the text of the cursor's line before it.
func (e *Emulator) Before() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, c := range e.grid().lines[e.cur.y].cells[:e.cur.x] {
		if !c.tail {
			b.WriteString(e.text(c))
		}
	}
	return b.String()
}
