package diff

import (
	"cmp"
	"fmt"

	"swarmdeck/ui/screen"
)

// listWidth is how much of the width the list of files takes; all of it where no diff
// fits beside.
func (v *View) listWidth() int {
	switch {
	case !v.list:
		return 0
	case v.w < SideWidth:
		return v.w
	}
	return min(v.w/3, 48)
}

// doList performs an action on the list of files; the cursor of the diff follows where
// both are seen.
func (v *View) doList(action string) bool {
	n := len(v.doc.Files)
	by, step := screen.Step(action, v.h)
	v.listAt += by
	switch action {
	case "prev-file":
		v.listAt--
	case "next-file":
		v.listAt++
	case "top":
		v.listAt = 0
	case "bottom":
		v.listAt = n - 1
	case "open", "right", "left":
		at := v.listAt
		v.relay(func() { v.list = false })
		if action != "left" {
			v.Go(at)
		}
		return true
	case "viewed":
		v.Go(v.listAt)
		v.see()
		v.listAt++
	default:
		if !step {
			return false
		}
	}
	v.listAt = max(0, min(v.listAt, n-1))
	if v.listWidth() < v.w {
		v.Go(v.listAt)
	}
	return true
}

// drawList draws the files, each with its counts.
func (v *View) drawList(c *screen.Canvas, focused bool) {
	top := max(0, min(v.listAt-c.H()/2, len(v.doc.Files)-c.H()))
	for y := 0; y < c.H() && top+y < len(v.doc.Files); y++ {
		f := &v.doc.Files[top+y]
		sign, role := ' ', screen.Text
		switch {
		case v.Viewed[f.Path]:
			sign, role = c.Glyphs().State[screen.Succeeded], screen.Dim
		case f.Generated:
			role = screen.Dim
		}
		tail := f.Counts()
		if f.Binary {
			tail = "binary"
		}
		if op := f.Op.String(); op != "" {
			tail = op + " " + tail
		}
		c.Text(0, y, screen.Good, string(sign))
		room := c.W() - len(tail) - 4
		c.TextMiddle(2, y, room, role, cmp.Or(f.Path, "a file"))
		x := c.W() - len(tail) - 1
		if f.Binary {
			c.Text(x, y, screen.Dim, tail)
		} else {
			c.Text(x, y, screen.Dim, tail[:len(tail)-len(f.Counts())])
			drawCounts(c, c.W()-len(f.Counts())-1, y, f)
		}
		if top+y == v.listAt {
			role := screen.SelectedOff
			if focused {
				role = screen.Selected
			}
			c.Paint(screen.Rect{X: 0, Y: y, W: c.W() - 1, H: 1}, role)
		}
	}
}

// Title says where the cursor is: the file, which of how many it is, and how much of the
// diff was read so far.
func (v *View) Title() string {
	if v.doc == nil {
		return ""
	}
	n := len(v.doc.Files)
	text := fmt.Sprintf("%d files", n)
	if p, ok := v.here(); ok {
		text = fmt.Sprintf("%s  %d/%d", v.doc.Files[p.file].Path, p.file+1, n)
	}
	seen := 0
	for _, on := range v.Viewed {
		if on {
			seen++
		}
	}
	text += fmt.Sprintf("  +%d -%d", v.doc.Added, v.doc.Removed)
	if seen > 0 {
		text += fmt.Sprintf("  %d viewed", seen)
	}
	switch {
	case v.doc.Cut:
		text += "  the rest is left out"
	case !v.doc.Done && v.doc.Size > 0:
		text += fmt.Sprintf("  read %d %%", v.doc.Read*100/v.doc.Size)
	}
	return text
}
