// Package markdown lays out text that agents wrote as Markdown: headings, lists, quotes,
// tables and code, in rows for a screen. Line breaks of a paragraph are kept. What is
// written is what is shown: HTML is text, pictures are their links, and a link shows where
// it leads unless the terminal does.
//
// The text may be hostile. Whatever it is, rows are printable, no broader than asked and
// of a bounded number, and the work grows with the length of the text.
package markdown

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Bounds of a layout.
const (
	MaxRows = 2000      // the last one says that there is more
	maxText = 256 << 10 // bytes that are looked at
	minimum = 8         // cells of a row, whatever is asked
)

// Options of Render. Glyphs are required.
type Options struct {
	Width  int // cells
	Glyphs *screen.Glyphs
	Links  bool        // the terminal opens links: they need not be written out
	Role   screen.Role // of text without a role of its own
}

// Render lays a text out, in at least one row.
func Render(s string, o Options) []screen.Styled {
	o.Width = max(o.Width, minimum)
	cut := len(s) > maxText
	if cut {
		s = s[:maxText]
	}
	s = strings.TrimSuffix(term.CleanLines(s), "\n") // so that no sequence is cut in two by a sign of Markdown
	w := &writer{o: o, src: []byte(s)}
	if strange(s) {
		w.plain(s)
	} else {
		w.blocks(newParser().Parse(text.NewReader(w.src)))
	}
	if w.full() || cut {
		w.out = append(w.out[:min(len(w.out), MaxRows-1)], screen.Styled{Text: o.Glyphs.Ellipsis + " there is more: the command that shows the log has it whole", Role: screen.Dim})
	}
	if len(w.out) == 0 {
		w.out = append(w.out, screen.Styled{Role: o.Role})
	}
	return w.out
}

// newParser reads CommonMark with tables and bare links.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(), util.Prioritized(extension.NewLinkifyParser(), 999))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(), util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// Bounds of what is taken for Markdown. A person's text keeps to them; past them a parser
// takes long.
const (
	maxNested = 32       // quotes and lists in each other
	maxRun    = 16 << 10 // bytes without an empty line
	maxCells  = 20_000   // of a table: each of its rows has as many as its widest
)

// strange tells a text that no person would write as Markdown.
func strange(s string) bool {
	run, lines, bars := 0, 0, 0
	for line := range strings.SplitSeq(s, "\n") {
		if run += len(line) + 1; strings.TrimSpace(line) == "" {
			run, lines, bars = 0, 0, 0
		}
		lines, bars = lines+1, max(bars, strings.Count(line, "|"))
		deep := 0
		for i := 0; i < len(line) && strings.IndexByte(" \t>-+*.)0123456789", line[i]) >= 0; i++ {
			if strings.IndexByte(">-+*.)", line[i]) >= 0 && (i+1 == len(line) || line[i] == '>' || line[i+1] == ' ') {
				deep++
			}
		}
		if run > maxRun || deep > maxNested || lines*bars > maxCells {
			return true
		}
	}
	return false
}

// writer collects rows.
type writer struct {
	o     Options
	src   []byte
	out   []screen.Styled
	leads []lead
	wide  int // cells of the leads
}

// lead is what stands before the rows of a block: a list's sign, a quote's bar.
type lead struct {
	first, rest string
	role        screen.Role
	used        bool
}

func (w *writer) full() bool { return len(w.out) >= MaxRows }

func (w *writer) width() int { return max(w.o.Width-w.wide, minimum/2) }

// within writes a block after a lead. One that leaves no room has none.
func (w *writer) within(l lead, write func()) {
	n := term.Width(l.first)
	if w.wide+n > w.o.Width-minimum/2 {
		write()
		return
	}
	w.leads, w.wide = append(w.leads, l), w.wide+n
	write()
	w.leads, w.wide = w.leads[:len(w.leads)-1], w.wide-n
}

// row writes one row, which is no broader than width.
func (w *writer) row(s screen.Styled) {
	if w.full() {
		return
	}
	for i := len(w.leads) - 1; i >= 0; i-- {
		l := &w.leads[i]
		before := l.first
		if l.used {
			before = l.rest
		}
		l.used = true
		s = s.Lead(before, l.role)
	}
	w.out = append(w.out, s)
}

// rows writes a line, broken between words.
func (w *writer) rows(s screen.Styled) {
	for _, piece := range s.Wrap(w.width(), MaxRows-len(w.out)) {
		w.row(piece)
	}
}

// plain writes a text that is no Markdown.
func (w *writer) plain(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		if w.full() {
			return
		}
		w.rows(screen.Styled{Text: line, Role: w.o.Role})
	}
}

// blocks writes what is in a block.
func (w *writer) blocks(of ast.Node) {
	for n := of.FirstChild(); n != nil && !w.full(); n = n.NextSibling() {
		if w.apart(n) {
			w.row(screen.Styled{Role: w.o.Role})
		}
		w.block(n)
	}
}

// apart reports an empty line before a block. The parser's word does not count behind a
// fence, which it takes for one.
func (w *writer) apart(n ast.Node) bool {
	if n.PreviousSibling() == nil || !n.HasBlankPreviousLines() {
		return false
	}
	if n.PreviousSibling().Kind() != ast.KindFencedCodeBlock || n.Kind() == ast.KindFencedCodeBlock || n.Lines() == nil || n.Lines().Len() == 0 {
		return true
	}
	before := w.src[:n.Lines().At(0).Start]
	before = before[:bytes.LastIndexByte(before, '\n')+1]
	before = bytes.TrimSuffix(before, []byte("\n"))
	return len(bytes.Trim(before[bytes.LastIndexByte(before, '\n')+1:], " \t\r>")) == 0
}

func (w *writer) block(n ast.Node) {
	g := w.o.Glyphs
	switch n := n.(type) {
	case *ast.Heading:
		w.inline(n, screen.Title)
	case *ast.Blockquote:
		w.within(lead{first: string(g.Vertical) + " ", rest: string(g.Vertical) + " ", role: screen.Border}, func() { w.blocks(n) })
	case *ast.List:
		w.list(n)
	case *ast.FencedCodeBlock:
		w.code(n, string(n.Language(w.src)))
	case *ast.CodeBlock:
		w.code(n, "")
	case *ast.HTMLBlock:
		w.raw(n.Lines())
		if n.HasClosure() {
			w.rows(screen.Styled{Text: term.Clean(strings.TrimRight(string(n.ClosureLine.Value(w.src)), "\r\n")), Role: w.o.Role})
		}
	case *ast.LinkReferenceDefinition:
		w.raw(n.Lines())
	case *ast.ThematicBreak:
		w.row(screen.Styled{Text: strings.Repeat(string(g.Horizontal), min(w.width(), 40)), Role: screen.Border})
	default:
		switch {
		case n.Kind() == tables.KindTable:
			w.table(n)
		case n.Type() == ast.TypeInline || n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeInline:
			w.inline(n, w.o.Role)
		default:
			w.blocks(n)
		}
	}
}

// raw writes lines as they are.
func (w *writer) raw(lines *text.Segments) {
	for i := 0; i < lines.Len() && !w.full(); i++ {
		at := lines.At(i)
		w.rows(screen.Styled{Text: term.Clean(strings.TrimRight(string(at.Value(w.src)), "\r\n")), Role: w.o.Role})
	}
}

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
