package diff

import (
	"unicode"
	"unicode/utf8"

	engine "swarmdeck/engine/diff"
	"swarmdeck/ui/screen"
)

// Bounds of the words of two lines that are compared.
const (
	maxWords    = 300
	maxWorded   = 2000 // bytes
	leastShared = 3    // one in so many bytes must be the same, else the lines just differ
)

// mark marks the words that differ in lines that took each other's place.
func mark(lines []Line, pairs [][2]int) {
	for _, p := range pairs {
		if p[0] < 0 || p[1] < 0 || p[0] == p[1] {
			continue
		}
		old, now := &lines[p[0]], &lines[p[1]]
		if len(old.Text) > maxWorded || len(now.Text) > maxWorded {
			continue
		}
		a, b := words(old.Text), words(now.Text)
		if len(a) > maxWords || len(b) > maxWords {
			continue
		}
		shared, gone, came := differing(a, b)
		if shared*leastShared < min(len(old.Text), len(now.Text)) || shared == 0 {
			continue
		}
		old.role(joined(gone, screen.RemovedWord))
		now.role(joined(came, screen.AddedWord))
	}
}

// differing are the stretches of bytes that only one has, and how many both have that
// are no spaces.
func differing(a, b []string) (shared int, gone, came []screen.Span) {
	i, j := 0, 0
	for _, e := range engine.Lines(a, b) {
		n := len(e.Line)
		switch e.Sign {
		case '-':
			gone = append(gone, screen.Span{From: i, To: i + n})
			i += n
		case '+':
			came = append(came, screen.Span{From: j, To: j + n})
			j += n
		default:
			if e.Line[0] != ' ' {
				shared += n
			}
			i, j = i+n, j+n
		}
	}
	return shared, gone, came
}

// joined are the spans, in a role.
func joined(spans []screen.Span, role screen.Role) []screen.Span {
	for i := range spans {
		spans[i].Role = role
	}
	return spans
}

// words are the pieces of a text: words, spaces, and signs one by one.
func words(s string) (out []string) {
	for len(s) > 0 && len(out) <= maxWords {
		n := 0
		first := class(s)
		for n < len(s) && (n == 0 || first != signs && class(s[n:]) == first) {
			_, size := utf8.DecodeRuneInString(s[n:])
			n += size
		}
		for n < len(s) && class(s[n:]) == marks {
			_, size := utf8.DecodeRuneInString(s[n:])
			n += size
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

const (
	signs = iota
	letters
	spaces
	marks
)

func class(s string) int {
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return letters
	case r == ' ':
		return spaces
	case unicode.IsMark(r):
		return marks
	}
	return signs
}
