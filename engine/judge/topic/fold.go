package topic

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

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
