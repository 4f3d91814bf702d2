package pane

import (
	"cmp"
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/screen"
)

// Page lays paragraphs out and scrolls them. The zero value is empty. A
// paragraph that stays the same is not laid out again, however long it is,
// and a document that stays the same keeps what is folded.
//
// A page with something to open or to fold has a cursor, and scrolls with it.
type Page struct {
	paras []Para
	laid  map[laidKey][]string // the lines of paragraphs, for the width
	docs  map[string]*folds    // by their text
	lines []pageLine
	ends  []int // last line of each paragraph
	w, h  int
	top   int
	aims  bool   // there is a cursor
	at    int    // the line under it
	left  int    // cells scrolled to the right, of tables
	broad int    // cells of the broadest line of a table
	find  string // in lower case
}

// Set replaces the text and keeps the scroll position where it can.
func (p *Page) Set(paras []Para) {
	p.paras = paras
	docs := p.docs
	p.docs, p.aims = nil, false
	for i := range paras {
		for j := range paras[i].Rows {
			p.aims = p.aims || !paras[i].Rows[j].Item.Empty()
		}
		if raw := paras[i].JSON; raw != nil {
			p.keep(docs[string(raw)], raw)
		}
	}
	p.lay()
}

// keep has a document at hand: the one there was, or else a new one.
func (p *Page) keep(doc *folds, raw core.Raw) {
	ok := doc != nil
	if !ok {
		doc, ok = newFolds(raw)
	}
	if !ok { // it is shown as text
		return
	}
	if p.docs == nil {
		p.docs = map[string]*folds{}
	}
	p.docs[doc.text] = doc
	p.aims = p.aims || doc.root.folds()
}

// Resize says how much room there is.
func (p *Page) Resize(w, h int) {
	if w == p.w && h == p.h {
		return
	}
	wide := w != p.w
	p.w, p.h = w, h
	if wide {
		p.laid = nil
		p.lay()
	}
	p.clamp()
}

// Top scrolls to the start.
func (p *Page) Top() { p.top, p.at, p.left = 0, 0, 0 }

// Lines is the height of the whole text.
func (p *Page) Lines() int { return len(p.lines) }

// Reached reports whether the last line of paragraph i has come into view or
// lies above it.
func (p *Page) Reached(i int) bool {
	return p.h > 0 && i >= 0 && i < len(p.ends) && p.ends[i] < p.top+p.h
}

// clamp brings the window and the cursor into the text, and the cursor into
// the window.
func (p *Page) clamp() {
	at := p.top
	if p.aims {
		p.at = max(0, min(p.at, len(p.lines)-1))
		at = p.at
	}
	p.top = screen.Window(p.top, at, p.h, len(p.lines))
}

// Do scrolls, folds and opens by a named action: fold folds what the line
// under the cursor belongs to or opens it, open only does so on its first line,
// fold-all folds all there is of that document, or of the next, or opens it.
func (p *Page) Do(action string) bool {
	by, step := screen.Step(action, p.h-1)
	switch {
	case step && p.aims:
		p.at += by
	case step:
		p.top += by
	}
	switch action {
	case "top":
		p.Top()
	case "bottom":
		p.top, p.at = len(p.lines), len(p.lines)
	case "right", "left":
		return p.slide(action == "right")
	case "next-match":
		p.seek(1, 1)
	case "prev-match":
		p.seek(-1, -1)
	case "fold", "fold-all", "open":
		return p.fold(action)
	default:
		if !step {
			return false
		}
	}
	p.clamp()
	return true
}

// slideStep is how far a key scrolls a table sideways.
const slideStep = 8

// slide scrolls a table that is broader than the page; it tells whether there
// was more to see that way.
func (p *Page) slide(right bool) bool {
	switch {
	case right && p.broad > p.left+p.w-2:
		p.left += slideStep
	case !right && p.left > 0:
		p.left -= slideStep
	default:
		return false
	}
	return true
}

// fold folds or opens at the cursor; it tells whether there was something to.
func (p *Page) fold(action string) bool {
	line, ok := p.current()
	if ok && line.doc == nil && action == "fold-all" {
		line = p.document()
	}
	if !ok || line == nil || line.doc == nil {
		return false
	}
	line.doc.laid = nil
	var to *fold // where the cursor goes
	switch {
	case action == "fold-all":
		line.doc.all()
		to = line.fold.of
		for up := to.up; up != nil; up = up.up { // out of what is folded now
			if !up.open {
				to = up
			}
		}
	case action == "open" && line.fold.part == foldHead && !line.fold.of.folds():
		return false
	default:
		to = line.fold.toggle()
	}
	p.lay()
	p.aim(to)
	return true
}

