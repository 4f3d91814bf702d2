package screen

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
