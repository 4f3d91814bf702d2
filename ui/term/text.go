package term

import (
	"strings"
)

// TabWidth is the distance of tab stops in cells.
const TabWidth = 4

// Clean returns s as one printable line: escape sequences, controls,
// bidirectional and invisible characters gone, tabs expanded, line breaks as
// spaces, characters of doubtful width replaced. Clean text comes back as it
// is, without a copy.
func Clean(s string) string {
	if ascii(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for col := 0; len(s) > 0; {
		var c Cluster
		c, s = next(s, col)
		b.WriteString(c.Text)
		col += c.Width
	}
	return b.String()
}

// next is Next at a column: a tab is the spaces to its stop.
func next(s string, col int) (Cluster, string) {
	if s != "" && s[0] == '\t' {
		n := TabWidth - col%TabWidth
		return Cluster{"    "[:n], n}, skipMarks(s[1:])
	}
	return Next(s)
}

// CleanLines returns the lines of s, each of them clean and with a line break at its end.
func CleanLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(Clean(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// ascii tells whether s is printable ASCII only.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// Width is the number of cells Clean(s) takes.
func Width(s string) int {
	if ascii(s) {
		return len(s)
	}
	w := 0
	for len(s) > 0 {
		var c Cluster
		c, s = next(s, w)
		w += c.Width
	}
	return w
}

// Cut returns Clean(s) in at most w cells; what doesn't fit ends in "…". It
// reads no further than it must, so a line of a megabyte costs as little as a
// short one.
func Cut(s string, w int) string { return CutWith(s, w, "…") }

// CutWith is Cut with a mark of its own, such as "..." without UTF-8.
func CutWith(s string, w int, mark string) string {
	if w <= 0 {
		return ""
	}
	head, width, rest := take(s, w)
	if rest == "" {
		return head
	}
	mark, mw, _ := take(mark, w)
	if width > w-mw {
		head, _, _ = take(head, w-mw)
	}
	return head + mark
}

// take returns what of Clean(s) fits in w cells, its width, and whether
// something is left: rest is then not empty.
func take(s string, w int) (head string, width int, rest string) {
	if len(s) <= w && ascii(s) {
		return s, len(s), ""
	}
	var b strings.Builder
	for len(s) > 0 {
		c, after := next(s, width)
		if width+c.Width > w {
			return b.String(), width, s
		}
		b.WriteString(c.Text)
		width, s = width+c.Width, after
	}
	return b.String(), width, ""
}

// CutMiddle returns Clean(s) in at most w cells with a mark in the middle: for
// paths and ids, whose ends say the most.
func CutMiddle(s string, w int, mark string) string {
	const end = 16 << 10 // bytes of either end that may be shown
	if len(s) > 2*end && w <= end/4 {
		s = s[:end] + s[len(s)-end:]
	}
	s = Clean(s)
	total := Width(s)
	if total <= w {
		return s
	}
	mw := Width(mark)
	if w < mw+2 {
		return CutWith(s, w, mark)
	}
	left := (w - mw + 1) / 2
	head, hw, _ := take(s, left)
	tail := s
	for skip := total - (w - mw - hw); skip > 0; {
		c, after := Next(tail)
		tail, skip = after, skip-c.Width
	}
	return head + mark + tail
}

// Wrap breaks s into clean lines of at most w cells: at its own line breaks,
// then between words, and within a word that is longer than a line. There is
// always at least one line; leading spaces of a line of s stay, spaces around
// a break go. With w below 1 everything is one empty line.
func Wrap(s string, w int) []string {
	if w < 1 {
		return []string{""}
	}
	var out []string
	for line := range strings.SplitSeq(strings.ReplaceAll(s, "\r\n", "\n"), "\n") {
		out = wrapLine(out, Clean(line), w)
	}
	return out
}

// WrapLine is Wrap for one line: line breaks in s count as spaces.
func WrapLine(s string, w int) []string {
	if w < 1 {
		return []string{""}
	}
	return wrapLine(nil, Clean(s), w)
}

// wrapLine appends the pieces of one clean line.
func wrapLine(out []string, s string, w int) []string {
	for {
		end, width, brk := 0, 0, -1 // brk: the last space that may become a break
		inWord := false
		for end < len(s) {
			c, rest := Next(s[end:])
			if width+c.Width > w {
				break
			}
			if c.Text == space {
				if inWord {
					brk = end
				}
			} else {
				inWord = true
			}
			width += c.Width
			end = len(s) - len(rest)
		}
		switch {
		case end == len(s):
			return append(out, s)
		case s[end] == ' ' && inWord:
			brk = end
		case end == 0: // a character wider than the line
			_, rest := Next(s)
			out, s = append(out, "?"), rest
			if s == "" {
				return out
			}
			continue
		}
		if brk < 0 {
			out, s = append(out, s[:end]), s[end:]
			continue
		}
		out, s = append(out, strings.TrimRight(s[:brk], " ")), strings.TrimLeft(s[brk:], " ")
		if s == "" {
			return out
		}
	}
}
