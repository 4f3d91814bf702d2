package emulator

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/displaywidth"
)

func (e *Emulator) control(b byte) {
	switch b {
	case '\a':
		if e.on.Bell != nil {
			e.on.Bell()
		}
	case '\b':
		e.cur.x, e.cur.over = max(0, e.cur.x-1), false
	case '\t':
		e.tab(1)
	case '\n', '\v', '\f':
		if e.index(); e.newline {
			e.cur.x = 0
		}
	case '\r':
		e.cur.x, e.cur.over = 0, false
	case 0x0e, 0x0f:
		e.cur.shift = int(0x0f - b)
	}
}

func (e *Emulator) esc(cmd ansi.Cmd) {
	g := e.grid()
	switch inter := cmd.Intermediate(); {
	case inter == '(' || inter == ')':
		e.cur.lines[inter-'('] = cmd.Final() == '0'
		return
	case inter == '#' && cmd.Final() == '8': // a screen of E to align by
		for y := range g.rows {
			for x, cells := 0, g.change(y); x < len(cells); x++ {
				cells[x] = cell{r: 'E'}
			}
		}
		return
	case inter != 0:
		return
	}
	switch cmd.Final() {
	case '7':
		g.saved = e.cur
	case '8':
		e.restore(g)
	case 'D':
		e.index()
	case 'E':
		e.index()
		e.cur.x = 0
	case 'H':
		e.tabs.Set(e.cur.x)
	case 'M':
		e.reverseIndex()
	case 'c':
		e.restart()
	}
}

func (e *Emulator) restore(g *grid) {
	e.cur = g.saved
	e.cur.x, e.cur.y = min(e.cur.x, g.cols-1), min(e.cur.y, g.rows-1)
}

func (e *Emulator) reverseIndex() {
	g := e.grid()
	switch e.cur.over = false; {
	case e.cur.y == g.top:
		g.down(g.top, g.bottom, 1, e.cur.pen.BG)
	case e.cur.y > 0:
		e.cur.y--
	}
}

// tab moves by n stops, back if n is negative.
func (e *Emulator) tab(n int) {
	e.cur.x, e.cur.over = min(e.tabs.Find(e.cur.x, n), e.size.Cols-1), false
}

func (e *Emulator) csi(cmd ansi.Cmd) {
	s, final := &e.parser, cmd.Final()
	if cmd.Prefix() == 0 && cmd.Intermediate() == 0 {
		if !e.moves(final) && !e.edits(final) {
			e.sets(final)
		}
		return
	}
	switch int(cmd) {
	case ansi.Command('?', 0, 'h'), ansi.Command('?', 0, 'l'):
		for _, p := range s.params {
			e.mode(p.Param(0), final == 'h')
		}
	case ansi.Command('?', 0, 'J'), ansi.Command('?', 0, 'K'):
		e.edits(final)
	case ansi.Command('?', 0, 'n'):
		if s.number(0, 0) == 6 {
			e.reply("\x1b[?%d;%d;1R", e.cur.y+1, e.cur.x+1)
		}
	case ansi.Command('>', 0, 'c'):
		if s.number(0, 0) == 0 {
			e.reply("\x1b[>1;10;0c")
		}
	case ansi.Command('?', '$', 'p'):
		e.reply("\x1b[?%d;%d$y", s.number(0, 0), e.modeIs(s.number(0, 0)))
	case ansi.Command(0, '!', 'p'):
		e.soften()
	}
}

// moves takes the sequences that move the cursor.
func (e *Emulator) moves(final byte) bool {
	s, g, cur := &e.parser, e.grid(), &e.cur
	n := s.number(0, 1)
	first, last := 0, g.rows-1
	if cur.y >= g.top && cur.y <= g.bottom { // within what scrolls it stays there
		first, last = g.top, g.bottom
	}
	switch final {
	case 'A', 'F':
		cur.y = max(cur.y-n, first)
	case 'B', 'E', 'e':
		cur.y = min(cur.y+n, last)
	case 'C', 'a':
		cur.x = min(cur.x+n, g.cols-1)
	case 'D':
		cur.x = max(cur.x-n, 0)
	case 'G', '`':
		cur.x = min(n, g.cols) - 1
	case 'H', 'f':
		e.goTo(s.number(1, 1)-1, n-1)
	case 'd':
		e.goTo(cur.x, n-1)
	case 'I':
		e.tab(n)
	case 'Z':
		e.tab(-n)
	default:
		return false
	}
	if final == 'E' || final == 'F' {
		cur.x = 0
	}
	cur.over = false
	return true
}

