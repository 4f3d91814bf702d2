package judge

import (
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
		start := at
		for start > 0 && !strings.ContainsRune(";&|(){}'\"", rune(flat[start-1])) {
			start--
		}
		name := flat[start:at]
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
		case '\n', ';', '(', ')', '`':
			s.endCommand(false)
		case '&':
			s.endCommand(false)
		case '|':
			if s.peek() == '|' {
				s.at++
				s.endCommand(false)
			} else {
				s.endCommand(true)
			}
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
			end := strings.IndexByte(s.text[s.at:], '\'')
			if end < 0 {
				end = len(s.text) - s.at
			}
			s.word.WriteString(s.text[s.at : s.at+end])
			s.at = min(s.at+end+1, len(s.text))
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
			if end := strings.IndexByte(s.text[s.at:], '\n'); end >= 0 {
				s.at += end
			} else {
				s.at = len(s.text)
			}
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
			start := s.at
			end := strings.IndexByte(s.text[start:], '"')
			if end < 0 {
				end = len(s.text) - start
			}
			if len(s.inner) < maxNesting {
				s.inner = append(s.inner, strings.TrimLeft(s.text[start:start+end], "("))
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
