package diff

import (
	"maps"
	"slices"

	"swarmdeck/ui/screen"
)

// SideWidth is the least width, in cells, at which lines are shown side by side.
const SideWidth = 100

// View is a window of a diff: where it is scrolled to, what is folded, marked and seen.
// The zero value shows nothing. It belongs to one goroutine.
type View struct {
	// Viewed are the files that somebody has seen, by their path; the caller keeps
	// them. It is read and changed here.
	Viewed map[string]bool
	// Notes are what people said, by the path of the file, and Tag what is told behind
	// the head of a file, 0, or of a hunk; nil tells nothing.
	Notes map[string][]Remark
	Tag   func(path string, hunk int) string

	doc    *Document
	lay    layout
	side   bool // wished
	top    int
	at     int // the row under the cursor
	left   int // cells scrolled to the right
	w, h   int
	find   string // in lower case
	list   bool   // the files are listed
	listAt int
	marked bool // a range is
	mark   place
	blocks map[Segment]*Block
	asked  map[Segment]bool
}

// Bounds of a view.
const (
	slideStep  = 8
	maxLeft    = maxLine
	keptBlocks = 48
)

// SetDocument shows another diff from its start, side by side as before; nil is none.
func (v *View) SetDocument(d *Document) {
	if d == nil {
		*v = View{Tag: v.Tag, side: v.side, find: v.find, w: v.w, h: v.h}
		return
	}
	*v = View{Viewed: map[string]bool{}, Notes: v.Notes, Tag: v.Tag, doc: d, side: v.side, find: v.find, w: v.w, h: v.h, blocks: map[Segment]*Block{}, asked: map[Segment]bool{}}
	v.lay.side = v.sideways()
	v.lay.lay(d, 0)
}

// Document is what is shown, nil for nothing.
func (v *View) Document() *Document { return v.doc }

// Add takes in what was scanned of the document.
func (v *View) Add(p Part) {
	from := max(len(v.doc.Files)-1, 0)
	v.doc.Add(p)
	v.lay.viewed = v.Viewed
	v.lay.lay(v.doc, from)
	v.clamp()
}

// Put takes in lines that Wants asked for.
func (v *View) Put(b Block) {
	delete(v.asked, b.Segment)
	v.blocks[b.Segment] = &b
}

// Failed forgets that lines were asked for.
func (v *View) Failed(s Segment) { delete(v.asked, s) }

// Resize says how many cells there are.
func (v *View) Resize(w, h int) {
	if w == v.w && h == v.h {
		return
	}
	v.w, v.h = w, h
	v.relay(func() {})
}

// sideways tells whether lines stand side by side: where it is wished and fits.
func (v *View) sideways() bool { return v.side && v.w-v.listWidth() >= SideWidth }

// relay numbers the rows anew after a change, and keeps the cursor where it is.
func (v *View) relay(change func()) {
	if v.doc == nil {
		return
	}
	at, ok := v.here()
	below := v.at - v.top
	was := v.lay.side
	change()
	v.lay.side = v.sideways()
	if ok && v.lay.side != was {
		at = v.across(at, was)
		v.mark = v.across(v.mark, was)
	}
	v.lay.lay(v.doc, 0)
	if ok {
		v.at = v.lay.row(v.doc, at)
		v.top = v.at - below
	}
	v.clamp()
}

// across is the place of the same line, when lines come to stand side by side or no
// longer do.
func (v *View) across(p place, was bool) place {
	if p.hunk < 0 || p.line < 0 || p.file >= len(v.doc.Files) {
		return p
	}
	f := &v.doc.Files[p.file]
	if p.hunk >= len(f.hunks) || f.hunks[p.hunk].n == 0 {
		return p
	}
	n, first := f.segment(&f.hunks[p.hunk], p.line, was)
	g := &f.segs[n]
	b := v.blocks[Segment{p.file, n}]
	if was { // from a pair to a line
		if b != nil && p.line-first < len(b.pairs) {
			two := b.pairs[p.line-first]
			return place{p.file, p.hunk, g.line + max(two[0], two[1])}
		}
		return place{p.file, p.hunk, g.line}
	}
	if b != nil {
		if i := slices.IndexFunc(b.pairs, func(two [2]int) bool { return two[0] == p.line-first || two[1] == p.line-first }); i >= 0 {
			return place{p.file, p.hunk, g.pair + i}
		}
	}
	return place{p.file, p.hunk, g.pair}
}

// clamp brings cursor and window into the diff.
func (v *View) clamp() {
	n := v.lay.total()
	v.at = max(0, min(v.at, n-1))
	v.top = screen.Window(v.top, v.at, v.h, n)
}

