package overlay

import (
	"cmp"
	"strings"
	"unicode"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Offer is a word that tab completes in a Compose: a command, which begins the text with a
// slash, or a file, which begins a word with an at sign.
type Offer struct {
	Word  string // as it is typed, such as /plan or @src/main.go
	Text  string // what is put in its place; "" is the word
	About string
}

// completion is the way of a tab through what a word may become.
type completion struct {
	all  []Offer
	at   int // the one that was put, -1 for none yet
	from int // where the word begins on its line
}

// complete puts the next of what the word before the cursor may become. It tells whether
// there was such a word.
func (p *Compose) complete() bool {
	if p.way == nil {
		all, from, ok := p.offered()
		if !ok {
			return false
		}
		p.way = &completion{all: all, at: -1, from: from}
	}
	w := p.way
	if len(w.all) == 0 {
		return true
	}
	if longer := common(w.all); w.at < 0 && len(w.all) > 1 && len([]rune(longer)) > p.text.Column()-w.from {
		p.put(w.from, longer)
		p.way = nil
		return true
	}
	w.at = (w.at + 1) % len(w.all)
	o := w.all[w.at]
	p.put(w.from, cmp.Or(o.Text, o.Word))
	if len(w.all) == 1 {
		p.insert(" ")
		p.way = nil
	}
	return true
}

// offered are the offers that the word before the cursor begins, and where it does; ok is
// false for a word that is none of theirs.
func (p *Compose) offered() (all []Offer, from int, ok bool) {
	line, at := p.line(), p.text.Column()
	for from = at; from > 0 && !unicode.IsSpace(line[from-1]); from-- {
	}
	word := string(line[from:at])
	first := p.text.Line() == 0 && from == 0
	if !strings.HasPrefix(word, "@") && !(first && strings.HasPrefix(word, "/")) {
		return nil, 0, false
	}
	for _, o := range p.Offers {
		if strings.HasPrefix(o.Word, word) {
			all = append(all, o)
		}
	}
	return all, from, len(p.Offers) > 0
}

// common is what the words of all offers begin with.
func common(all []Offer) string {
	head := all[0].Word
	for _, o := range all[1:] {
		for !strings.HasPrefix(o.Word, head) {
			head = head[:len(head)-1]
		}
	}
	return strings.ToValidUTF8(head, "")
}

// offering draws what tab may put; it tells whether it did.
func (p *Compose) offering(c *screen.Canvas, r screen.Rect) bool {
	all, at := []Offer(nil), 0
	if p.way != nil {
		all, at = p.way.all, max(p.way.at, 0)
	} else if some, _, ok := p.offered(); ok {
		all = some
	}
	if len(all) == 0 {
		return false
	}
	c.Fill(r, screen.Dim, ' ')
	in := c.Sub(r)
	x := in.Text(0, 0, screen.Dim, "tab: ")
	for i, o := range all[at:] {
		if i > 0 && x+term.Width(o.Word) >= r.W-2 {
			in.Text(x, 0, screen.Dim, c.Glyphs().Ellipsis)
			break
		}
		role := screen.Accent
		if i == 0 && p.way != nil {
			role = screen.Title
		}
		x = in.Text(x, 0, role, o.Word) + 1
		if i == 0 && o.About != "" && (len(all) == 1 || p.way != nil) {
			x = in.Text(x, 0, screen.Dim, o.About) + 2
		}
	}
	return true
}
