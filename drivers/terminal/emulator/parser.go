package emulator

import (
	"bytes"
	"unicode/utf8"
)

// Bounds of a sequence. What goes past them is passed over.
const (
	maxParams = 32
	maxNumber = 65535
	maxOSC    = 4096 // bytes of one that is heeded
)

// parser splits what a program writes into characters, controls and sequences. The
// zero value begins with text. It keeps an unfinished one for the next bytes, and
// grows no further than the bounds.
type parser struct {
	state state
	rest  []byte // the begin of a character

	private byte // of a sequence: one of < = > ?
	inter   byte // its last byte between the numbers and the end
	params  [maxParams]param
	n       int // of params
	text    []byte
}

// param is a number of a sequence, below 0 where it is left out. One that is sub
// belongs to the number before it.
type param struct {
	n   int
	sub bool
}

// state is where in a sequence the parser is.
type state uint8

const (
	ground state = iota
	escape
	csi    // in a control sequence
	broken // in one that is not understood
	osc    // in a command of the system
	other  // in another string, which is passed over
)

// heeds is what a parser tells.
type heeds interface {
	run(p []byte) // printable ASCII
	print(r rune)
	control(b byte)
	esc(final byte)
	csi(final byte)
	osc(text []byte)
}

// understand tells to what p holds.
func (s *parser) understand(p []byte, to heeds) {
	if len(s.rest) > 0 {
		p = append(s.rest, p...)
		s.rest = nil
	}
	for len(p) > 0 {
		switch {
		case s.state == osc || s.state == other:
			p = s.string(p, to)
		case s.state == ground && p[0] >= 0x20 && p[0] != 0x7f:
			n := printable(p)
			if n > 0 {
				to.run(p[:n])
			} else {
				if !utf8.FullRune(p) {
					s.rest = bytes.Clone(p)
					return
				}
				var r rune
				r, n = utf8.DecodeRune(p)
				to.print(r)
			}
			p = p[n:]
		default:
			s.byte(p[0], to)
			p = p[1:]
		}
	}
}

// printable is how many bytes of ASCII without controls p begins with.
func printable(p []byte) int {
	for i, b := range p {
		if b < 0x20 || b >= 0x7f {
			return i
		}
	}
	return len(p)
}

// byte takes one byte outside of text and strings.
func (s *parser) byte(b byte, to heeds) {
	switch {
	case b == 0x1b:
		s.state, s.private, s.inter, s.n = escape, 0, 0, 0
		return
	case b == 0x18 || b == 0x1a: // cancels
		s.state = ground
		return
	case b < 0x20:
		to.control(b)
		return
	case b >= 0x7f: // no part of a sequence
		if s.state != ground && b > 0x7f {
			s.state = ground
		}
		return
	}
	switch s.state {
	case escape:
		s.afterEscape(b, to)
	case csi:
		s.inSequence(b, to)
	case broken:
		if b >= 0x40 {
			s.state = ground
		}
	}
}

func (s *parser) afterEscape(b byte, to heeds) {
	switch {
	case b < 0x30:
		s.inter = b
		return
	case s.inter != 0:
	case b == '[':
		s.state = csi
		return
	case b == ']':
		s.state, s.text = osc, s.text[:0]
		return
	case b == 'P' || b == 'X' || b == '^' || b == '_':
		s.state = other
		return
	}
	s.state = ground
	to.esc(b)
}

func (s *parser) inSequence(b byte, to heeds) {
	switch {
	case b >= 0x40:
		s.state = ground
		to.csi(b)
	case b < 0x30:
		s.inter = b
	case s.inter != 0:
		s.state = broken
	case b >= 0x3c:
		if s.n > 0 || s.private != 0 {
			s.state = broken
			return
		}
		s.private = b
	case b >= 0x3a:
		if s.n == 0 {
			s.put(param{n: -1})
		}
		s.put(param{n: -1, sub: b == ':'})
	default:
		if s.n == 0 {
			s.put(param{n: -1})
		}
		if s.n <= maxParams {
			p := &s.params[s.n-1]
			p.n = min(max(p.n, 0)*10+int(b-'0'), maxNumber)
		}
	}
}

// put begins another number. Those past the bound are counted and not kept.
func (s *parser) put(p param) {
	if s.n < maxParams {
		s.params[s.n] = p
	}
	s.n = min(s.n+1, maxParams+1)
}

// numbers are those of the sequence.
func (s *parser) numbers() []param { return s.params[:min(s.n, maxParams)] }

// number is one of them, or what it is where it is left out or 0.
func (s *parser) number(i, none int) int {
	if i >= len(s.numbers()) || s.params[i].n <= 0 {
		return none
	}
	return s.params[i].n
}

// string takes what belongs to a string, up to its end.
func (s *parser) string(p []byte, to heeds) (rest []byte) {
	for i, b := range p {
		is := s.state == osc
		switch {
		case b == 0x1b, is && b == '\a':
			if s.take(p[:i]); is && len(s.text) <= maxOSC {
				to.osc(s.text)
			}
			s.state = ground
			if b == 0x1b { // of its end, or of what cuts it off
				return p[i:]
			}
			return p[i+1:]
		case b == 0x18 || b == 0x1a:
			s.state = ground
			return p[i+1:]
		}
	}
	s.take(p)
	return nil
}

// take keeps what a command of the system says, and of one that is too long that it is.
func (s *parser) take(p []byte) {
	if s.state == osc {
		s.text = append(s.text, p[:min(len(p), max(0, maxOSC+1-len(s.text)))]...)
	}
}
