package emulator

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	table "github.com/charmbracelet/x/ansi/parser"
)

// Bounds of a sequence. What goes past them is passed over.
const (
	maxParams = 32
	maxNumber = 65535
	maxOSC    = 4096 // bytes of one that is heeded
)

// parser splits what a program writes into characters, controls and sequences. It
// keeps an unfinished one for the next bytes, and grows no further than the bounds.
// Control and escape sequences are ansi's; text and strings, where a byte of UTF-8 is
// no control of eight bits, are its own.
type parser struct {
	e    *Emulator
	seq  ansi.Parser
	in   byte   // the string that it is in, by what begins it: ] P X ^ or _; 0 for none
	text []byte // of a command of the system, ]
	rest []byte // the begin of a character

	params ansi.Params // of the sequence that is at its end
}

func (s *parser) begin(e *Emulator) {
	s.e = e
	s.seq.SetParamsSize(maxParams)
	s.seq.SetDataSize(1) // it has no strings
	s.seq.SetHandler(ansi.Handler{
		HandleEsc: e.esc,
		HandleCsi: func(cmd ansi.Cmd, params ansi.Params) {
			s.params = params
			e.csi(cmd)
		},
	})
}

// understand tells the emulator what p holds.
func (s *parser) understand(p []byte) {
	if len(s.rest) > 0 {
		p = append(s.rest, p...)
		s.rest = nil
	}
	for len(p) > 0 {
		n := 1
		switch state := s.seq.State(); {
		case s.in != 0:
			n = s.string(p)
		case state == table.GroundState && p[0] >= utf8.RuneSelf:
			if !utf8.FullRune(p) {
				s.rest = bytes.Clone(p)
				return
			}
			var r rune
			r, n = utf8.DecodeRune(p)
			s.e.print(r)
		case state == table.GroundState && printable(p[0]):
			for n < len(p) && printable(p[n]) {
				n++
			}
			s.e.run(p[:n])
		case p[0] >= utf8.RuneSelf: // no part of a sequence
			s.seq.Reset()
		case state == table.EscapeState && strings.IndexByte("]PX^_", p[0]) >= 0:
			s.seq.Reset()
			s.in, s.text = p[0], s.text[:0]
		case p[0] < 0x20 && !ends(p[0]): // also within a sequence, which goes on
			s.e.control(p[0])
		default:
			s.seq.Advance(p[0])
		}
		p = p[n:]
	}
}

func printable(b byte) bool { return b >= 0x20 && b < 0x7f }

// ends reports whether a byte ends what is not at its end: it cancels, or begins another.
func ends(b byte) bool { return b == 0x18 || b == 0x1a || b == 0x1b }

// string takes what belongs to a string, up to its end, and says how much that was.
func (s *parser) string(p []byte) int {
	end := bytes.IndexFunc(p, func(r rune) bool { return r == '\a' && s.in == ']' || r < 0x20 && ends(byte(r)) })
	n := end
	if end < 0 {
		n = len(p)
	}
	if s.in == ']' { // of one that is too long it is known that it is
		s.text = append(s.text, p[:min(n, maxOSC+1-len(s.text))]...)
	}
	switch {
	case end < 0:
		return n
	case s.in == ']' && len(s.text) <= maxOSC && (p[end] == 0x1b || p[end] == '\a'):
		s.e.osc(s.text)
	}
	if s.in = 0; p[end] == 0x1b { // of its end, or of what cuts it off
		return n
	}
	return n + 1
}

// number is one of the sequence's, or what it is where it is left out or 0.
func (s *parser) number(i, none int) int {
	if n, _, _ := s.params.Param(i, 0); n > 0 {
		return min(n, maxNumber)
	}
	return none
}
