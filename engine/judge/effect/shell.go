package effect

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// text adds the effects of shell text: of every command that stands in it, wherever,
// whether or not it would come to run. What is no shell text is opaque.
func (c *Classifier) text(found *effects, text, dir string, depth int) {
	if !c.parsed(found, text, dir, depth) {
		found.add(Opaque)
	}
}

// parsed is text; it says whether all of it is shell text. The words of what is not
// count as commands all the same.
func (c *Classifier) parsed(found *effects, text, dir string, depth int) bool {
	found.unknown = true
	if len(text) > maxShellText || depth > maxNesting || bracketed(text) {
		found.add(Opaque)
		return true
	}
	if forkBomb(text) {
		found.add(Havoc)
	}
	s := shellText{Classifier: c, found: found, source: text, dir: dir, depth: depth}
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
func (c *Classifier) rough(found *effects, text, dir string, depth int) {
	plain := strings.NewReplacer("'", "", `"`, "", `\\`, "", ">", " > ").Replace(text)
	for line := range strings.FieldsFuncSeq(plain, func(r rune) bool { return strings.ContainsRune("\n;&|(){}`", r) }) {
		words := strings.Fields(line)
		for i, w := range words {
			if i > 0 && words[i-1] == ">" && startsWithAny(w, c.devices) {
				found.add(Havoc)
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
	*Classifier
	found       *effects
	source, dir string
	depth       int
	// fed says that the text of here-documents may come to run: a program that is not known
	// to take it for data is fed with it.
	fed bool
}

// look adds the effects of the commands below a node; piped says that they may read
// the output of another.
func (s *shellText) look(n syntax.Node, piped bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if !s.fed && s.feeds(n, false) {
				fed := *s
				fed.fed = true
				fed.look(n, piped)
				return false
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				left := *s
				left.fed = s.fed || s.feeds(n.Y, true)
				left.look(n.X, piped)
				s.look(n.Y, true)
				return false
			}
		case *syntax.CallExpr:
			words := s.words(n.Args)
			s.run(s.found, command{words: words, dir: s.dir, piped: piped}, "", s.depth)
		case *syntax.Redirect:
			s.redirect(n)
			return n.Hdoc == nil || !s.fed // its substitutions are looked at with its text
		}
		return true
	})
}

// feeds reports whether what a statement is fed, or computes for its words, may come to run;
// piped says that it is fed by a pipe.
func (s *shellText) feeds(n *syntax.Stmt, piped bool) bool {
	var words []string
	runs := piped
	for _, r := range n.Redirs {
		if runs = runs || r.Hdoc != nil || r.Op == syntax.WordHdoc; r.Word != nil {
			words = append(words, s.word(r.Word.Parts))
		}
	}
	switch cmd := n.Cmd.(type) {
	case *syntax.CallExpr:
		called := s.words(cmd.Args)
		runs = !slices.ContainsFunc(s.data, func(d string) bool { return begins(called, d) })
		words = append(words, called...)
	case *syntax.DeclClause, nil:
		return true
	}
	return runs || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, ">(") })
}

// redirect adds the effects of writing to a file, and those of text that a command
// is fed: it may be meant for a shell, and is mostly prose.
func (s *shellText) redirect(r *syntax.Redirect) {
	if r.Hdoc != nil && s.fed {
		s.parsed(s.found, s.word(r.Hdoc.Parts), s.dir, s.depth+1)
	}
	if r.Word == nil {
		return
	}
	target := s.word(r.Word.Parts)
	switch r.Op {
	case syntax.WordHdoc:
		if !s.fed {
			return
		}
		s.parsed(s.found, target, s.dir, s.depth+1)
	case syntax.Hdoc, syntax.DashHdoc, syntax.RdrIn, syntax.DplIn:
	default:
		switch {
		case r.Op == syntax.DplOut && strings.Trim(target, "0123456789-") == "":
		case startsWithAny(target, s.devices):
			s.found.add(Havoc)
		case target != "/dev/null" && target != "/dev/stdout" && target != "/dev/stderr":
			s.found.add(Write)
		}
	}
}

var ifs = strings.NewReplacer("${IFS}", " ", "$IFS", " ")

// words are those of a command, as its shell takes the braces in them apart.
func (s *shellText) words(args []*syntax.Word) (words []string) {
	for _, arg := range args {
		apart := &syntax.Word{Parts: slices.Clone(arg.Parts)} // what is within it is walked through still
		syntax.SplitBraces(apart)
		for w, err := range expand.BracesSeq(nil, apart) {
			if err != nil || len(words) == maxBraced {
				s.found.add(Opaque)
				return words
			}
			if text := s.word(w.Parts); strings.Contains(text, "IFS") { // rm${IFS}x
				words = append(words, strings.Fields(ifs.Replace(text))...)
			} else {
				words = append(words, text)
			}
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
