// Package diff shows how a text changes.
package diff

import (
	"fmt"
	"strings"
)

const (
	context = 3       // lines of context around a change
	cells   = 1 << 20 // lines out times lines in that are compared one by one
)

// Unified shows how a file's text changes, as a unified diff below the file's
// name. Where too much has changed to be compared line by line, all that
// differs goes out and comes in as one. It ends with the line that takes it
// past most bytes. Where one text ends its last line and the other does not, that is
// said as git says it.
func Unified(path, before, after string, most int) string {
	var out strings.Builder
	out.WriteString(path)
	a, b := textLines(before), textLines(after)
	if ended(before) != ended(after) {
		unend(a, before)
		unend(b, after)
	}
	for _, h := range hunks(Lines(a, b)) {
		fmt.Fprintf(&out, "\n@@ -%s +%s @@", h.span(h.old, '+'), h.span(h.new, '-'))
		for _, e := range h.edits {
			if out.Len() > most {
				return out.String()
			}
			out.WriteByte('\n')
			out.WriteByte(e.Sign)
			out.WriteString(e.Line)
		}
	}
	return out.String()
}

func ended(s string) bool { return s == "" || strings.HasSuffix(s, "\n") }

// unend says of a text's last line that nothing ends it.
func unend(lines []string, s string) {
	if !ended(s) {
		lines[len(lines)-1] += "\n\\ No newline at end of file"
	}
}

func textLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// Edit is one line of a diff: ' ' stays, '-' goes out, '+' comes in.
type Edit struct {
	Sign byte
	Line string
}

// Lines leads from a to b. What is the same at both ends is not compared again;
// where too much is left, all of it goes out and comes in.
func Lines(a, b []string) []Edit {
	var out []Edit
	same := func(lines []string) {
		for _, l := range lines {
			out = append(out, Edit{' ', l})
		}
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	same(a[:head])
	out = append(out, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	same(a[len(a)-tail:])
	return out
}

// middle compares by the longest common subsequence.
func middle(a, b []string) (out []Edit) {
	n, m := len(a), len(b)
	if n*m > cells {
		n, m = 0, 0 // too many: all of it
	}
	// most[i*(m+1)+j] is how many lines a[i:] and b[j:] have in common.
	most := make([]int32, (n+1)*(m+1))
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			at := i*(m+1) + j
			if a[i] == b[j] {
				most[at] = most[at+m+2] + 1
			} else {
				most[at] = max(most[at+m+1], most[at+1])
			}
		}
	}
	i, j := 0, 0
	for i < n && j < m {
		switch at := i*(m+1) + j; {
		case a[i] == b[j]:
			out = append(out, Edit{' ', a[i]})
			i, j = i+1, j+1
		case most[at+m+1] >= most[at+1]:
			out = append(out, Edit{'-', a[i]})
			i++
		default:
			out = append(out, Edit{'+', b[j]})
			j++
		}
	}
	for ; i < len(a); i++ {
		out = append(out, Edit{'-', a[i]})
	}
	for ; j < len(b); j++ {
		out = append(out, Edit{'+', b[j]})
	}
	return out
}

// hunk is a stretch of changes with the lines around them.
type hunk struct {
	old, new int // lines before it, of either text
	edits    []Edit
}

// span is where a hunk lies in one of the texts: the number of its first line,
// and how many there are; skip is the sign of lines that are not of that text.
func (h *hunk) span(before int, skip byte) string {
	n := 0
	for _, e := range h.edits {
		if e.Sign != skip {
			n++
		}
	}
	if n > 0 {
		before++
	}
	if n == 1 {
		return fmt.Sprint(before)
	}
	return fmt.Sprintf("%d,%d", before, n)
}

// hunks are the stretches of edits that change something.
func hunks(all []Edit) (out []hunk) {
	end := 0 // of the last hunk
	oldAt, newAt := 0, 0
	for i, e := range all {
		if e.Sign != ' ' {
			from := max(i-context, end)
			switch {
			case len(out) > 0 && from == end:
				last := &out[len(out)-1]
				last.edits = append(last.edits, all[end:i+1]...)
			default:
				out = append(out, hunk{old: oldAt - (i - from), new: newAt - (i - from), edits: append([]Edit(nil), all[from:i+1]...)})
			}
			end = i + 1
		} else if len(out) > 0 && end == i && i-lastChange(all, i) <= context {
			last := &out[len(out)-1]
			last.edits = append(last.edits, e)
			end = i + 1
		}
		if e.Sign != '+' {
			oldAt++
		}
		if e.Sign != '-' {
			newAt++
		}
	}
	return out
}

// lastChange is the last edit before i that changes something, -1 for none.
func lastChange(all []Edit, i int) int {
	for i--; i >= 0 && all[i].Sign == ' '; i-- {
	}
	return i
}