// aim puts the cursor on the first line of a value: of the nearest, where a
// page shows a document twice.
func (p *Page) aim(v *fold) {
	best := -1
	for i := range p.lines {
		head := p.lines[i].fold == foldLine{v, foldHead} && (i == 0 || p.lines[i-1].fold != p.lines[i].fold)
		if head && (best < 0 || abs(i-p.at) < abs(best-p.at)) {
			best = i
		}
	}
	if v != nil && best >= 0 {
		p.at = best
	}
	p.clamp()
}

func abs(n int) int { return max(n, -n) }

// document is the first line of the next document below the cursor, or of the
// first on the page; nil when there is none.
func (p *Page) document() *pageLine {
	n := len(p.lines)
	for i := range n {
		if l := &p.lines[(p.at+i)%n]; l.doc != nil {
			return l
		}
	}
	return nil
}

// current is the line under the cursor.
func (p *Page) current() (*pageLine, bool) {
	if !p.aims || p.at < 0 || p.at >= len(p.lines) {
		return nil, false
	}
	return &p.lines[p.at], true
}

// Item is what enter opens on the line under the cursor, or empty.
func (p *Page) Item() Item {
	if line, ok := p.current(); ok {
		return line.item
	}
	return Item{}
}

// Row is the line under the cursor for copying: a value of a document whole,
// "" when there is no cursor.
func (p *Page) Row() string {
	line, ok := p.current()
	switch {
	case !ok:
		return ""
	case line.doc != nil:
		return line.fold.of.raw
	}
	return line.text
}

// Find highlights text and scrolls to its first place from here on.
func (p *Page) Find(text string) {
	p.find = strings.ToLower(text)
	p.seek(0, 1)
	p.clamp()
}

// hit tells whether line i shows what is searched.
func (p *Page) hit(i int) bool { return p.has(p.lines[i].text) }

func (p *Page) has(text string) bool {
	return p.find != "" && strings.Contains(strings.ToLower(text), p.find)
}

// seek goes to the next line that holds what is searched, from so many lines
// on, and opens what hides it.
func (p *Page) seek(from, step int) {
	at := &p.top
	if p.aims {
		at = &p.at
	}
	for i := *at + from; i >= 0 && i < len(p.lines); i += step {
		l := &p.lines[i]
		v := l.fold.of
		switch shut := l.doc != nil && l.fold.part == foldHead && v.folds() && !v.open; {
		case shut && !p.has(l.text[:l.key]) && p.has(v.raw):
			before := len(p.lines)
			l.fold.toggle()
			l.doc.laid = nil
			p.lay()
			if step < 0 { // what was opened lies below: its end comes first
				i += len(p.lines) - before + 1
			}
		case p.hit(i):
			*at = i
			return
		}
	}
}

// Reader reads for a pane what the snapshot doesn't hold, one read at a time:
// while one is under way the next waits for it, so that a busy world never
// piles up reads.
type Reader[T any] struct {
	// Most is how long a read may take; 0 is 5 s.
	Most time.Duration

	pane string
	of   string
	busy bool // a read is under way
	more bool // the world changed meanwhile
}

// NewReader makes a reader for a pane. A pane has one of each type.
func NewReader[T any](pane string) Reader[T] { return Reader[T]{pane: pane} }

// Busy tells whether what of names is being read.
func (r *Reader[T]) Busy(of string) bool { return r.busy && r.of == of }

// Answer is what a read brought.
type Answer[T any] struct {
	of    string
	Got   T
	Err   error
	Again bool // the world changed since: read once more
}

// Read reads what of names; nothing when that is "".
func (r *Reader[T]) Read(of string, read func(ctx context.Context) (T, error)) tea.Cmd {
	switch {
	case of == "":
		return nil
	case r.Busy(of):
		r.more = true
		return nil
	}
	r.of, r.busy, r.more = of, true, false
	return AskFor(r.pane, cmp.Or(r.Most, readLimit), func(ctx context.Context) any {
		got, err := read(ctx)
		return Answer[T]{of: of, Got: got, Err: err}
	})
}

// Take unpacks a reply; ok is false for one that is not about of, or not this
// reader's.
func (r *Reader[T]) Take(of string, body any) (a Answer[T], ok bool) {
	if a, ok = body.(Answer[T]); !ok {
		return a, false
	}
	if a.of == r.of { // also when it is no longer wanted: the next read may go
		a.Again = r.more
		r.busy, r.more = false, false
	}
	return a, a.of == of
}
