package term

import "strings"

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
