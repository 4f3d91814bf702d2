package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// list writes a list, its signs in a column.
func (w *writer) list(l *ast.List) {
	number := l.Start
	for n := l.FirstChild(); n != nil && !w.full(); n = n.NextSibling() {
		sign := string(w.o.Glyphs.Bullet) + " "
		if l.IsOrdered() {
			sign = strconv.Itoa(number) + string(rune(l.Marker)) + " "
			number++
		}
		if w.apart(n) {
			w.row(screen.Styled{Role: w.o.Role})
		}
		w.within(lead{first: sign, rest: strings.Repeat(" ", term.Width(sign)), role: screen.Dim}, func() {
			if n.FirstChild() == nil {
				w.row(screen.Styled{Role: w.o.Role})
			}
			w.blocks(n)
		})
	}
}
