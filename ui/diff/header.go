package diff

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// about takes in what git says of a file above its hunks.
func (s *Scanner) about(line string) {
	f := s.current()
	key, value, _ := strings.Cut(line, " ")
	word, more, _ := strings.Cut(value, " ")
	switch {
	case key == "old" && word == "mode":
		f.OldMode = clipMode(more)
	case key == "new" && word == "mode":
		f.NewMode = clipMode(more)
	case key == "new" && word == "file":
		f.Op, f.NewMode = Created, clipMode(strings.TrimPrefix(more, "mode "))
	case key == "deleted" && word == "file":
		f.Op, f.OldMode = Deleted, clipMode(strings.TrimPrefix(more, "mode "))
	case (key == "rename" || key == "copy") && word == "from":
		f.Op, f.Old = Renamed, unquoted(more)
		if key == "copy" {
			f.Op = Copied
		}
	case (key == "rename" || key == "copy") && word == "to":
		f.Path = unquoted(more)
		f.Generated = Generated(f.Path)
	case key == "---" && value == "/dev/null":
		f.Op = Created
	case key == "+++" && value == "/dev/null":
		f.Op = Deleted
	case key == "+++" && f.Path == "":
		f.Path = strings.TrimPrefix(fileName(line), "b/")
		f.Generated = Generated(f.Path)
	case key == "Binary" && strings.HasSuffix(line, " differ"):
		f.Binary = true
	case line == "GIT binary patch":
		f.Binary, s.packed = true, true
	case line != "" && key != "---" && key != "+++" && key != "index" && key != "similarity" && key != "dissimilarity":
		s.part.Odd++
	}
}

func clipMode(s string) string { return s[:min(len(s), 16)] }

// packedSize takes in a size of a binary patch: of what is new first, then of what was.
func (s *Scanner) packedSize(line string) {
	f := s.current()
	kind, size, _ := strings.Cut(line, " ")
	n, err := strconv.ParseInt(size, 10, 64)
	if kind != "literal" && kind != "delta" || err != nil || n < 0 {
		return
	}
	if s.sizes++; kind == "literal" { // a delta tells none
		if s.sizes == 1 {
			f.NewSize = n
		} else {
			f.OldSize = n
		}
	}
}

// hunkHead reads "@@ -1,3 +1,4 @@ about". A part without a count has one line.
func hunkHead(line string) (h hunk, oldLines, newLines int, ok bool) {
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
	if h.old, oldLines, ok = span(one); ok {
		h.new, newLines, ok = span(two)
	}
	h.about = strings.Clone(strings.TrimSpace(about[:min(len(about), 200)]))
	return h, oldLines, newLines, ok
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

// fileName is the name in a line --- or +++.
func fileName(line string) string {
	name, _, _ := strings.Cut(line[min(len(line), 4):], "\t")
	return unquoted(name)
}

// named is a file by its names before and after.
func named(old, name string) File {
	switch {
	case name == "/dev/null":
		return File{Path: strings.TrimPrefix(old, "a/"), Op: Deleted}
	case old == "/dev/null":
		return File{Path: strings.TrimPrefix(name, "b/"), Op: Created}
	}
	old, name = unprefixed(old, name)
	return renamed(old, name)
}

// renamed is a file with its name before, where it had another.
func renamed(old, name string) File {
	if old == name {
		old = ""
	}
	return File{Path: name, Old: old}
}

// gitNames are the names in the line with which git begins a file. Where neither is
// quoted and they differ, the lines below tell.
func gitNames(rest string) (old, name string) {
	switch {
	case strings.HasPrefix(rest, `"`):
		end := quotedEnd(rest)
		old, name = unquoted(rest[:end]), unquoted(strings.TrimPrefix(rest[end:], " "))
	case strings.HasSuffix(rest, `"`):
		i := strings.Index(rest, ` "`)
		if i < 0 {
			return "", ""
		}
		old, name = rest[:i], unquoted(rest[i+1:])
	default:
		mid := len(rest) / 2
		if len(rest)%2 == 1 && rest[mid] == ' ' {
			old, name = unprefixed(rest[:mid], rest[mid+1:])
			if old == name {
				return old, name
			}
		}
		i := strings.Index(rest, " b/")
		if i < 0 {
			return "", ""
		}
		old, name = rest[:i], rest[i+1:]
	}
	return unprefixed(old, name)
}

// unprefixed takes away the letters that git puts before the two names.
func unprefixed(old, name string) (string, string) {
	if len(old) < 2 || len(name) < 2 || old[1] != '/' || name[1] != '/' {
		return old, name
	}
	switch old[:1] + name[:1] {
	case "ab":
		return old[2:], name[2:]
	case "iw", "ci", "cw", "ow", "oi":
		if old[2:] == name[2:] {
			return old[2:], name[2:]
		}
	}
	return old, name
}

// quotedEnd is where a name in quotes ends.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// unquoted is a name that may be in quotes, as git writes them.
func unquoted(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		if n, err := strconv.ParseUint(s[i:min(i+3, len(s))], 8, 8); err == nil && i+3 <= len(s) {
			out, i = append(out, byte(n)), i+2
			continue
		}
		if at := strings.IndexByte(`abtnvfr`, s[i]); at >= 0 {
			out = append(out, byte('\a'+at))
		} else {
			out = append(out, s[i])
		}
	}
	return string(out)
}

// Quoted is a name as git writes it where it has to be in quotes.
func Quoted(name string) string {
	plain := true
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			plain = false
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			plain = false
			b.WriteByte('\\')
			b.WriteString(strconv.FormatUint(uint64(c)+0o1000, 8)[1:])
		default:
			b.WriteByte(c)
		}
	}
	if plain {
		return name
	}
	return b.String() + `"`
}

// Head are the lines that begin a file in a diff of several.
func Head(name string) string {
	old, now := Quoted("a/"+name), Quoted("b/"+name)
	return "diff --git " + old + " " + now + "\n--- " + old + "\n+++ " + now + "\n"
}

// Generated reports that a file of that name is written by a program, or locks what one
// fetches: nobody reads it line by line.
func Generated(name string) bool {
	base := path.Base(name)
	dirs := strings.Split(path.Dir(name), "/")
	fetched := slices.ContainsFunc([]string{"vendor", "node_modules", "third_party"}, func(dir string) bool { return slices.Contains(dirs, dir) })
	locks := slices.Contains([]string{"go.sum", "go.work.sum", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml"}, base)
	ends := []string{".lock", ".pb.go", ".pb.cc", ".pb.h", "_pb2.py", "_pb2_grpc.py", ".min.js", ".min.css", ".js.map", ".css.map", "_generated.go", ".gen.go", "_string.go"}
	return fetched || locks || strings.HasPrefix(base, "zz_generated") ||
		slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(base, end) })
}

// Named is the diff of one file as part of a diff of several: text may begin with the
// file's name, or have the lines of its own that git writes.
func Named(name, text string) string {
	rest := strings.TrimPrefix(text, name+"\n")
	switch {
	case strings.HasPrefix(rest, "@@ -"):
		text = Head(name) + rest
	case text == name || text == "":
		text = Head(name)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
