package tree

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Bounds of the symbols of a file.
const (
	maxSymbols = 1000
	maxSymbol  = 80 // bytes of a name
)

var (
	// declares finds what a line declares by a word: what it is and, of a method in Go,
	// the type it is of, then its name.
	declares = core.Pattern(`^(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|sealed|override|open|data|inline|virtual|unsafe|const|extern|partial|pub(?:\([^)]*\))?)\s+)*(func|function\*?|def|fn|fun|sub|class|interface|struct|enum|union|trait|impl|type|module|mod|namespace|object|record|var|let|const|val)\s*(?:\(\s*\w*\s*\*?(\w+)[^)]*\)|<[^>]*>)?\s+([A-Za-z_$][\w$.]*)`)
	// calls finds the functions of languages that have no word for them: a name with
	// brackets, and what may stand before it.
	calls = core.Pattern(`^((?:[\w$<>\[\],*&:~.@ ]*[\s*&])?)([\w$~:]+)\s*\([^;]*$`)
	label = core.Pattern(`^\w+:$`)
)

// plain are the endings of the languages that are told apart by words alone, braces of
// those in which functions also come without one.
const (
	plainEndings = " .go .py .rs .rb .kt .kts .scala .swift .lua "
	braceEndings = " .c .h .cc .cpp .cxx .hh .hpp .cs .java .js .jsx .mjs .cjs .ts .tsx .php .dart .sh .bash "
)

// Symbols finds in which functions, types and the like a patch changes something, by
// file: the patch has all lines of each, as with as much context as there is. "" stands
// for what is in none. Files of other languages are left out. It goes by words and by
// how far lines are indented, as git's own hunk headers do, and parses nothing.
func Symbols(patch []byte) map[string][]string {
	all := map[string][]string{}
	var now, was *scope
	var name, old string
	for line := range bytes.Lines(patch) {
		text := strings.TrimRight(string(line), "\r\n")
		switch {
		case strings.HasPrefix(text, "diff --git "):
			now, was, name, old = nil, nil, "", ""
		case now == nil && strings.HasPrefix(text, "--- a/"):
			old = text[len("--- a/"):]
		case now == nil && strings.HasPrefix(text, "+++ "):
			if name = strings.TrimPrefix(text, "+++ b/"); text == "+++ /dev/null" {
				name = old
			}
			name = strings.TrimSuffix(name, "\t") // after a name with blanks
		case strings.HasPrefix(text, "@@ ") && name != "":
			ending := " " + path.Ext(name) + " "
			if braces := strings.Contains(braceEndings, ending); braces || strings.Contains(plainEndings, ending) {
				now, was = &scope{braces: braces}, &scope{braces: braces}
			}
		case now == nil || text == "":
		case text[0] == ' ':
			now.line(text[1:])
			was.line(text[1:])
		case text[0] == '+':
			note(all, name, now, text[1:])
		case text[0] == '-':
			note(all, name, was, text[1:])
		}
	}
	return all
}

// note adds the symbol of a line to those of a file.
func note(all map[string][]string, name string, at *scope, text string) {
	in, blank := at.line(text)
	if !blank && len(all[name]) < maxSymbols && !slices.Contains(all[name], in) {
		all[name] = append(all[name], in)
	}
}

// scope is where in a text its lines stand.
type scope struct {
	braces bool
	open   []symbol
}

type symbol struct {
	indent     int
	word, name string
}

// holds reports a symbol in which others are told apart.
func (s symbol) holds() bool {
	switch s.word {
	case "class", "interface", "struct", "enum", "union", "trait", "impl", "module", "mod", "namespace", "object", "record":
		return true
	}
	return false
}

