package emulator

import (
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// run writes printable ASCII, which is most of what programs write.
func (e *Emulator) run(p []byte) {
	e.last = rune(p[len(p)-1])
	if e.insert || !e.wrap || e.cur.lines[e.cur.shift] {
		for _, b := range p {
			e.put(e.drawn(rune(b)), false)
		}
		return
	}
	g := e.grid()
	for len(p) > 0 {
		e.goOn()
		n := min(len(p), g.cols-e.cur.x)
		cells := g.change(e.cur.y)
		split(cells, e.cur.x)
		split(cells, e.cur.x+n)
		to := cells[e.cur.x : e.cur.x+n]
		for i := range to {
			to[i] = cell{r: rune(p[i]), style: e.cur.pen}
		}
		p = p[n:]
		e.advance(n)
	}
}

func (e *Emulator) print(r rune) {
	if r < 0xa0 { // a control of eight bits
		return
	}
	if e.joined(r) {
		return
	}
	if w := displaywidth.DefaultOptions.Rune(r); w > 0 {
		e.last = r
		e.put(r, w == 2)
	}
}

// put writes a character and moves on.
func (e *Emulator) put(r rune, wide bool) {
	g, w := e.grid(), 1
	if wide {
		w = 2
	}
	e.goOn()
	if e.cur.x+w > g.cols {
		if !e.wrap {
			e.cur.x = g.cols - w
		} else {
			g.erase(e.cur.y, e.cur.x, g.cols, e.cur.pen.BG)
			e.cur.over = true
			e.goOn()
		}
	}
	if e.insert {
		g.insert(e.cur.y, e.cur.x, w, e.cur.pen.BG)
	}
	cells := g.change(e.cur.y)
	split(cells, e.cur.x)
	split(cells, e.cur.x+w)
	cells[e.cur.x] = cell{r: r, wide: wide, style: e.cur.pen}
	if wide {
		cells[e.cur.x+1] = cell{tail: true, style: e.cur.pen}
	}
	e.advance(w)
}

// goOn goes to the next line if the last column is written.
func (e *Emulator) goOn() {
	if e.cur.over {
		e.cur.x = 0
		e.index()
	}
}

// advance moves the cursor past what was written.
func (e *Emulator) advance(by int) {
	if e.cur.x += by; e.cur.x >= e.size.Cols {
		e.cur.x, e.cur.over = e.size.Cols-1, e.wrap
	}
}

// index moves down by a line, and scrolls at the bottom.
func (e *Emulator) index() {
	g := e.grid()
	switch e.cur.over = false; {
	case e.cur.y == g.bottom:
		g.up(g.top, g.bottom, 1, e.cur.pen.BG)
	case e.cur.y < g.rows-1:
		e.cur.y++
	}
}

// before is the place of the character before the cursor.
func (e *Emulator) before() (cells []cell, x int, ok bool) {
	x = e.cur.x - 1
	if e.cur.over {
		x++
	}
	if x < 0 {
		return nil, 0, false
	}
	cells = e.grid().lines[e.cur.y].cells
	if cells[x].tail {
		x--
	}
	return cells, x, cells[x].r != 0
}

// maxCluster is what is kept of one character with all that joins it, in bytes.
const maxCluster = 32

// joined adds a character to the one before it if the two are one: a mark that
// stands on it, a part of a picture.
func (e *Emulator) joined(r rune) bool {
	w := displaywidth.DefaultOptions.Rune(r)
	if w > 0 && r < 0x1100 {
		return false // most of what is written
	}
	cells, x, ok := e.before()
	if !ok {
		return w == 0
	}
	c := &cells[x]
	text := textOf(cells[x : x+1])
	if end, _ := utf8.DecodeLastRuneInString(text); w > 0 && end != joiner && !continues(r) {
		return false
	}
	if len(text)+utf8.RuneLen(r) > maxCluster {
		return w == 0
	}
	both := text + string(r)
	first := displaywidth.StringGraphemes(both)
	if first.Next(); len(first.Value()) < len(both) {
		return w == 0 // what is not to be seen is passed over
	}
	cells = e.grid().change(e.cur.y)
	c.all = &both
	if first.Width() == 2 && !c.wide && x+2 <= len(cells) && !e.cur.over {
		split(cells, x+2)
		c.wide, cells[x+1] = true, cell{tail: true, style: c.style}
		e.advance(1)
	}
	return true
}

// joiner makes one picture of two.
const joiner = 0x200d

// continues reports whether a character that takes places of its own may be a part
// of the one before it: the second letter of a flag, the colour of a skin, a letter
// of a Korean syllable.
func continues(r rune) bool {
	return r >= 0x1F1E6 && r <= 0x1F1FF || r >= 0x1F3FB && r <= 0x1F3FF || r < 0x1200 || r >= 0xD7B0 && r <= 0xD7FF
}

// drawn is a character of the set that is on.
func (e *Emulator) drawn(r rune) rune {
	if e.cur.lines[e.cur.shift] && r >= '`' && r <= '~' {
		return []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")[r-'`']
	}
	return r
}
