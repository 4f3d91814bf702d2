// Package screen is the cockpit's picture: a grid of cells, each a character
// and a role. Panes draw into it; a theme turns it into what a terminal reads;
// tests and scripts read its text and roles.
//
// A canvas is safe whatever it is handed: text is made harmless while it is
// drawn, what lies outside is clipped, and no row is ever wider than the
// canvas. Drawing and rendering allocate next to nothing.
package screen

import uv "github.com/charmbracelet/ultraviolet"

// Canvas is a picture or a window of one. Windows share the cells; coordinates
// count from the window's corner. A canvas belongs to one goroutine.
type Canvas struct {
	g    *cells
	view Rect // in the picture's coordinates
}

// cells is the picture behind all its windows.
type cells struct {
	w, h   int
	cell   []cell
	marks  []string   // combining marks, by cell.marks-1
	links  []string   // that cells open, by cell.link-1
	styles []uv.Style // of programs, by cell.style-1
	silent bool       // the terminal is not told of them
	glyphs *Glyphs
	out    []byte // the render buffer
	curX   int    // the terminal's cursor
	curY   int
	cursor bool
}

// cell is one character: its base, its combining marks, how many cells it
// takes (0: it is covered by the wide character to its left), its role and tints.
type cell struct {
	base  rune
	marks uint16
	width uint8
	role  Role
	link  uint16
	style uint16 // in place of the role's look; 0 for none
	// figure and ground are colours of a picture in place of the role's.
	figure, ground Tint
}

const (
	maxSide  = 4096 // cells; a terminal that claims more is lying
	maxMarks = 1<<16 - 1
)

// New makes an empty picture with the Unicode glyphs. Sizes below zero count
// as zero, above 4096 as 4096.
func New(w, h int) *Canvas {
	c := &Canvas{g: &cells{glyphs: Unicode()}}
	c.Resize(w, h)
	return c
}

// Resize gives the whole picture a size and clears it. Windows made before are
// no longer valid.
func (c *Canvas) Resize(w, h int) {
	w, h = min(max(w, 0), maxSide), min(max(h, 0), maxSide)
	g := c.g
	g.w, g.h = w, h
	if cap(g.cell) < w*h {
		g.cell = make([]cell, w*h)
	}
	g.cell = g.cell[:w*h]
	c.view = Rect{0, 0, w, h}
	c.Clear()
}

// Clear empties the window; on the whole picture it also hides the cursor.
func (c *Canvas) Clear() {
	if c.view.W == c.g.w && c.view.H == c.g.h {
		c.g.marks, c.g.links, c.g.styles, c.g.cursor = c.g.marks[:0], c.g.links[:0], c.g.styles[:0], false
	}
	c.Fill(c.Bounds(), Text, ' ')
}

// W is the window's width in cells.
func (c *Canvas) W() int { return c.view.W }

// H is the window's height in cells.
func (c *Canvas) H() int { return c.view.H }

// Bounds is the whole window: {0, 0, W, H}.
func (c *Canvas) Bounds() Rect { return Rect{0, 0, c.view.W, c.view.H} }

// Glyphs is the set to draw with.
func (c *Canvas) Glyphs() *Glyphs { return c.g.glyphs }

// SetCursor puts the terminal's cursor on a cell of the window; outside the
// window it is hidden. Clear of the whole picture hides it too.
func (c *Canvas) SetCursor(x, y int) {
	c.g.cursor = c.Bounds().Contains(x, y)
	c.g.curX, c.g.curY = x+c.view.X, y+c.view.Y
}

// Cursor tells where in the picture the terminal's cursor is, if it shows.
func (c *Canvas) Cursor() (x, y int, ok bool) { return c.g.curX, c.g.curY, c.g.cursor }

// SetGlyphs changes the set of the whole picture.
func (c *Canvas) SetGlyphs(g *Glyphs) { c.g.glyphs = g }

// Sub is a window of c. What of r lies outside c is cut off.
func (c *Canvas) Sub(r Rect) *Canvas {
	v := r.Clip(c.Bounds())
	v.X, v.Y = v.X+c.view.X, v.Y+c.view.Y
	return &Canvas{g: c.g, view: v}
}

// Rect is a rectangle of cells. A width or height of zero or less is empty.
type Rect struct{ X, Y, W, H int }

// Empty tells whether nothing fits in.
func (r Rect) Empty() bool { return r.W <= 0 || r.H <= 0 }

// Inset is r without a frame of n cells.
func (r Rect) Inset(n int) Rect { return Rect{r.X + n, r.Y + n, max(0, r.W-2*n), max(0, r.H-2*n)} }

// Clip is the part of r within o.
func (r Rect) Clip(o Rect) Rect {
	x, y := max(r.X, o.X), max(r.Y, o.Y)
	return Rect{x, y, max(0, min(r.X+r.W, o.X+o.W)-x), max(0, min(r.Y+r.H, o.Y+o.H)-y)}
}

// Contains tells whether the cell lies in r.
func (r Rect) Contains(x, y int) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }

// SplitLeft cuts w columns off the left side; both parts stay within r.
func (r Rect) SplitLeft(w int) (left, rest Rect) {
	w = min(max(w, 0), max(r.W, 0))
	return Rect{r.X, r.Y, w, r.H}, Rect{r.X + w, r.Y, r.W - w, r.H}
}

// SplitTop cuts h rows off the top; both parts stay within r.
func (r Rect) SplitTop(h int) (top, rest Rect) {
	h = min(max(h, 0), max(r.H, 0))
	return Rect{r.X, r.Y, r.W, h}, Rect{r.X, r.Y + h, r.W, r.H - h}
}

// SplitBottom cuts h rows off the bottom; both parts stay within r.
func (r Rect) SplitBottom(h int) (rest, bottom Rect) {
	h = min(max(h, 0), max(r.H, 0))
	return Rect{r.X, r.Y, r.W, r.H - h}, Rect{r.X, r.Y + r.H - h, r.W, h}
}

// Center is a rectangle of at most w by h in the middle of r.
func (r Rect) Center(w, h int) Rect {
	w, h = min(max(w, 0), max(r.W, 0)), min(max(h, 0), max(r.H, 0))
	return Rect{r.X + (r.W-w)/2, r.Y + (r.H-h)/2, w, h}
}
