package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// table writes a table in columns where they fit, else row by row.
func (w *writer) table(t ast.Node) {
	var rows [][]screen.Styled
	var widths []int
	for r := t.FirstChild(); r != nil && len(rows) < MaxRows; r = r.NextSibling() {
		role := w.o.Role
		if r.Kind() == tables.KindTableHeader {
			role = screen.Title
		}
		var row []screen.Styled
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cell := joined(w.lines(c, role))
			if len(row) == len(widths) {
				widths = append(widths, 0)
			}
			widths[len(row)] = max(widths[len(row)], term.Width(cell.Text))
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	bar := " " + string(w.o.Glyphs.Vertical) + " "
	total := 3 * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	fits := total <= w.width()
	for i, row := range rows {
		line := screen.Styled{Role: w.o.Role}
		for j, cell := range row {
			if j > 0 {
				line = line.Add(bar, screen.Border)
			}
			if fits && j < len(row)-1 {
				cell.Text += strings.Repeat(" ", max(widths[j]-term.Width(cell.Text), 0))
			}
			line = joined([]screen.Styled{line, cell}, "")
		}
		w.rows(line)
		if i == 0 && fits {
			w.row(screen.Styled{Text: strings.Repeat(string(w.o.Glyphs.Horizontal), max(total, 1)), Role: screen.Border})
		}
	}
}

// joined makes one line of several.
func joined(lines []screen.Styled, between ...string) (out screen.Styled) {
	gap := " "
	if len(between) > 0 {
		gap = between[0]
	}
	var b strings.Builder
	for i := range lines {
		l := &lines[i]
		if i > 0 {
			b.WriteString(gap)
		} else {
			out.Role = l.Role
		}
		from := b.Len()
		b.WriteString(l.Text)
		if l.Role != out.Role && len(l.Spans) == 0 {
			out.Spans = append(out.Spans, screen.Span{From: from, To: b.Len(), Role: l.Role})
		}
		for _, p := range l.Spans {
			p.From, p.To = p.From+from, p.To+from
			out.Spans = append(out.Spans, p)
		}
	}
	out.Text = b.String()
	return out
}
