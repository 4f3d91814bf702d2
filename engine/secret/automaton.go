package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// automaton finds many patterns in one pass (Aho and Corasick). Its states are
// the beginnings of patterns, kept as lists since nearly all have one way on.
type automaton struct {
	nodes []node
	root  [256]int32 // ways on from the root, state 0
	pairs [1024]uint64
}

// node is the state in which a beginning has been read.
type node struct {
	child, next int32 // the first way on; the next one of its parent
	fail        int32 // the longest end of it that is a beginning too
	depth       int32 // bytes
	match       int32 // 1 + the pattern that it ends with, the longest; 0 for none
	label       byte  // its last byte
	wraps       bool  // a line may break after it
}

// wrapAt is the least that a line of broken text has. Shorter beginnings are
// too common at the ends of lines, which would be held back for them.
const wrapAt = 16

func newAutomaton(all []pattern) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for i, p := range all {
		a.add(p, int32(i+1))
	}
	a.link()
	return a
}

func (a *automaton) add(p pattern, match int32) {
	at := int32(0)
	for i := range len(p.text) {
		to := a.child(at, p.text[i])
		if to == 0 {
			to = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{next: a.nodes[at].child, depth: int32(i + 1), label: p.text[i]})
			a.nodes[at].child = to
			if at == 0 {
				a.root[p.text[i]] = to
			}
		}
		at = to
		a.nodes[at].wraps = a.nodes[at].wraps || p.wraps && i+1 >= wrapAt
	}
	a.nodes[at].match = match
	pair := uint(p.text[0]) | uint(p.text[1])<<8
	a.pairs[pair>>6] |= 1 << (pair & 63)
}

func (a *automaton) child(at int32, b byte) int32 {
	if at == 0 {
		return a.root[b]
	}
	to := a.nodes[at].child
	for to != 0 && a.nodes[to].label != b {
		to = a.nodes[to].next
	}
	return to
}

// link finds the ends that are beginnings, shorter states first.
func (a *automaton) link() {
	queue := make([]int32, 0, len(a.nodes))
	for to := a.nodes[0].child; to != 0; to = a.nodes[to].next {
		queue = append(queue, to)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		if fail := a.nodes[at].fail; a.nodes[at].match == 0 {
			a.nodes[at].match = a.nodes[fail].match
		}
		for to := a.nodes[at].child; to != 0; to = a.nodes[to].next {
			a.nodes[to].fail = a.step(a.nodes[at].fail, a.nodes[to].label)
			queue = append(queue, to)
		}
	}
}

// step is the state after one more byte.
func (a *automaton) step(at int32, b byte) int32 {
	for {
		if to := a.child(at, b); to != 0 || at == 0 {
			return to
		}
		at = a.nodes[at].fail
	}
}

// skip passes over what can begin no pattern, from the root.
func (a *automaton) skip(data []byte, i int) int {
	for ; i+1 < len(data); i++ {
		pair := uint(data[i]) | uint(data[i+1])<<8
		if a.pairs[pair>>6]&(1<<(pair&63)) != 0 {
			return i
		}
	}
	if i < len(data) && a.root[data[i]] == 0 {
		i++
	}
	return i
}

// pattern is one way in which a value may be printed.
type pattern struct {
	text  string
	wraps bool // encoders break it into lines
}

// minLine is the least that a line of a value must have to be looked for by
// itself, in bytes.
const minLine = 12

// patterns are the ways in which a value may be printed. White space around
// it does not count: printing often changes that. The lines of a value of
// several are looked for too, since programs print them one by one.
func patterns(value string) (all []pattern) {
	value = strings.TrimSpace(value)
	known := map[string]bool{}
	add := func(wraps bool, texts ...string) {
		for _, text := range texts {
			if len(text) >= MinValue && !known[text] {
				known[text] = true
				all = append(all, pattern{text, wraps})
			}
		}
	}
	add(false, value)
	add(false, quoted(value)...)
	add(false, percent(value)...)
	inHex := hex.EncodeToString([]byte(value))
	add(false, inHex, strings.ToUpper(inHex))
	for offset := range 3 {
		inBase64 := aligned(value, offset)
		add(true, inBase64, strings.NewReplacer("+", "-", "/", "_").Replace(inBase64))
	}
	if !strings.Contains(value, "\n") {
		return all
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			add(false, line)
			add(false, quoted(line)...)
		}
	}
	return all
}

// aligned is what standard base64 makes of a value that begins offset bytes
// after a group of three: the characters that the value alone decides.
func aligned(value string, offset int) string {
	encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), value...))
	return encoded[(offset*8+5)/6 : (offset+len(value))*8/6]
}

// quoted is a value within a JSON string, as encoders differ: plain, with a
// slash escaped, safe in HTML, in ASCII.
func quoted(value string) []string {
	if !utf8.ValidString(value) {
		return nil
	}
	return []string{
		inJSON(value, func(rune) bool { return false }),
		strings.ReplaceAll(inJSON(value, func(rune) bool { return false }), "/", `\/`),
		inJSON(value, func(r rune) bool { return strings.ContainsRune("<>&\u2028\u2029", r) }),
		inJSON(value, func(r rune) bool { return r >= 0x7f }),
	}
}

func inJSON(value string, escape func(rune) bool) string {
	var b strings.Builder
	for _, r := range value {
		short := strings.IndexRune("\"\\\b\f\n\r\t", r)
		switch {
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\bfnrt`[short])
		case r >= 0x10000 && escape(r):
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r < 0x20 || escape(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// percent is a value in a URL: of what is no letter or digit, encoders leave
// one of three sets as it is, and write digits in capitals or not.
func percent(value string) (all []string) {
	for _, keep := range []string{"-_.~", "-_.!~*'()", "-_.~$&+=:@"} {
		for _, digits := range []string{"0123456789ABCDEF", "0123456789abcdef"} {
			var b bytes.Buffer
			for _, c := range []byte(value) {
				if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(keep, c) >= 0 {
					b.WriteByte(c)
				} else {
					b.Write([]byte{'%', digits[c>>4], digits[c&15]})
				}
			}
			all = append(all, b.String(), strings.ReplaceAll(b.String(), "%20", "+"))
		}
	}
	return all
}
