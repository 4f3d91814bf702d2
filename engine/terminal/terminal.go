// Package terminal declares what an agent's terminal is: the picture that its
// program has made, as cells with styles, and what a person types into it. What
// a program writes is understood by a runtime and nowhere else; what is here is
// text and styles, never bytes for another terminal. The text is the program's
// own: whoever shows it makes it harmless.
package terminal

import (
	"context"
	"fmt"
	"strings"
)

// Bounds of a terminal's size in cells, and of what is kept of it.
const (
	MinCols, MaxCols = 20, 500
	MinRows, MaxRows = 5, 200
	// MaxBack is how many lines that have left the screen can be scrolled back to.
	MaxBack = 10_000
	// MaxTitle is the longest title, in bytes.
	MaxTitle = 200
)

// Size is how many cells a terminal has.
type Size struct{ Cols, Rows int }

// Bounded is the nearest size that a terminal may have.
func (s Size) Bounded() Size {
	return Size{Cols: min(max(s.Cols, MinCols), MaxCols), Rows: min(max(s.Rows, MinRows), MaxRows)}
}

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Cols, s.Rows) }

// Screen is what a terminal shows at one moment. Nobody changes it.
type Screen struct {
	Rev uint64 // higher after each change
	Size
	Lines []Line // at most Rows, from the top
	// X and Y are where the cursor is; Cursor says that it is shown.
	X, Y   int
	Cursor bool
	Title  string
	Above  int  // lines that have left the screen at its top and are kept
	Back   int  // by how many of them the picture is scrolled back
	Full   bool // the program has the whole screen to itself: nothing leaves it
	Runs   bool // there is a program; else it is the last picture of one
	Unseen bool // what is typed is not shown: a password
	Mouse  bool // the program asks for the mouse
	State  State
}

// State is what a program waits for, as far as is known.
type State string

// The states.
const (
	Working State = "working"
	Waits   State = "waits for input"
	Ended   State = "ended"
)

// Line is one line, without the blanks at its end.
type Line []Span

// Span is text of one style. Each character of it takes one cell, or it is a
// single one that takes Cells of them.
type Span struct {
	Text  string
	Cells int
	Style Style
}

// Style is how a character is to look.
type Style struct {
	FG, BG Color
	Attrs  Attrs
}

// Attrs are the attributes of a style.
type Attrs uint8

// The attributes.
const (
	Bold Attrs = 1 << iota
	Faint
	Italic
	Underline
	Reverse
	Conceal
	Blink
	Strike
)

// Color is a colour: the default (the zero value), one of 256, or a true colour.
type Color uint32

const (
	palette   Color = 1 << 24
	trueColor Color = 2 << 24
)

// Palette is a colour of the 256: 0-15 are those that each terminal has.
func Palette(n uint8) Color { return palette | Color(n) }

// RGB is a true colour.
func RGB(r, g, b uint8) Color { return trueColor | Color(r)<<16 | Color(g)<<8 | Color(b) }

// Index gives the number of a colour of the 256.
func (c Color) Index() (n uint8, ok bool) { return uint8(c), c&^0xffffff == palette }

// RGB gives the parts of a true colour.
func (c Color) RGB() (r, g, b uint8, ok bool) {
	return uint8(c >> 16), uint8(c >> 8), uint8(c), c&^0xffffff == trueColor
}

// Text is the line as text.
func (l Line) Text() string {
	if len(l) == 1 {
		return l[0].Text
	}
	var b strings.Builder
	for _, span := range l {
		b.WriteString(span.Text)
	}
	return b.String()
}

// Text is the picture as text, one line each, without empty ones at the end.
func (s *Screen) Text() string {
	var b strings.Builder
	for _, l := range s.Lines {
		b.WriteString(l.Text())
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n ")
}

// Terminal is an agent's terminal, as its runtime keeps it. Its methods may be
// called from any goroutine.
type Terminal interface {
	// Screen is what it shows, back lines further up; nil if that is what it was at
	// the revision known.
	Screen(known uint64, back int) *Screen
	// Rev is the revision of what it shows now.
	Rev() uint64
	// Unseen says that what is typed is not shown.
	Unseen() bool
	// Changed is closed when the screen is another than it is now.
	Changed() <-chan struct{}
	// Begin starts the program unless it runs.
	Begin(ctx context.Context) error
	// Type hands what is typed to the program, as its terminal would. It does not
	// wait for the program to read it.
	Type(in []Input) error
	// Masked is a text without the values of the secrets that the program has.
	Masked(text string) string
	// Resize gives it another size, within the bounds.
	Resize(to Size) error
}
