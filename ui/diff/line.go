package diff

import (
	"slices"
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/syntax"
	"swarmdeck/ui/term"
)

// Kind is what a line of a diff is.
type Kind byte

// The kinds of lines.
const (
	Context Kind = ' '
	Added   Kind = '+'
	Removed Kind = '-'
	Note    Kind = '\\' // it belongs to the line before
)

// Role is how a line of the kind is drawn.
func (k Kind) Role() screen.Role {
	switch k {
	case Added:
		return screen.Added
	case Removed:
		return screen.Removed
	}
	return screen.Text
}

// Line is a line of a diff, without its sign. Its text can be drawn as it is.
type Line struct {
	screen.Styled
	Kind  Kind
	Old   int  // its number before, 0 for none
	New   int  // its number after, 0 for none
	NoEnd bool // it ends without a line break
	Cut   bool // it goes on

	roles []screen.Role // of the bytes of the text until it is settled; nil for none
}

// maxLine is how much of a line is shown, in bytes.
const maxLine = 64 << 10

// parse reads the lines of a segment.
func (g *segment) parse(data []byte, exact bool) []Line {
	text := string(data)
	lines := make([]Line, 0, g.lines)
	old, now := g.old, g.new
	for len(text) > 0 {
		line, rest, whole := strings.Cut(text, "\n")
		text = rest
		if line != "" && Kind(line[0]) == Note {
			if n := len(lines); n > 0 {
				lines[n-1].NoEnd = true
			}
			continue
		}
		if len(lines) == g.lines {
			break
		}
		kind, _ := kindOf([]byte(line[:min(len(line), 16)]))
		l := Line{Kind: kind, Styled: screen.Styled{Role: kind.Role()}, Cut: !whole && int64(len(data)) < g.size}
		if line != "" && Kind(line[0]) == kind {
			line = line[1:]
		}
		if kind != Added {
			l.Old = old
			old++
		}
		if kind != Removed {
			l.New = now
			now++
		}
		if len(line) > maxLine {
			line, l.Cut = line[:maxLine], true
		}
		l.clean(line, exact)
		lines = append(lines, l)
	}
	return lines
}

// clean makes the text harmless: tabs become spaces, with an arrow in the first where it
// must be exact, and what would not be seen is spelled out.
func (l *Line) clean(raw string, exact bool) {
	text := strings.TrimSuffix(raw, "\r")
	ends := text != raw && (exact || l.Kind != Context)
	if !ends && !strings.Contains(text, "\t") && !term.Suspicious(text) {
		l.Text = term.Clean(text)
		return
	}
	var b strings.Builder
	var hidden []screen.Span
	col := 0
	spell := term.Suspicious(text)
	put := func(piece string) {
		if !spell {
			piece = term.Clean(piece)
			b.WriteString(piece)
			col += term.Width(piece)
			return
		}
		piece = term.Reveal(piece)
		hidden = spelled(hidden, piece, b.Len())
		b.WriteString(piece)
		col += term.Width(piece)
	}
	for {
		piece, rest, tab := strings.Cut(text, "\t")
		put(piece)
		if !tab {
			break
		}
		n := term.TabWidth - col%term.TabWidth
		if exact {
			hidden = append(hidden, screen.Span{From: b.Len(), To: b.Len() + len(tabSign), Role: screen.Dim})
			b.WriteString(tabSign)
			b.WriteString("    "[:n-1])
		} else {
			b.WriteString("    "[:n])
		}
		col, text = col+n, rest
	}
	if ends {
		spell = true
		put("\r")
	}
	l.Text = b.String()
	l.role(hidden)
}

// tabSign takes one cell.
const tabSign = "→"

// spelled finds what term.Reveal spelled out in a text that begins at byte at.
func spelled(spans []screen.Span, text string, at int) []screen.Span {
	for from := 0; ; {
		i := strings.Index(text[from:], "⟨")
		if i < 0 {
			return spans
		}
		i += from
		j := strings.Index(text[i:], "⟩")
		if j < 0 {
			return spans
		}
		from = i + j + len("⟩")
		spans = append(spans, screen.Span{From: at + i, To: at + from, Role: screen.Hidden})
	}
}

// role gives parts of the text roles.
func (l *Line) role(spans []screen.Span) {
	if len(spans) == 0 {
		return
	}
	if l.roles == nil {
		l.roles = slices.Repeat([]screen.Role{l.Kind.Role()}, len(l.Text))
	}
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			if l.roles[i] != screen.Hidden {
				l.roles[i] = s.Role
			}
		}
	}
}

// settle turns the roles of bytes into spans.
func (l *Line) settle() {
	base := l.Kind.Role()
	for i := 0; i < len(l.roles); {
		from := i
		for i < len(l.roles) && l.roles[i] == l.roles[from] {
			i++
		}
		if l.roles[from] != base {
			l.Spans = append(l.Spans, screen.Span{From: from, To: i, Role: l.roles[from]})
		}
	}
	l.roles = nil
}

// pair puts the lines of a segment side by side, by their numbers, -1 for none.
func pair(lines []Line) [][2]int {
	out := make([][2]int, 0, len(lines))
	for i := 0; i < len(lines); {
		if lines[i].Kind == Context {
			out = append(out, [2]int{i, i})
			i++
			continue
		}
		del := i
		for i < len(lines) && lines[i].Kind == Removed {
			i++
		}
		add := i
		for i < len(lines) && lines[i].Kind == Added {
			i++
		}
		for k := range max(add-del, i-add) {
			p := [2]int{-1, -1}
			if del+k < add {
				p[0] = del + k
			}
			if add+k < i {
				p[1] = add + k
			}
			out = append(out, p)
		}
	}
	return out
}

// paint gives the lines of a file the colours of its language. A line that is changed
// keeps the colour of its change, but where all lines of the file are new, or gone.
func paint(lines []Line, name string, whole bool) {
	of := syntax.Of(name)
	if of == nil {
		return
	}
	var old, now syntax.Lexer
	for i := range lines {
		l := &lines[i]
		var spans []screen.Span
		switch l.Kind {
		case Removed:
			spans = old.Lex(of, l.Text)
		case Added:
			spans = now.Lex(of, l.Text)
		default:
			old.Lex(of, l.Text)
			spans = now.Lex(of, l.Text)
		}
		if whole || l.Kind == Context {
			l.role(spans)
		}
	}
}
