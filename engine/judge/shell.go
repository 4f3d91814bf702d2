package judge

import (
	"path"
	"slices"
	"strings"
)

// text adds the effects of shell text. It splits roughly, on the side of
// seeing too many commands: text in a here document or behind a substitution
// counts as commands too.
func (c *classifier) text(found *effects, text, dir string, depth int) {
	found.unknown = true
	if len(text) > maxShellText || depth > maxNesting {
		found.add(effectOpaque)
		return
	}
	if forkBomb(text) {
		found.add(effectHavoc)
	}
	s := splitter{text: text}
	s.split()
	for _, cmd := range s.commands {
		cmd.words = withoutKeywords(cmd.words)
		cmd.dir = dir
		c.run(found, cmd, "", depth)
	}
	for _, target := range s.writes {
		switch {
		case startsWithAny(target, c.devices):
			found.add(effectHavoc)
		case target != "/dev/null" && target != "/dev/stdout" && target != "/dev/stderr":
			found.add(effectWrite)
		}
	}
	for _, inner := range s.inner {
		c.text(found, inner, dir, depth+1)
	}
}

var keywords = set([]string{"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "for", "case", "esac", "in", "{", "}", "!", "function", "coproc", "[["})

func withoutKeywords(words []string) []string {
	for len(words) > 0 && keywords[words[0]] {
		words = words[1:]
	}
	return words
}

// forkBomb finds a function that pipes itself into itself in the background.
func forkBomb(text string) bool {
	flat := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\n' {
			return -1
		}
		return r
	}, text)
	for {
		at := strings.Index(flat, "(){")
		if at < 0 {
			return false
		}
		name := flat[strings.LastIndexAny(flat[:at], ";&|(){}'\"")+1 : at]
		flat = flat[at+3:]
		if name != "" && strings.HasPrefix(flat, name+"|"+name+"&") {
			return true
		}
	}
}

// splitter cuts shell text into commands.
type splitter struct {
	text     string
	at       int
	word     strings.Builder
	started  bool // a word is being read, maybe an empty quoted one
	current  command
	commands []command
	writes   []string // targets of > and >>
	inner    []string // text of substitutions inside double quotes
	redirect byte     // the next word is a target of '>' or '<'
}

func (s *splitter) split() {
	for s.at < len(s.text) {
		ch := s.text[s.at]
		s.at++
		switch ch {
		case ' ', '\t', '\r':
			s.endWord()
		case '\n', ';', '(', ')', '`', '&':
			s.endCommand(false)
		case '|':
			pipe := s.peek() != '|'
			if !pipe {
				s.at++
			}
			s.endCommand(pipe)
		case '$':
			if s.peek() == '(' {
				s.at++
				s.endCommand(false)
			} else {
				s.put('$')
			}
		case '>', '<':
			s.angle(ch)
		case '\'':
			s.started = true
			text, _, _ := strings.Cut(s.text[s.at:], "'")
			s.word.WriteString(text)
			s.at = min(s.at+len(text)+1, len(s.text))
		case '"':
			s.quoted()
		case '\\':
			if s.at < len(s.text) {
				if s.text[s.at] != '\n' {
					s.put(s.text[s.at])
				}
				s.at++
			}
		case '#':
			if s.started {
				s.put(ch)
				continue
			}
			comment, _, _ := strings.Cut(s.text[s.at:], "\n")
			s.at += len(comment)
		default:
			s.put(ch)
		}
	}
	s.endCommand(false)
}

func (s *splitter) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *splitter) put(b byte) {
	s.started = true
	s.word.WriteByte(b)
}

// angle handles a redirection; the digit before it is no word.
func (s *splitter) angle(ch byte) {
	if w := s.word.String(); strings.Trim(w, "0123456789") == "" {
		s.word.Reset()
		s.started = false
	}
	s.endWord()
	for s.peek() == ch || s.peek() == '|' {
		s.at++
	}
	if s.peek() == '&' {
		s.at++
		for s.peek() >= '0' && s.peek() <= '9' || s.peek() == '-' {
			s.at++
			ch = 0
		}
	}
	if s.peek() == '(' { // process substitution
		s.at++
		s.endCommand(false)
		return
	}
	s.redirect = ch
}

func (s *splitter) quoted() {
	s.started = true
	for s.at < len(s.text) {
		ch := s.text[s.at]
		s.at++
		switch {
		case ch == '"':
			return
		case ch == '\\' && s.at < len(s.text):
			s.word.WriteByte(s.text[s.at])
			s.at++
		case ch == '`' || ch == '$' && s.peek() == '(':
			if text, _, _ := strings.Cut(s.text[s.at:], `"`); len(s.inner) < maxNesting {
				s.inner = append(s.inner, strings.TrimLeft(text, "("))
			}
			s.word.WriteByte(ch)
		default:
			s.word.WriteByte(ch)
		}
	}
}

