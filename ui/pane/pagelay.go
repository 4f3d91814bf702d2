package pane

import (
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// labelWidth is the width of the column of labels on a page of usual width.
const labelWidth = 12

// labels is that of a page of some width: ten cells, which the longest words take, from 35 on.
func labels(w int) int { return min(labelWidth, w*2/7) }

type laidKey struct {
	text  string
	exact bool
	wide  bool
}

// pageLine is one line of a page as it is drawn.
type pageLine struct {
	label string
	lead  string // before the text, in the role of borders
	key   int    // bytes of the text that are a name
	text  string
	note  string // after the text
	role  screen.Role
	head  bool
	exact bool
	wide  bool
	cut   bool   // the text may be longer than the line
	slide bool   // it is a line of a table
	doc   *folds // the document that the line is of
	fold  foldLine
	item  Item
	spans []screen.Span // parts of the text with roles of their own
}

func (p *Page) lay() {
	p.lines, p.ends, p.broad = p.lines[:0], p.ends[:0], 0
	label := labels(p.w)
	was := p.laid
	p.laid = make(map[laidKey][]string, len(p.paras))
	for i := range p.paras {
		para := &p.paras[i]
		room := max(p.w-label-2, 1)
		if para.Wide {
			room += label
		}
		first := len(p.lines)
		switch doc := p.docs[string(para.JSON)]; {
		case para.Head:
			if first > 0 {
				p.lines = append(p.lines, pageLine{})
			}
			p.lines = append(p.lines, pageLine{label: para.Label, role: para.Role, head: true})
		case doc != nil:
			if doc.laid == nil || doc.room != room {
				doc.laid, doc.room = doc.lay(para, room), room
			}
			p.lines = append(p.lines, doc.laid...)
		case para.Flow != nil:
			for _, line := range para.Flow.Lines(room) {
				p.lines = append(p.lines, pageLine{text: line.Text, role: line.Role, spans: line.Spans, wide: para.Wide})
			}
		case para.Rows != nil:
			for _, row := range para.Rows {
				p.lines = append(p.lines, pageLine{lead: row.Lead, text: row.Text, note: row.Note, role: row.Role, wide: para.Wide, cut: true, item: row.Item})
			}
		case para.Table:
			for line := range strings.SplitSeq(para.Text, "\n") {
				line = term.Reveal(line)
				p.broad = max(p.broad, term.Width(line))
				p.lines = append(p.lines, pageLine{text: line, role: para.Role, exact: true, wide: true, slide: true})
			}
		default:
			for _, line := range p.wrapped(para, was, room) {
				p.lines = append(p.lines, pageLine{text: line, role: para.Role, exact: para.Exact || para.JSON != nil, wide: para.Wide})
			}
		}
		if !para.Head && first < len(p.lines) {
			p.lines[first].label = para.Label
		}
		p.ends = append(p.ends, len(p.lines)-1)
	}
	p.clamp()
}

// wrapped are the lines of a paragraph of text.
func (p *Page) wrapped(para *Para, was map[laidKey][]string, room int) []string {
	text, exact := para.Text, para.Exact
	if para.JSON != nil {
		text, exact = string(para.JSON), true
	}
	key := laidKey{text, exact, para.Wide}
	lines, ok := was[key]
	if !ok {
		if exact {
			for line := range strings.SplitSeq(text, "\n") {
				lines = append(lines, term.WrapLine(term.Reveal(line), room)...)
			}
		} else {
			lines = term.Wrap(text, room)
		}
	}
	p.laid[key] = lines
	return lines
}

// lay lays out the lines of a document that are in sight; what is folded takes one line,
// the rest is wrapped and nothing in it is hidden.
func (f *folds) lay(para *Para, room int) (out []pageLine) {
	for _, l := range f.root.lines(nil) {
		indent := min(2*l.of.depth, max(room/2, 0)/2*2)
		line := pageLine{lead: strings.Repeat(" ", indent), role: screen.Text, exact: true, wide: para.Wide, doc: f, fold: l}
		text, note := l.text()
		line.note = note
		key := ""
		if l.part == foldHead && l.of.key != "" {
			key = term.Reveal(l.of.key) + ": "
		}
		text = key + term.Reveal(text)
		width := max(room-indent-2, 1)
		if note != "" {
			line.text, line.key, line.cut = text, len(key), true
			out = append(out, line)
			continue
		}
		for _, piece := range term.WrapLine(text, width) {
			line.text, line.key = piece, min(len(key), len(piece))
			out = append(out, line)
			key = ""
		}
	}
	return out
}
