package judge

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// text adds the effects of shell text: of every command that stands in it, wherever,
// whether or not it would come to run. What is no shell text is opaque.
func (c *classifier) text(found *effects, text, dir string, depth int) {
	if !c.parsed(found, text, dir, depth) {
		found.add(effectOpaque)
	}
}

// parsed is text; it says whether all of it is shell text. The words of what is not
// count as commands all the same.
func (c *classifier) parsed(found *effects, text, dir string, depth int) bool {
	found.unknown = true
	if len(text) > maxShellText || depth > maxNesting || bracketed(text) {
		found.add(effectOpaque)
		return true
	}
	if forkBomb(text) {
		found.add(effectHavoc)
	}
	s := shellText{classifier: c, found: found, source: text, dir: dir, depth: depth}
	// A shell runs what comes before a mistake, and so does this.
	var mistake error
	for stmt, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(strings.NewReader(text)) {
		if stmt != nil {
			s.look(stmt, false)
		}
		mistake = cmp.Or(err, mistake)
	}
	if mistake != nil {
		c.rough(found, text, dir, depth)
	}
	return mistake == nil
}

// rough takes the words between signs for commands, without quotes.
func (c *classifier) rough(found *effects, text, dir string, depth int) {
	plain := strings.NewReplacer("'", "", `"`, "", `\\`, "", ">", " > ").Replace(text)
	for line := range strings.FieldsFuncSeq(plain, func(r rune) bool { return strings.ContainsRune("\n;&|(){}`", r) }) {
		words := strings.Fields(line)
		for i, w := range words {
			if i > 0 && words[i-1] == ">" && startsWithAny(w, c.devices) {
				found.add(effectHavoc)
			}
		}
		c.run(found, command{words: words, dir: dir}, "", max(1, depth))
	}
}

// bracketed reports whether brackets stand so deep in each other that the parser,
// which looks at some of them twice, would take seconds.
func bracketed(text string) bool {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			if open++; open > maxBrackets {
				return true
			}
		case ')', '}':
			open = max(0, open-1)
		}
	}
	return false
}

// shellText is text whose commands are looked at.
type shellText struct {
	*classifier
	found       *effects
	source, dir string
	depth       int
}

// look adds the effects of the commands below a node; piped says that they may read
// the output of another.
func (s *shellText) look(n syntax.Node, piped bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				s.look(n.X, piped)
				s.look(n.Y, true)
				return false
			}
		case *syntax.CallExpr:
			words := s.words(n.Args)
			s.run(s.found, command{words: words, dir: s.dir, piped: piped}, "", s.depth)
		case *syntax.Redirect:
			s.redirect(n)
			return n.Hdoc == nil // its substitutions are looked at with its text
		}
		return true
	})
}

// redirect adds the effects of writing to a file, and those of text that a command
// is fed: it may be meant for a shell, and is mostly prose.
func (s *shellText) redirect(r *syntax.Redirect) {
	if r.Hdoc != nil {
		s.parsed(s.found, s.word(r.Hdoc.Parts), s.dir, s.depth+1)
	}
	if r.Word == nil {
		return
	}
	target := s.word(r.Word.Parts)
	switch r.Op {
	case syntax.WordHdoc:
		s.parsed(s.found, target, s.dir, s.depth+1)
	case syntax.Hdoc, syntax.DashHdoc, syntax.RdrIn, syntax.DplIn:
	default:
		switch {
		case r.Op == syntax.DplOut && strings.Trim(target, "0123456789-") == "":
		case startsWithAny(target, s.devices):
			s.found.add(effectHavoc)
		case target != "/dev/null" && target != "/dev/stdout" && target != "/dev/stderr":
			s.found.add(effectWrite)
		}
	}
}

