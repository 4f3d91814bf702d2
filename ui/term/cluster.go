package term

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Replacement stands for a character that can't be shown.
const Replacement = '\uFFFD'

const (
	replacement = string(Replacement)
	space       = " "
	maxMarks    = 3 // combining marks kept on one base character
)

// Cluster is one printable unit of clean text.
type Cluster struct {
	Text  string // base character and its combining marks; never empty
	Width int    // cells: 1 or 2
}

// Next returns the first printable cluster of s, made harmless, and what of s
// follows it. Escape sequences and invisible characters are passed over. At
// the end of s it returns a cluster of width 0. It allocates nothing.
//
// A tab or a line break comes back as one space; Clean and the canvas treat
// tabs themselves.
func Next(s string) (Cluster, string) {
	for len(s) > 0 {
		if b := s[0]; b < utf8.RuneSelf {
			if b >= 0x20 && b != 0x7f {
				if len(s) == 1 || s[1] < utf8.RuneSelf {
					return Cluster{s[:1], 1}, s[1:]
				}
				n := marks(s, 1)
				return Cluster{s[:n], 1}, skipMarks(s[n:])
			}
			switch b {
			case '\t', '\n', '\v', '\f', '\r':
				return Cluster{space, 1}, s[1:]
			case 0x1b:
				s = s[escape(s):]
			default:
				s = s[1:]
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			return Cluster{replacement, 1}, s[1:]
		}
		switch kind(r) {
		case hidden:
			s = s[size:]
		case control:
			s = s[escape(s):]
		case blank:
			return Cluster{space, 1}, s[size:]
		case flagLetter:
			return Cluster{alphabet[r-regionalA : r-regionalA+1], 1}, skipMarks(s[size:])
		case unknown:
			return Cluster{apart(r), 1}, skipMarks(s[size:])
		default:
			w := runeWidth(r)
			if w == 0 {
				return Cluster{replacement, 1}, skipMarks(s[size:])
			}
			n := marks(s, size)
			return Cluster{s[:n], w}, skipMarks(s[n:])
		}
	}
	return Cluster{}, ""
}

const (
	regionalA = 0x1F1E6
	regionalZ = 0x1F1FF
	alphabet  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// class says how a character is treated.
type class uint8

const (
	plain      class = iota
	hidden           // dropped: invisible, or a mark with nothing to stand on
	control          // a C1 control, may open an escape sequence
	blank            // a space of some kind
	flagLetter       // a regional indicator
	unknown          // shown as apart says: unassigned, private, or joins its neighbours
)

// kind classifies a rune of 0x80 and above.
func kind(r rune) class {
	switch {
	case r < 0xA0:
		return control
	case r < 0x300:
		switch r {
		case 0xA0:
			return blank
		case 0xAD:
			return hidden
		}
		return plain
	case r >= 0x2500 && r < 0x2600: // box drawing, blocks, shapes
		return plain
	case r >= 0x4E00 && r < 0x9FFF, r >= 0xAC00 && r < 0xD7A4:
		return plain
	case r >= regionalA && r <= regionalZ:
		return flagLetter
	case r >= 0x1F3FB && r <= 0x1F3FF: // skin tones
		return hidden
	case joins(r), linker(r), unicode.Is(unicode.Mc, r):
		return unknown
	case unicode.In(r, unicode.M, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return hidden
	case unicode.Is(unicode.Zs, r):
		return blank
	case !unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S):
		return unknown
	}
	return plain
}

// joins tells whether r changes where the clusters around it begin: conjoining
// Hangul letters and prepended marks.
// Without them every base character is a cluster of its own wherever it stands.
func joins(r rune) bool {
	switch {
	case r >= 0x1100 && r <= 0x11FF, r >= 0xA960 && r <= 0xA97F, r >= 0xD7B0 && r <= 0xD7FF:
		return true
	}
	switch r {
	case 0x0E33, 0x0EB3, 0xFF9E, 0xFF9F, // letters that extend the one before
		0x0D4E, 0x111C2, 0x111C3, 0x1193F, 0x11941, 0x11A3A, 0x11F02, // prepended
		0x11A84, 0x11A85, 0x11A86, 0x11A87, 0x11A88, 0x11A89, 0x11D46,
		0x3164, 0xFFA0: // blank Hangul letters
		return true
	}
	return false
}

// mark tells whether r may stay on the base character before it.
func mark(r rune) bool {
	if r < 0x300 {
		return false
	}
	if r < 0x370 {
		return r != 0x34F
	}
	return unicode.In(r, unicode.Mn, unicode.Me) && !linker(r) &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		displaywidth.DefaultOptions.Rune(r) == 0
}

// apart is what is shown of a character that joins its neighbours: the vowels am of
// Thai and Lao as their two parts.
func apart(r rune) string {
	switch r {
	case 0x0E33:
		return "\u0E32\u0E4D"
	case 0x0EB3:
		return "\u0EB2\u0ECD"
	}
	return replacement
}

// linker tells whether r binds two Indic consonants into one cluster.
func linker(r rune) bool {
	switch r {
	case 0x094D, 0x09CD, 0x0A4D, 0x0ACD, 0x0B4D, 0x0BCD, 0x0C4D, 0x0CCD, 0x0D4D, 0x1039, 0x17D2, 0x1A60, 0x1BAB,
		0xA9C0, 0xAAF6, 0x10A3F, 0x11133, 0x113D0, 0x1193E, 0x11A47, 0x11A99, 0x11F42:
		return true
	}
	return false
}

// marks returns the end of the combining marks that start at s[at:], bounded.
func marks(s string, at int) int {
	for range maxMarks {
		r, size := utf8.DecodeRuneInString(s[at:])
		if !mark(r) {
			break
		}
		at += size
	}
	return at
}

// skipMarks drops the marks that marks left, so that a heap of them can't
// grow over other rows or fall on another character.
func skipMarks(s string) string {
	for len(s) > 0 && s[0] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s)
		if !mark(r) {
			break
		}
		s = s[size:]
	}
	return s
}

// runeWidth is the width of a base character: 1 or 2; 0 is one that has none.
func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if w := displaywidth.DefaultOptions.Rune(r); w == 1 || w == 2 {
		return w
	}
	return 0
}