// Do performs an action by its name in the keymap and tells whether it knows it.
func (v *View) Do(action string) bool {
	if v.doc == nil {
		return false
	}
	if v.list && v.doList(action) {
		return true
	}
	if by, step := screen.Step(action, v.h-1); step {
		if v.at += by; by < -1 || by > 1 { // the window goes with the cursor
			v.top += by
		}
		v.clamp()
		return true
	}
	switch action {
	case "top":
		v.at, v.left = 0, 0
	case "bottom":
		v.at = v.lay.total()
	case "left":
		if v.left == 0 {
			return false
		}
		v.left = max(v.left-slideStep, 0)
	case "right":
		v.left = min(v.left+slideStep, maxLeft)
	case "next-hunk", "prev-hunk":
		v.toHunk(action == "next-hunk")
	case "next-file", "prev-file":
		v.toFile(action == "next-file")
	case "side-by-side":
		v.relay(func() { v.side = !v.side })
	case "files":
		at, _ := v.here()
		v.relay(func() { v.list = !v.list })
		v.listAt = at.file
	case "fold":
		v.fold()
	case "open":
		if p, ok := v.here(); ok && (p.hunk < 0 || p.line < 0) {
			v.fold()
		}
	case "fold-all":
		v.relay(func() {
			all := slices.Contains(v.lay.shut, false)
			for i := range v.lay.shut {
				v.lay.shut[i] = all
			}
		})
	case "range":
		at, ok := v.here()
		v.marked = !v.marked && ok && at.hunk >= 0 && at.line >= 0
		v.mark = at
	case "viewed":
		v.see()
	default:
		return false
	}
	v.clamp()
	return true
}

// here is the place under the cursor, if there is one.
func (v *View) here() (p place, ok bool) {
	if v.doc == nil {
		return p, false
	}
	return v.lay.find(v.doc, v.at)
}

// toHunk goes to the next hunk, or to the one before.
func (v *View) toHunk(on bool) {
	p, ok := v.here()
	if !ok {
		return
	}
	if !on && p.hunk >= 0 && p.line >= 0 { // to its own head first
		v.jump(place{p.file, p.hunk, -1})
		return
	}
	step := 1
	if !on {
		step = -1
	}
	k := p.hunk + step
	for i := p.file; i >= 0 && i < len(v.doc.Files); i += step {
		f := &v.doc.Files[i]
		if i != p.file {
			if k = 0; !on {
				k = len(f.hunks) - 1
			}
		}
		if v.lay.shut[i] {
			if i == p.file {
				continue
			}
			v.jump(place{i, -1, 0})
			return
		}
		if k >= 0 && k < len(f.hunks) {
			v.jump(place{i, k, -1})
			return
		}
	}
}

// toFile goes to the next file, or to the one before.
func (v *View) toFile(on bool) {
	p, ok := v.here()
	switch {
	case !ok:
	case on && p.file+1 < len(v.doc.Files):
		v.jump(place{p.file + 1, -1, 0})
	case !on && (p.hunk >= 0 || p.line > 0):
		v.jump(place{p.file, -1, 0})
	case !on && p.file > 0:
		v.jump(place{p.file - 1, -1, 0})
	}
}

// jump puts the cursor on a place and brings what follows it into sight.
func (v *View) jump(p place) {
	v.at = v.lay.row(v.doc, p)
	if v.at < v.top || v.at >= v.top+v.h-v.h/3 {
		v.top = v.at - min(2, v.h/4)
	}
	v.clamp()
}

// Go puts the cursor on the head of a file, by its number.
func (v *View) Go(file int) {
	if v.doc != nil && file >= 0 && file < len(v.doc.Files) {
		v.jump(place{file, -1, 0})
		v.top = v.at
		v.clamp()
	}
}

// fold folds or opens the hunk under the cursor, or its file on the file's head.
func (v *View) fold() {
	p, ok := v.here()
	if !ok {
		return
	}
	v.relay(func() {
		if p.hunk < 0 {
			v.lay.shut[p.file] = !v.lay.shut[p.file]
		} else {
			h := &v.doc.Files[p.file].hunks[p.hunk]
			h.shut = !h.shut
		}
	})
}

// see marks the file under the cursor as viewed and folds it, or takes that back.
func (v *View) see() {
	p, ok := v.here()
	if !ok {
		return
	}
	path := v.doc.Files[p.file].Path
	v.relay(func() {
		v.Viewed[path] = !v.Viewed[path]
		v.lay.shut[p.file] = v.Viewed[path]
	})
	if v.Viewed[path] {
		v.toFile(true)
	}
}

// Wants are the lines that a window above, the window and one below have and that are
// not loaded, at most n; they count as asked for. What is far away is forgotten.
func (v *View) Wants(n int) (out []Want) {
	if v.doc == nil || v.h <= 0 {
		return nil
	}
	near := map[Segment]bool{}
	for _, span := range [][2]int{{v.top, v.top + v.h}, {v.top + v.h, v.top + 2*v.h}, {v.top - v.h, v.top}} {
		for row := max(span[0], 0); row < min(span[1], v.lay.total()); {
			p, ok := v.lay.find(v.doc, row)
			if !ok {
				break
			}
			row++
			if p.hunk < 0 || p.line < 0 {
				continue
			}
			f := &v.doc.Files[p.file]
			k, first := f.segment(&f.hunks[p.hunk], p.line, v.lay.side)
			s := Segment{p.file, k}
			_, rows := f.segs[k].rows(v.lay.side)
			row += max(first+rows-p.line-1, 0)
			if near[s] {
				continue
			}
			near[s] = true
			if v.blocks[s] == nil && !v.asked[s] && len(out) < n {
				v.asked[s] = true
				out = append(out, v.doc.Want(s))
			}
		}
	}
	if len(v.blocks) > keptBlocks+len(near) {
		maps.DeleteFunc(v.blocks, func(s Segment, _ *Block) bool { return !near[s] })
	}
	return out
}