// goTo places the cursor.
func (e *Emulator) goTo(x, y int) {
	g, first, last := e.grid(), 0, e.size.Rows-1
	if e.cur.origin {
		first, last = g.top, g.bottom
	}
	e.cur.x, e.cur.y, e.cur.over = min(x, g.cols-1), min(first+y, last), false
}

// edits takes the sequences that change what stands on the screen.
func (e *Emulator) edits(final byte) bool {
	s, g, cur := &e.parser, e.grid(), &e.cur
	n, ground := s.number(0, 1), cur.pen.BG
	scrolls := cur.y >= g.top && cur.y <= g.bottom
	switch final {
	case '@':
		g.insert(cur.y, cur.x, n, ground)
	case 'P':
		g.remove(cur.y, cur.x, n, ground)
	case 'X':
		g.erase(cur.y, cur.x, min(cur.x+n, g.cols), ground)
	case 'L':
		if scrolls {
			g.down(cur.y, g.bottom, n, ground)
			cur.x = 0
		}
	case 'M':
		if scrolls {
			lines := g.leaves
			g.leaves = nil // what is deleted has not scrolled
			g.up(cur.y, g.bottom, n, ground)
			g.leaves = lines
			cur.x = 0
		}
	case 'S':
		g.up(g.top, g.bottom, n, ground)
	case 'T':
		g.down(g.top, g.bottom, n, ground)
	case 'J':
		e.eraseScreen(s.number(0, 0))
	case 'K':
		switch s.number(0, 0) {
		case 0:
			g.erase(cur.y, cur.x, g.cols, ground)
		case 1:
			g.erase(cur.y, 0, cur.x+1, ground)
		case 2:
			g.erase(cur.y, 0, g.cols, ground)
		}
	case 'b':
		if e.last != 0 {
			wide := displaywidth.DefaultOptions.Rune(e.last) == 2
			for range min(n, maxRepeat) {
				e.put(e.last, wide)
			}
		}
		return true
	default:
		return false
	}
	cur.over = false
	return true
}

func (e *Emulator) eraseScreen(which int) {
	g, cur := e.grid(), &e.cur
	from, to := 0, g.rows
	switch which {
	case 0:
		g.erase(cur.y, cur.x, g.cols, cur.pen.BG)
		from = cur.y + 1
	case 1:
		g.erase(cur.y, 0, cur.x+1, cur.pen.BG)
		to = cur.y
	case 2:
	case 3:
		if !e.inFull {
			e.history.Take()
		}
		return
	default:
		return
	}
	if from < to {
		g.blank(g.lines[from:to], cur.pen.BG)
	}
}

// sets takes the sequences that change how the others work, and questions.
func (e *Emulator) sets(final byte) {
	s, g := &e.parser, e.grid()
	switch final {
	case 'm':
		e.cur.restyle(s.params)
	case 'r':
		top, bottom := s.number(0, 1)-1, min(s.number(1, g.rows), g.rows)-1
		if top < bottom {
			g.top, g.bottom = top, bottom
			e.goTo(0, 0)
		}
	case 's':
		g.saved = e.cur
	case 'u':
		e.restore(g)
	case 'g':
		switch s.number(0, 0) {
		case 0:
			e.tabs.Reset(e.cur.x)
		case 3:
			e.tabs.Clear()
		}
	case 'h', 'l':
		for _, p := range s.params {
			switch p.Param(0) {
			case 4:
				e.insert = final == 'h'
			case 20:
				e.newline = final == 'h'
			}
		}
	case 'c':
		if s.number(0, 0) == 0 {
			e.reply("\x1b[?62;1;6;22c")
		}
	case 'n':
		switch s.number(0, 0) {
		case 5:
			e.reply("\x1b[0n")
		case 6:
			e.reply("\x1b[%d;%dR", e.cur.y+1, e.cur.x+1)
		}
	}
}

// reply answers the program.
func (e *Emulator) reply(format string, args ...any) {
	if e.on.Reply != nil {
		e.on.Reply(fmt.Appendf(nil, format, args...))
	}
}
