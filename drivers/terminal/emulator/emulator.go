// Package emulator is the terminal that an agent's program writes to: it
// understands what the program writes and keeps the picture that this makes, as
// cells. Nothing of the program's bytes goes further than here.
//
// A program may write anything. Whatever it is, the emulator neither fails nor
// grows: sequences are bounded in their effect and in their length, what has
// left the screen is kept up to a number of lines and bytes, links, clipboards,
// pictures and the like are ignored, and a fault of the library below ends with
// an empty screen.
package emulator

import (
	"bytes"
	"io"
	"strings"
	"sync"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"swarmdeck/engine/core"
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

// Bounds of what one call of the library is given, and of what it holds.
const (
	// chunk is what is understood at a time: a character with all that joins it is
	// no longer than that.
	chunk     = 256
	scrolled  = 512  // lines that leave the screen in one chunk
	maxOSC    = 4096 // bytes of one that is heeded
	maxRepeat = 1000 // of a number in a sequence that moves or repeats
)

// Emulator is one terminal. Its methods may be called from any goroutine.
type Emulator struct {
	on Signals

	mu      sync.Mutex
	size    terminal.Size
	main    *vt.Emulator
	full    *vt.Emulator // of a program that has the screen to itself; nil until one wants it
	inFull  bool
	hidden  bool // the cursor
	appKeys bool // arrows are told the other way
	pasting bool // a paste is to be told as one
	title   string
	history history
	rev     uint64
	faults  int
	readers sync.WaitGroup
}

// New makes one of a size, which is brought into bounds. Its revisions are higher
// than from.
func New(size terminal.Size, from uint64, on Signals) *Emulator {
	e := &Emulator{on: on, size: size.Bounded(), rev: from + 1}
	e.main = e.fresh()
	return e
}

// fresh makes a terminal of the library, with what it must not do taken from it.
func (e *Emulator) fresh() *vt.Emulator {
	t := vt.NewEmulator(e.size.Cols, e.size.Rows)
	t.SetScrollbackSize(scrolled)
	t.SetCallbacks(vt.Callbacks{
		Bell:             func() { call(e.on.Bell) },
		Title:            func(s string) { e.title = core.ClipTo(s, terminal.MaxTitle) },
		CursorVisibility: func(visible bool) { e.hidden = !visible },
		EnableMode:       func(m ansi.Mode) { e.mode(m, true) },
		DisableMode:      func(m ansi.Mode) { e.mode(m, false) },
	})
	e.tame(t)
	e.readers.Go(func() { e.answers(t) })
	return t
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// answers passes on what the library writes to the program: it waits for a reader.
func (e *Emulator) answers(t *vt.Emulator) {
	buf := make([]byte, 1024)
	for {
		n, err := t.Read(buf)
		if n > 0 && e.on.Reply != nil {
			e.on.Reply(bytes.Clone(buf[:n]))
		}
		if err != nil {
			return
		}
	}
}

// hangUp ends the reader of answers. The library's own Close and Read race.
func hangUp(t *vt.Emulator) {
	if c, is := t.InputPipe().(io.Closer); is {
		_ = c.Close()
	}
}

func (e *Emulator) mode(m ansi.Mode, on bool) {
	switch m {
	case ansi.ModeCursorKeys:
		e.appKeys = on
	case ansi.ModeBracketedPaste:
		e.pasting = on
	}
}

// Write understands what a program has written. It never fails.
func (e *Emulator) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := cut(rest)
		e.understand(rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

// cut is how much is understood next: no more than a chunk, which ends, where one
// does, behind what can't be continued, and behind a mode, which may change the screen.
func cut(p []byte) int {
	n := min(len(p), chunk)
	for from := 0; ; {
		i := bytes.Index(p[from:n], []byte("\x1b[?"))
		if i < 0 {
			break
		}
		from += i + 3
		if j := bytes.IndexAny(p[from:n], "hl"); j >= 0 {
			return from + j + 1
		}
	}
	if n == len(p) {
		return n
	}
	for back := n; back > n-64; back-- {
		if p[back-1] < 0x80 {
			return back
		}
	}
	return n
}

// understand hands a chunk to the library. A fault there costs the picture.
func (e *Emulator) understand(p []byte) {
	e.mu.Lock() // others look between two chunks
	defer e.mu.Unlock()
	e.rev++
	defer func() {
		if recover() != nil {
			e.faults++
			e.restart()
		}
	}()
	t := e.main
	if e.inFull {
		t = e.full
	}
	_, _ = t.Write(p)
	e.keep()
}

// keep takes the lines that have left the screen from the library.
func (e *Emulator) keep() {
	if back := e.main.Scrollback(); back.Len() > 0 {
		for _, l := range back.Lines() {
			e.history.add(lineOf(l))
		}
		e.main.ClearScrollback()
	}
	if e.full != nil {
		e.full.ClearScrollback()
	}
}

// restart begins with an empty screen.
func (e *Emulator) restart() {
	hangUp(e.main)
	if e.full != nil {
		hangUp(e.full)
	}
	e.main, e.full, e.inFull, e.hidden = e.fresh(), nil, false, false
}

// fill gives a program the screen to itself, or ends that.
func (e *Emulator) fill(on bool) {
	if on == e.inFull {
		return
	}
	e.inFull = on
	if !on {
		return
	}
	if e.full == nil {
		e.full = e.fresh()
		return
	}
	_, _ = e.full.Write([]byte("\x1b[!p\x1b[m\x1b[r\x1b[H\x1b[2J"))
	e.full.ClearScrollback()
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
	defer func() {
		if recover() != nil {
			e.faults++
			e.restart()
		}
	}()
	e.main.Resize(to.Cols, to.Rows)
	if e.full != nil {
		e.full.Resize(to.Cols, to.Rows)
	}
}

// Close ends it; what it shows can still be read.
func (e *Emulator) Close() {
	e.mu.Lock()
	hangUp(e.main)
	if e.full != nil {
		hangUp(e.full)
	}
	e.mu.Unlock()
	e.readers.Wait()
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
	s := &terminal.Screen{Rev: e.rev, Size: e.size, Title: e.title, Above: e.history.len(), Full: e.inFull}
	t := e.main
	if e.inFull {
		t, back = e.full, 0
	}
	s.Back = min(max(back, 0), s.Above)
	at := t.CursorPosition()
	s.X, s.Y, s.Cursor = at.X, at.Y+s.Back, !e.hidden && at.Y+s.Back < s.Rows
	for y := -s.Back; y < s.Rows-s.Back; y++ {
		if y < 0 {
			s.Lines = append(s.Lines, e.history.line(s.Above+y))
			continue
		}
		s.Lines = append(s.Lines, row(t, y))
	}
	return s
}

// row is a line of the screen.
func row(t *vt.Emulator, y int) terminal.Line {
	cells := make(uv.Line, t.Width())
	for x := range cells {
		if c := t.CellAt(x, y); c != nil {
			cells[x] = *c
		}
	}
	return lineOf(cells)
}

// Tail is the text of the last lines that are not empty, at most n.
func (e *Emulator) Tail(n int) string {
	text := strings.Split(e.Screen(0, 0).Text(), "\n")
	return strings.Join(text[max(0, len(text)-n):], "\n")
}

// Before is the text of the cursor's line before it.
func (e *Emulator) Before() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.main
	if e.inFull {
		t = e.full
	}
	var b strings.Builder
	at := t.CursorPosition()
	for x := range at.X {
		if c := t.CellAt(x, at.Y); c != nil {
			b.WriteString(c.Content)
		}
	}
	return b.String()
}
