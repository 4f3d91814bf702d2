package bus

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
)

// maxTopic is the longest topic or pattern, in characters.
const maxTopic = 200

// sysToken begins the topics of the engine's own events.
const sysToken = "sys"

const (
	topicRule   = "1-200 characters: words of A-Z a-z 0-9 _ - with a dot between them"
	patternRule = "a topic in which * stands for one word and > at the end for one or more"
)

// CheckTopic reports a malformed topic.
func CheckTopic(topic string) error {
	if !wellFormed(topic, false) {
		return core.Invalid("topic", topic, topicRule)
	}
	return nil
}

// Pattern selects topics: words separated by dots, in which * stands for any
// one word and > at the end for one or more. The zero value selects nothing.
type Pattern struct {
	words []string
	rest  bool // ends in >
}

// ParsePattern reads a pattern.
func ParsePattern(s string) (Pattern, error) {
	if !wellFormed(s, true) {
		return Pattern{}, core.Invalid("pattern", s, patternRule)
	}
	words := strings.Split(s, ".")
	p := Pattern{words: words}
	if last := len(words) - 1; words[last] == ">" {
		p.words, p.rest = words[:last], true
	}
	return p, nil
}

// Match reports whether a topic is selected. Those of the engine's own events
// are only by a pattern that names sys itself.
func (p Pattern) Match(topic string) bool {
	if topic == "" || p.empty() || strings.HasPrefix(topic, sysToken+".") && !p.system() {
		return false
	}
	more := true
	for _, want := range p.words {
		if !more {
			return false
		}
		var word string
		if word, topic, more = strings.Cut(topic, "."); want != "*" && want != word {
			return false
		}
	}
	return more == p.rest
}

func (p Pattern) empty() bool { return len(p.words) == 0 && !p.rest }

// system reports whether the pattern selects the engine's own events, and so
// no other message.
func (p Pattern) system() bool { return len(p.words) > 0 && p.words[0] == sysToken }

// wellFormed reads a topic, or a pattern, without allocating.
func wellFormed(s string, pattern bool) bool {
	if s == "" || len(s) > maxTopic {
		return false
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			continue
		}
		switch word := s[start:i]; {
		case pattern && word == "*":
		case pattern && word == ">":
			if i < len(s) {
				return false
			}
		case !plainWord(word):
			return false
		}
		start = i + 1
	}
	return true
}

func plainWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}

// checkPublish reports a topic that nobody may publish under.
func checkPublish(topic string) error {
	if err := CheckTopic(topic); err != nil {
		return err
	}
	if word, _, _ := strings.Cut(topic, "."); word == sysToken {
		return core.Invalid("topic", topic, fmt.Sprintf("any but %s and %s.…, which are the engine's own events", sysToken, sysToken))
	}
	return nil
}
