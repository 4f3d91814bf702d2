package judge

import (
	"slices"
	"strings"
	"unicode"

	"swarmdeck/engine/core"
)

// topic is a list of words and phrases that make a text sensitive.
type topic struct {
	Name   string   `yaml:"name" json:"name"`
	Words  []string `yaml:"words" json:"words"`
	Except []string `yaml:"except" json:"except,omitempty"`
}

// topicIndex finds topics in one pass over the words of a text.
type topicIndex struct {
	phrases map[string][]phrase // by first word
}

type phrase struct {
	words  []string
	topic  string
	except bool
}

// maxTopicText bounds the text looked at. What is longer is a topic by itself.
const (
	maxTopicText = 4 << 20
	topicTooLong = "unchecked"
)

func newTopicIndex(topics []topic) (*topicIndex, error) {
	x := &topicIndex{phrases: map[string][]phrase{}}
	for _, t := range topics {
		if !reasonName().MatchString(t.Name) {
			return nil, core.Invalid("topics.name", t.Name, "1-64 of a-z 0-9 _ .")
		}
		for i, w := range slices.Concat(t.Words, t.Except) {
			if err := x.add(w, t.Name, i >= len(t.Words)); err != nil {
				return nil, err
			}
		}
	}
	// The longest phrase first, so that an exception wins over its own word.
	for _, ps := range x.phrases {
		core.Sort(ps, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return x, nil
}

func (x *topicIndex) add(text, topic string, except bool) error {
	words := splitWords(text)
	if len(words) == 0 {
		return core.Invalid("topics."+topic, text, "at least one word")
	}
	x.phrases[words[0]] = append(x.phrases[words[0]], phrase{words: words, topic: topic, except: except})
	return nil
}

// in lists the topics of a text, sorted.
func (x *topicIndex) in(text string) []string {
	if len(text) > maxTopicText {
		return []string{topicTooLong}
	}
	var found []string
	words := splitWords(text)
	for i := range words {
		for _, p := range x.phrases[words[i]] {
			if len(p.words) > len(words)-i || !slices.Equal(p.words, words[i:i+len(p.words)]) {
				continue
			}
			if p.except {
				break
			}
			if !slices.Contains(found, p.topic) {
				found = append(found, p.topic)
			}
		}
	}
	slices.Sort(found)
	return found
}

func splitWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