func (s *splitter) endWord() {
	if !s.started {
		return
	}
	w := s.word.String()
	s.word.Reset()
	s.started = false
	switch s.redirect {
	case '>':
		s.writes = append(s.writes, w)
	case '<':
	default:
		s.current.words = append(s.current.words, w)
	}
	s.redirect = 0
}

func (s *splitter) endCommand(pipe bool) {
	s.endWord()
	s.redirect = 0
	if len(s.current.words) > 0 {
		s.commands = append(s.commands, s.current)
	}
	s.current = command{piped: pipe}
}

// commandClass says what programs do. All conditions given must hold.
type commandClass struct {
	Effect string   `yaml:"effect" json:"effect"`
	Names  []string `yaml:"names" json:"names"` // a trailing * matches a prefix
	// Sub is the first word after the program that is neither in Skip nor an
	// option in SkipValue with its value.
	Sub       []string `yaml:"sub" json:"sub,omitempty"`
	Skip      []string `yaml:"skip" json:"skip,omitempty"`
	SkipValue []string `yaml:"skip_value" json:"skip_value,omitempty"`
	With      []string `yaml:"with" json:"with,omitempty"`       // at least one of these options
	Without   []string `yaml:"without" json:"without,omitempty"` // none of these options
	// OperandPrefix wants an operand that starts with one of these.
	OperandPrefix []string `yaml:"operand_prefix" json:"operand_prefix,omitempty"`
	// OperandsStart wants every operand to start with this.
	OperandsStart string `yaml:"operands_start" json:"operands_start,omitempty"`
	MaxOperands   int    `yaml:"max_operands" json:"max_operands,omitempty"` // 0 means any number
	Root          bool   `yaml:"root" json:"root,omitempty"`                 // an operand is one of the table's roots
}

// wrapper is a program that runs the command line after its own options.
type wrapper struct {
	Name     string   `yaml:"name" json:"name"`
	Values   []string `yaml:"values" json:"values,omitempty"`     // options that take a value
	Operands int      `yaml:"operands" json:"operands,omitempty"` // own operands before the command
}

// command is one program with its arguments.
type command struct {
	words []string
	dir   string
	piped bool // reads another command's output
}

func (c command) name() string { return path.Base(c.words[0]) }

func (c command) operands() []string {
	var out []string
	rest := false
	for _, w := range c.words[1:] {
		switch {
		case rest || w == "-" || !strings.HasPrefix(w, "-"):
			out = append(out, w)
		case w == "--":
			rest = true
		}
	}
	return out
}

// has reports whether an option may be among the words. It errs on the side
// of yes: abbreviated long options and bundled short ones count.
func (c command) has(option string) bool {
	for _, w := range c.words[1:] {
		if w == "--" {
			return false
		}
		if w == option {
			return true
		}
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		name, _, _ := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "--"):
			if strings.HasPrefix(option, "--") && len(name) > 3 && strings.HasPrefix(option, name) || name == option {
				return true
			}
		case len(option) == 2 && option[0] == '-' && strings.IndexByte(w, option[1]) > 0:
			return true
		case name == option:
			return true
		}
	}
	return false
}

func (k *commandClass) matches(c command, roots map[string]bool) bool {
	switch {
	case len(k.Sub) > 0 && !slices.Contains(k.Sub, k.subcommand(c)),
		len(k.With) > 0 && !slices.ContainsFunc(k.With, c.has),
		slices.ContainsFunc(k.Without, c.has):
		return false
	case len(k.OperandPrefix) == 0 && k.OperandsStart == "" && k.MaxOperands == 0 && !k.Root:
		return true
	}
	operands := c.operands()
	return (k.MaxOperands == 0 || len(operands) <= k.MaxOperands) &&
		(k.OperandsStart == "" || !slices.ContainsFunc(operands, func(o string) bool { return !strings.HasPrefix(o, k.OperandsStart) })) &&
		(len(k.OperandPrefix) == 0 || slices.ContainsFunc(operands, func(o string) bool { return startsWithAny(o, k.OperandPrefix) })) &&
		(!k.Root || slices.ContainsFunc(operands, func(o string) bool { return roots[cleaned(o, c.dir)] }))
}

func (k *commandClass) subcommand(c command) string {
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		name, _, valued := strings.Cut(w, "=")
		switch {
		case slices.Contains(k.Skip, w), valued && slices.Contains(k.SkipValue, name):
		case slices.Contains(k.SkipValue, w):
			i++
		default:
			return w
		}
	}
	return ""
}

func startsWithAny(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// cleaned is the directory that an operand means: "/etc/*", "/etc/." and
// "//etc/" all are "/etc".
func cleaned(operand, dir string) string {
	if dir != "" && !strings.HasPrefix(operand, "/") && !strings.HasPrefix(operand, "~") && !strings.HasPrefix(operand, "$") {
		operand = dir + "/" + operand
	}
	for {
		p := path.Clean(operand)
		trimmed := strings.TrimSuffix(strings.TrimSuffix(p, "/*"), "/.*")
		if trimmed == "" {
			return "/"
		}
		if trimmed == operand {
			return trimmed
		}
		operand = trimmed
	}
}