// words are those of a command, as its shell takes the braces in them apart.
func (s *shellText) words(args []*syntax.Word) (words []string) {
	for _, arg := range args {
		apart := &syntax.Word{Parts: slices.Clone(arg.Parts)} // what is within it is walked through still
		syntax.SplitBraces(apart)
		for w, err := range expand.BracesSeq(nil, apart) {
			if err != nil || len(words) == maxBraced {
				s.found.add(effectOpaque)
				return words
			}
			words = append(words, s.word(w.Parts))
		}
	}
	return words
}

// word is the text of a word without its quotes. What is computed when it runs
// stays as it is written, with its dollar.
func (s *shellText) word(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteByte('$')
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(s.word(p.Parts))
		default:
			end := min(int(p.End().Offset()), len(s.source))
			b.WriteString(s.source[min(int(p.Pos().Offset()), end):end])
		}
	}
	return b.String()
}

// unescaped takes the backslashes out that quote.
func unescaped(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
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

// commandClass says what programs do. All conditions given must hold.
type commandClass struct {
	Effect string   `yaml:"effect" json:"effect"`
	Names  []string `yaml:"names" json:"names"` // a trailing * matches a prefix
	// Sub is the first word after the program that is neither an option nor the value
	// of one in SkipValue; after another option it may be the next one too.
	Sub       []string `yaml:"sub" json:"sub,omitempty"`
	SkipValue []string `yaml:"skip_value" json:"skip_value,omitempty"`
	With      []string `yaml:"with" json:"with,omitempty"`       // at least one of these options
	Without   []string `yaml:"without" json:"without,omitempty"` // none of these options
	// OperandPrefix wants an operand that starts with one of these.
	OperandPrefix []string `yaml:"operand_prefix" json:"operand_prefix,omitempty"`
	// OperandsStart wants every operand to start with this.
	OperandsStart string `yaml:"operands_start" json:"operands_start,omitempty"`
	MaxOperands   int    `yaml:"max_operands" json:"max_operands,omitempty"` // 0 means any number
	Root          bool   `yaml:"root" json:"root,omitempty"`                 // an operand is one of the table's roots
	Device        bool   `yaml:"device" json:"device,omitempty"`             // an operand is one of the table's devices
}

// wrapper is a program that runs the command line after its own options.
type wrapper struct {
	Name     string   `yaml:"name" json:"name"`
	Values   []string `yaml:"values" json:"values,omitempty"`     // options that take a value
	Operands int      `yaml:"operands" json:"operands,omitempty"` // own operands before the command
	Text     []string `yaml:"text" json:"text,omitempty"`         // options whose value is split as a shell does
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

func (k *commandClass) matches(c command, in *classifier) bool {
	switch {
	case len(k.Sub) > 0 && !k.subcommand(c),
		len(k.With) > 0 && !slices.ContainsFunc(k.With, c.has),
		slices.ContainsFunc(k.Without, c.has):
		return false
	case len(k.OperandPrefix) == 0 && k.OperandsStart == "" && k.MaxOperands == 0 && !k.Root && !k.Device:
		return true
	}
	operands := c.operands()
	return (k.MaxOperands == 0 || len(operands) <= k.MaxOperands) &&
		(k.OperandsStart == "" || !slices.ContainsFunc(operands, func(o string) bool { return !strings.HasPrefix(o, k.OperandsStart) })) &&
		(len(k.OperandPrefix) == 0 || slices.ContainsFunc(operands, func(o string) bool { return startsWithAny(o, k.OperandPrefix) })) &&
		(!k.Root || slices.ContainsFunc(operands, func(o string) bool { return in.roots[cleaned(o, c.dir)] })) &&
		(!k.Device || slices.ContainsFunc(operands, func(o string) bool { return startsWithAny(o, in.devices) }))
}

// subcommand reports whether the command may be one of Sub.
func (k *commandClass) subcommand(c command) bool {
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		switch {
		case slices.Contains(k.SkipValue, w):
			i++
		case strings.HasPrefix(w, "-"):
		case slices.Contains(k.Sub, w):
			return true
		case !strings.HasPrefix(c.words[i-1], "-"):
			return false
		}
	}
	return false
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
