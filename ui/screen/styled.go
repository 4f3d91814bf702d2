package screen

import (
	"slices"
	"strings"

	"swarmdeck/ui/term"
)

// Span is a part of a text, in bytes, with its role.
type Span struct {
	From, To int
	Role     Role
	Link     string // that a terminal may open, see Opens; "" for none
}

// Styled is a line whose parts have roles of their own. Its text is clean.
type Styled struct {
	Text  string
	Role  Role   // of what is in no span
	Spans []Span // in order
}

// Parts calls part with each stretch of the text, its role and what it opens.
func (s *Styled) Parts(part func(text string, role Role, link string)) {
	at := 0
	for _, p := range s.Spans {
		if p.From > at {
			part(s.Text[at:p.From], s.Role, "")
		}
		part(s.Text[p.From:p.To], p.Role, p.Link)
		at = p.To
	}
	if at < len(s.Text) {
		part(s.Text[at:], s.Role, "")
	}
}

// Styled draws a line at x, y and returns the column after it.
func (c *Canvas) Styled(x, y int, s *Styled) int {
	s.Parts(func(text string, role Role, link string) {
		from := x
		x = c.Text(x, y, role, text)
		if link != "" {
			c.Link(Rect{from, y, x - from, 1}, link)
		}
	})
	return x
}

// Lead puts a text before the line.
func (s *Styled) Lead(text string, role Role) Styled {
	out := Styled{Text: text + s.Text, Role: s.Role, Spans: make([]Span, 0, len(s.Spans)+1)}
	if text != "" {
		out.Spans = append(out.Spans, Span{To: len(text), Role: role})
	}
	for _, p := range s.Spans {
		p.From, p.To = p.From+len(text), p.To+len(text)
		out.Spans = append(out.Spans, p)
	}
	return out
}

// Add puts a text after the line.
func (s *Styled) Add(text string, role Role) Styled {
	end := len(s.Text)
	return Styled{Text: s.Text + text, Role: s.Role, Spans: append(slices.Clip(s.Spans), Span{From: end, To: end + len(text), Role: role})}
}

// Break cuts the line into pieces of at most w cells, at least one, wherever that is: its
// spaces stay as they are.
func (s *Styled) Break(w int) (out []Styled) {
	rest := *s
	for len(rest.Text) > w || len(out) == 0 {
		n, width := 0, 0
		for n < len(rest.Text) {
			k, after := term.Next(rest.Text[n:])
			if width+k.Width > w && n > 0 {
				break
			}
			width, n = width+k.Width, len(rest.Text)-len(after)
		}
		if n == len(rest.Text) {
			break
		}
		var head Styled
		head, rest = rest.split(n)
		out = append(out, head)
	}
	if rest.Text != "" || len(out) == 0 {
		out = append(out, rest)
	}
	return out
}

// split cuts the line before byte n.
func (s *Styled) split(n int) (head, rest Styled) {
	head, rest = Styled{Text: strings.Clone(s.Text[:n]), Role: s.Role}, Styled{Text: s.Text[n:], Role: s.Role}
	for _, p := range s.Spans {
		if p.From < n {
			head.Spans = append(head.Spans, Span{p.From, min(p.To, n), p.Role, p.Link})
		}
		if p.To > n {
			rest.Spans = append(rest.Spans, Span{max(p.From-n, 0), p.To - n, p.Role, p.Link})
		}
	}
	return head, rest
}

// Wrap breaks the line between words into at most `most` pieces of at most w cells, at
// least one; see term.WrapLine.
func (s *Styled) Wrap(w, most int) (out []Styled) {
	if len(s.Text) <= w {
		return []Styled{*s}
	}
	at, next := 0, 0
	for _, piece := range term.WrapLine(s.Text, w) {
		if len(out) >= max(most, 1) {
			break
		}
		from := at
		for from < len(s.Text) && s.Text[from] == ' ' && !strings.HasPrefix(s.Text[from:], piece) {
			from++
		}
		if !strings.HasPrefix(s.Text[from:], piece) { // a character that is broader than the line
			_, rest := term.Next(s.Text[from:])
			at = len(s.Text) - len(rest)
			out = append(out, Styled{Text: piece, Role: s.Role})
			continue
		}
		at = from + len(piece)
		line := Styled{Text: piece, Role: s.Role}
		for next < len(s.Spans) && s.Spans[next].To <= from {
			next++
		}
		for _, p := range s.Spans[next:] {
			if p.From >= at {
				break
			}
			line.Spans = append(line.Spans, Span{max(p.From-from, 0), min(p.To, at) - from, p.Role, p.Link})
		}
		out = append(out, line)
	}
	return out
}
