package pane

import "strings"

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
