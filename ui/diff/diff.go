// Package diff reads unified diffs, whoever wrote them, and gives each line its number
// and its role on the screen. It draws nothing and runs nothing.
package diff

import (
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/ui/screen"
)

// Kind is what a line of a diff is.
type Kind byte

// The kinds of lines.
const (
	Context Kind = ' '
	Added   Kind = '+'
	Removed Kind = '-'
	Hunk    Kind = '@' // where a hunk begins
	Note    Kind = '\\'
)

// Line is a line of a diff, without its sign.
type Line struct {
	Kind Kind
	Old  int // its number before, 0 for none
	New  int // its number after, 0 for none
	Text string
}

// File is how one file changes.
type File struct {
	Path  string
	Lines []Line
}

// Counts are the lines that come in and go out.
func (f *File) Counts() (added, removed int) {
	for _, l := range f.Lines {
		switch l.Kind {
		case Added:
			added++
		case Removed:
			removed++
		}
	}
	return added, removed
}

// Parse reads a unified diff: of git, of diff -u, or a file's name above its hunks.
// Within a hunk as many lines are taken as its head says; a line that is none of a diff
// is one of context. What is before the first hunk of a file names it.
func Parse(text string) (files []File) {
	var f *File
	var before, after, oldLeft, newLeft int
	name := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if f != nil && (oldLeft > 0 || newLeft > 0) {
			kind, rest := Context, line
			if line != "" {
				kind, rest = Kind(line[0]), line[1:]
			}
			switch kind {
			case Added:
				f.Lines = append(f.Lines, Line{Added, 0, after, rest})
				after++
				newLeft--
			case Removed:
				f.Lines = append(f.Lines, Line{Removed, before, 0, rest})
				before++
				oldLeft--
			case Note:
				f.Lines = append(f.Lines, Line{Note, 0, 0, strings.TrimSpace(rest)})
			default:
				if kind != Context {
					rest = line
				}
				f.Lines = append(f.Lines, Line{Context, before, after, rest})
				before, after, oldLeft, newLeft = before+1, after+1, oldLeft-1, newLeft-1
			}
			continue
		}
		if b, n, a, m, about, ok := hunkHead(line); ok {
			if f == nil || name != "" {
				files = append(files, File{Path: name})
				f, name = &files[len(files)-1], ""
			}
			before, oldLeft, after, newLeft = b, n, a, m
			f.Lines = append(f.Lines, Line{Hunk, b, a, about})
			continue
		}
		if f != nil && strings.HasPrefix(line, string(Note)) {
			f.Lines = append(f.Lines, Line{Note, 0, 0, strings.TrimSpace(line[1:])})
			continue
		}
		name = named(line, name)
	}
	return files
}

// named is the name of the file that a line above its hunks gives, else what there was.
func named(line, was string) string {
	switch {
	case strings.HasPrefix(line, "--- ") && was != "" && !strings.HasPrefix(was, "diff "):
		return was
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		path, _, _ := strings.Cut(line[4:], "\t")
		if path == "/dev/null" {
			return was
		}
		return strings.TrimPrefix(strings.TrimPrefix(path, "a/"), "b/")
	case strings.HasPrefix(line, "index "), strings.HasPrefix(line, "new file"), strings.HasPrefix(line, "deleted file"), strings.HasPrefix(line, "similarity "),
		strings.HasPrefix(line, "old mode"), strings.HasPrefix(line, "new mode"), strings.HasPrefix(line, "rename "), line == "":
		return was
	case strings.HasPrefix(line, "diff --git "):
		if _, path, ok := strings.Cut(line, " b/"); ok {
			return path
		}
		return ""
	}
	return line
}

// hunkHead reads "@@ -1,3 +1,4 @@ about". A part without a count has one line.
func hunkHead(line string) (before, oldLines, after, newLines int, about string, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return
	}
	spans, about, ok := strings.Cut(rest, " @@")
	if !ok {
		return
	}
	one, two, ok := strings.Cut(spans, " +")
	if !ok {
		return
	}
	if before, oldLines, ok = span(one); ok {
		after, newLines, ok = span(two)
	}
	return before, oldLines, after, newLines, strings.TrimSpace(about), ok
}

// most is the largest number that a hunk may begin at, or count.
const most = 1 << 30

func span(s string) (from, n int, ok bool) {
	start, count, counted := strings.Cut(s, ",")
	from, err := strconv.Atoi(start)
	if n = 1; err == nil && counted {
		n, err = strconv.Atoi(count)
	}
	return from, n, err == nil && from >= 0 && n >= 0 && from <= most && n <= most
}

// Row is a line as it is drawn: its numbers, its sign and its text, in a role.
type Row struct {
	Lead string // the line's number, to the left
	Text string
	Role screen.Role
}

// Rows are a file's lines as they are drawn. Colour never stands alone: each has its
// sign.
func (f *File) Rows() []Row {
	width := 1
	for _, l := range f.Lines {
		width = max(width, len(strconv.Itoa(max(l.Old, l.New))))
	}
	rows := make([]Row, 0, len(f.Lines))
	for _, l := range f.Lines {
		number := l.New
		if l.Kind == Removed {
			number = l.Old
		}
		switch l.Kind {
		case Hunk:
			rows = append(rows, Row{Lead: strings.Repeat(" ", width+1), Text: fmt.Sprintf("@@ line %d %s", l.New, l.Text), Role: screen.Accent})
			continue
		case Note:
			rows = append(rows, Row{Lead: strings.Repeat(" ", width+1), Text: l.Text, Role: screen.Dim})
			continue
		}
		rows = append(rows, Row{Lead: fmt.Sprintf("%*d ", width, number), Text: string(l.Kind) + l.Text, Role: l.Kind.Role()})
	}
	return rows
}

// Role is how a line of the kind is drawn.
func (k Kind) Role() screen.Role {
	switch k {
	case Added:
		return screen.Added
	case Removed:
		return screen.Removed
	case Hunk:
		return screen.Accent
	case Note:
		return screen.Dim
	}
	return screen.Text
}

// Draw reads the diff of one file as it is drawn, and counts its lines. A text that is
// no diff is drawn as it is.
func Draw(text string) (rows []Row, added, removed int) {
	for _, f := range Parse(text) {
		rows = append(rows, f.Rows()...)
		in, out := f.Counts()
		added, removed = added+in, removed+out
	}
	if rows == nil {
		for line := range strings.SplitSeq(text, "\n") {
			rows = append(rows, Row{Text: line, Role: screen.Text})
		}
	}
	return rows, added, removed
}
