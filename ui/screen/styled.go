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
}

// Styled is a line whose parts have roles of their own. Its text is clean.
type Styled struct {
	Text  string
	Role  Role   // of what is in no span
	Spans []Span // in order
}

// Parts calls part with each stretch of the text and its role.
func (s *Styled) Parts(part func(text string, role Role)) {
	at := 0
	for _, p := range s.Spans {
		if p.From > at {
			part(s.Text[at:p.From], s.Role)
		}
		part(s.Text[p.From:p.To], p.Role)
		at = p.To
	}
	if at < len(s.Text) {
		part(s.Text[at:], s.Role)
	}
}

// Styled draws a line at x, y and returns the column after it.
func (c *Canvas) Styled(x, y int, s *Styled) int {
	s.Parts(func(text string, role Role) { x = c.Text(x, y, role, text) })
	return x
}

// Lead puts a text before the line.
func (s *Styled) Lead(text string, role Role) Styled {
	out := Styled{Text: text + s.Text, Role: s.Role, Spans: make([]Span, 0, len(s.Spans)+1)}
	if text != "" {
		out.Spans = append(out.Spans, Span{0, len(text), role})
	}
	for _, p := range s.Spans {
		out.Spans = append(out.Spans, Span{p.From + len(text), p.To + len(text), p.Role})
	}
	return out
}

// Add puts a text after the line.
func (s *Styled) Add(text string, role Role) Styled {
	end := len(s.Text)
	return Styled{Text: s.Text + text, Role: s.Role, Spans: append(slices.Clip(s.Spans), Span{end, end + len(text), role})}
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
			head.Spans = append(head.Spans, Span{p.From, min(p.To, n), p.Role})
		}
		if p.To > n {
			rest.Spans = append(rest.Spans, Span{max(p.From-n, 0), p.To - n, p.Role})
		}
	}
	return head, rest
}