// line takes the next line in, and says in which symbol it is.
func (s *scope) line(text string) (in string, blank bool) {
	trimmed := strings.TrimLeft(text, " \t")
	if trimmed == "" {
		return "", true
	}
	indent := 0
	for _, c := range text[:len(text)-len(trimmed)] {
		if indent++; c == '\t' {
			indent += 3
		}
	}
	ends := strings.ContainsRune("{}()[]", rune(trimmed[0])) || trimmed == "end"
	flush := strings.HasPrefix(trimmed, "#") || label().MatchString(trimmed) // where it stands says nothing
	for n := len(s.open); n > 0 && !flush && (s.open[n-1].indent > indent || s.open[n-1].indent == indent && !ends); n-- {
		s.open = s.open[:n-1]
	}
	if next, ok := s.declared(trimmed, indent); ok && !flush && (len(s.open) == 0 || s.open[len(s.open)-1].holds()) {
		s.open = append(s.open, next)
	}
	if len(s.open) == 0 {
		return "", false
	}
	names := core.Map(s.open, func(o symbol) string { return o.name })
	in = strings.TrimSpace(s.open[len(s.open)-1].word + " " + strings.Join(names, "."))
	return in[:min(len(in), maxSymbol)], false
}

// declared is what a line declares.
func (s *scope) declared(line string, indent int) (symbol, bool) {
	if m := declares().FindStringSubmatch(line); m != nil {
		name := m[3]
		if m[2] != "" {
			name = m[2] + "." + name
		}
		return symbol{indent, strings.TrimSuffix(m[1], "*"), name}, true
	}
	if !s.braces || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "//") { // in a comment
		return symbol{}, false
	}
	m := calls().FindStringSubmatch(line)
	if m == nil || m[1] == "" && !strings.HasSuffix(line, "{") {
		return symbol{}, false
	}
	for _, word := range append(strings.Fields(m[1]), m[2]) {
		switch word {
		case "if", "else", "for", "foreach", "while", "do", "switch", "case", "catch", "return", "new", "throw", "await", "yield", "using", "lock", "delete", "goto", "elif", "then", "until", "echo":
			return symbol{}, false
		}
	}
	return symbol{indent, "", m[2] + "()"}, true
}

// Bounds of what is compared of two agents that changed the same files.
const (
	maxCompared   = 20      // files, and meetings
	maxSymbolsMet = 20      // of a file
	maxWhole      = 8 << 20 // bytes of such files and their changes
)

// compared are the meetings of an agent, with what is known of the symbols in which they
// meet. What can't be read is not known.
func (s *Trees) compared(ctx context.Context, t Tree) []Meeting {
	all := s.meetings(t)
	for i := range all[:min(len(all), maxCompared)] {
		m := &all[i]
		files := m.Files[:min(len(m.Files), maxCompared)]
		other, ok := s.works(t.TenantID, m.Other)
		if !ok {
			continue
		}
		mine, theirs := s.symbols(ctx, t, files), s.symbols(ctx, other, files)
		m.Same, m.Apart = map[string][]string{}, map[string]bool{}
		for _, file := range files {
			m.compare(file, mine[file], theirs[file])
		}
	}
	return all
}

// compare notes the symbols of a file that both changed, or that they changed others.
func (m *Meeting) compare(file string, a, b []string) {
	if len(a) == 0 || len(b) == 0 {
		return
	}
	apart := true
	for _, symbol := range a {
		if !slices.Contains(b, symbol) {
			continue
		}
		if apart = false; symbol != "" && len(m.Same[file]) < maxSymbolsMet {
			m.Same[file] = append(m.Same[file], symbol)
		}
	}
	if apart {
		m.Apart[file] = true
	}
}

// symbols are those that an agent changed in files, as far as they can be told.
func (s *Trees) symbols(ctx context.Context, t Tree, files []string) map[string][]string {
	out := map[string][]string{}
	var missing []string
	s.mu.Lock()
	of := s.files(t.TenantID)[t.Agent]
	if of != nil && of.state != "" {
		for _, file := range files {
			if known, ok := of.symbols[file]; ok {
				out[file] = known
			} else {
				missing = append(missing, file)
			}
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 {
		return out
	}
	var patch bytes.Buffer
	whole := &Bounded{To: &patch, Most: maxWhole}
	if err := s.opt.Driver.Whole(ctx, t, of.since, of.state, missing, whole); err != nil {
		return out
	}
	found := map[string][]string{}
	if whole.Over == 0 {
		found = Symbols(patch.Bytes())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range missing {
		of.symbols[file], out[file] = found[file], found[file]
	}
	return out
}
