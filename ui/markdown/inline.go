package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// inline writes the text of a block, line by line.
func (w *writer) inline(n ast.Node, role screen.Role) {
	for _, line := range w.lines(n, role) {
		if w.full() {
			return
		}
		w.rows(line)
	}
}

// lines are the text of a block, one for each of its own lines.
func (w *writer) lines(n ast.Node, role screen.Role) []screen.Styled {
	t := &texts{w: w, base: role}
	t.children(n, role, "")
	return append(t.done, t.line())
}

// texts gathers the lines of a block.
type texts struct {
	w     *writer
	base  screen.Role
	now   strings.Builder
	spans []screen.Span
	done  []screen.Styled
}

func (t *texts) line() screen.Styled {
	s := screen.Styled{Text: t.now.String(), Role: t.base, Spans: t.spans}
	t.now.Reset()
	t.spans = nil
	return s
}

// add puts more text on the line.
func (t *texts) add(s string, role screen.Role, link string) {
	if s = term.Clean(s); s == "" {
		return
	}
	from := t.now.Len()
	t.now.WriteString(s)
	if role != t.base || link != "" {
		t.spans = append(t.spans, screen.Span{From: from, To: t.now.Len(), Role: role, Link: link})
	}
}

func (t *texts) children(of ast.Node, role screen.Role, link string) {
	for n := of.FirstChild(); n != nil; n = n.NextSibling() {
		t.inline(n, role, link)
	}
}

func (t *texts) inline(n ast.Node, role screen.Role, link string) {
	switch n := n.(type) {
	case *ast.Text:
		s := n.Segment.Value(t.w.src)
		if !n.IsRaw() {
			s = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(s)))
		}
		t.add(string(s), role, link)
		if n.SoftLineBreak() || n.HardLineBreak() {
			t.done = append(t.done, t.line())
		}
	case *ast.String:
		t.add(string(n.Value), role, link)
	case *ast.CodeSpan:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if s, ok := c.(*ast.Text); ok {
				t.add(strings.ReplaceAll(string(s.Segment.Value(t.w.src)), "\n", " "), screen.Literal, link)
			}
		}
	case *ast.Emphasis:
		inner := screen.Emphasis
		if n.Level > 1 {
			inner = screen.Strong
		}
		if link != "" {
			inner = role
		}
		t.children(n, inner, link)
	case *ast.Link:
		t.link(n, string(n.Destination), role, link)
	case *ast.Image:
		t.link(n, string(n.Destination), role, link)
	case *ast.AutoLink:
		label := string(n.Label(t.w.src))
		t.add(label, screen.Accent, t.opens(string(n.URL(t.w.src))))
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			at := n.Segments.At(i)
			t.add(string(at.Value(t.w.src)), role, link)
		}
	default:
		t.children(n, role, link)
	}
}

// link adds a link's text, and where it leads, unless the terminal shows that. It always
// stands beside a text that looks as if it led elsewhere.
func (t *texts) link(n ast.Node, to string, role screen.Role, outer string) {
	if outer != "" { // links in links are one
		t.children(n, role, outer)
		return
	}
	to = string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations([]byte(to)))))
	opens := t.opens(to)
	from, lines := t.now.Len(), len(t.done)
	t.children(n, screen.Accent, opens)
	said := ""
	if now := t.now.String(); len(t.done) == lines && from <= len(now) {
		said = now[from:]
	}
	if to == "" || said == term.Clean(to) || t.w.o.Links && opens != "" && len(t.done) == lines && said != "" && !strings.Contains(said, "://") && !strings.Contains(said, "www.") {
		return
	}
	before := " ("
	if said == "" && len(t.done) == lines {
		before = "("
	}
	t.add(before, t.base, "")
	t.add(to, screen.Accent, opens)
	t.add(")", t.base, "")
}

// opens is what may be opened for a link, "" for nothing.
func (t *texts) opens(to string) string {
	if !screen.Opens(to) {
		return ""
	}
	return to
}
