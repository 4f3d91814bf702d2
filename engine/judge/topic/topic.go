// Package topic finds sensitive topics in a text, by lists of words.
package topic

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"swarmdeck/engine/core"
)

// Topic is a list of words and phrases that make a text sensitive.
type Topic struct {
	Name     string   `yaml:"name" json:"name"`
	Language string   `yaml:"language" json:"language,omitempty"` // of the words, for who reads the list; all lists are looked for
	Words    []string `yaml:"words" json:"words"`
	Except   []string `yaml:"except" json:"except,omitempty"`
}

// Index finds topics in one pass over the words of a text.
type Index struct {
	phrases map[string][]phrase // by first word
	spaced  map[string]string   // the topic of a word or phrase written as one
	folder  Folder
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

var named = core.Pattern(`^[a-z0-9_.]{1,64}$`)

// New checks lists and takes them over.
func New(topics []Topic) (*Index, error) {
	x := &Index{phrases: map[string][]phrase{}, spaced: map[string]string{}, folder: NewFolder()}
	for _, t := range topics {
		if !named().MatchString(t.Name) {
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

func (x *Index) add(text, topic string, except bool) error {
	words := x.words(text)
	if len(words) == 0 {
		return core.Invalid("topics."+topic, text, "at least one word")
	}
	x.phrases[words[0]] = append(x.phrases[words[0]], phrase{words: words, topic: topic, except: except})
	if whole := strings.Join(words, ""); !except && len([]rune(whole)) >= leastSpaced {
		x.spaced[whole] = topic
	}
	return nil
}

// In lists the topics of a text, sorted.
func (x *Index) In(text string) []string {
	if len(text) > maxTopicText {
		return []string{topicTooLong}
	}
	var found []string
	add := func(topic string) {
		if !slices.Contains(found, topic) {
			found = append(found, topic)
		}
	}
	words := x.words(text)
	for i := range words {
		for _, p := range x.phrases[words[i]] {
			if len(p.words) > len(words)-i || !slices.Equal(p.words, words[i:i+len(p.words)]) {
				continue
			}
			if p.except {
				break
			}
			add(p.topic)
		}
	}
	for _, run := range letters(words) {
		for whole, topic := range x.spaced {
			if strings.Contains(run, whole) {
				add(topic)
			}
		}
	}
	slices.Sort(found)
	return found
}

// leastSpaced is how many letters a word has at least that is looked for in
// letters that stand apart.
const leastSpaced = 3

// letters are the runs of words of one letter each, joined: "p a s s" is pass.
func letters(words []string) (runs []string) {
	for i := 0; i < len(words); {
		n := i
		for n < len(words) && utf8.RuneCountInString(words[n]) == 1 {
			n++
		}
		if n-i >= leastSpaced {
			runs = append(runs, strings.Join(words[i:n], ""))
		}
		i = n + 1
	}
	return runs
}

// words are those of a text, folded.
func (x *Index) words(text string) []string {
	return strings.FieldsFunc(x.folder.Fold(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// Fold makes of a text what words are looked for in: in compatibility
// decomposition (UAX #15), without marks and without what is not seen, in lower
// case, and with a Latin letter for each that looks like one (UTS #39).
func (f Folder) Fold(text string) string {
	ascii := true
	for i := 0; i < len(text) && ascii; i++ {
		ascii = text[i] < 0x80
	}
	if ascii {
		return strings.ToLower(text)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x80:
			return unicode.ToLower(r)
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Variation_Selector):
			return -1
		}
		r = unicode.ToLower(r)
		if like, is := f[r]; is {
			return like
		}
		return r
	}, norm.NFKD.String(text))
}

// alike are small letters of Cyrillic, Greek, Armenian, Cherokee and Latin's own
// margins, each with the Latin letter that it looks like: the confusables of UTS #39
// that a word can be forged of.
const alike = "аa вb сc ԁd еe ҽe ғf ɡg հh һh іi ıi ɩi јj ϳj кk κk ӏl ιi ʟl мm пn ոn оo οo օo σo рp ρp ԛq գq гr ѕs ꜱs тt τt цu υu ս" +
	"u ѵv νv ԝw ѡw хx χx уy γy ʏy ᴢz ʀr ɴn ɪi ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw αa εe ηn нh ɑa øo łl đd ħh ŧt ßs æa œo"

// Folder folds texts: it has the letters of alike.
type Folder map[rune]rune

// NewFolder makes one.
func NewFolder() Folder {
	f := Folder{}
	for pair := range strings.FieldsSeq(alike) {
		two := []rune(pair)
		f[two[0]] = two[1]
	}
	return f
}
