package dag

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// A text is found by its pieces: any byte and any three bytes of it in a row, in
// lower case, and six hex digits, since of those any three stand in every block. A
// block has a bit for each byte that there is, and for all other pieces as few bits
// as leave most of them unset: a text that has an unset one is not in the block.

const (
	byteBits    = 256
	piecesMost  = 20 // log2 of the other bits of a block at most
	piecesLeast = 10
	hexPiece    = 6
)

// cutter cuts a text in lower case, byte by byte.
type cutter struct {
	last   uint64 // the newest eight bytes
	n      int    // bytes so far
	digits int    // of these, hex digits at the end
}

func (k *cutter) take(c byte) {
	k.last = k.last<<8 | uint64(c)
	k.n++
	if k.digits++; c-'0' > 9 && c-'a' > 5 {
		k.digits = 0
	}
}

// place is the bit of the piece of so many bytes that ends here.
func (k *cutter) place(size uint64) uint32 {
	const odd = 0x9e3779b97f4a7c15 // spreads over the upper bits
	return byteBits + uint32((size<<56|k.last&(1<<(8*size)-1))*odd>>(64-piecesMost))
}

// placesOf are the bits of all pieces of a text: those of single bytes come first.
func placesOf(lower string) (all []uint32) {
	var k cutter
	for i := range len(lower) {
		k.take(lower[i])
		all = append(all, uint32(lower[i]))
		if k.n >= 3 {
			all = append(all, k.place(3))
		}
		if k.digits >= hexPiece {
			all = append(all, k.place(hexPiece))
		}
	}
	return all
}

// gatherer gathers the pieces of a block. The zero value has none.
type gatherer struct {
	set   []uint64
	lower []byte
}

func (g *gatherer) add(text []byte) {
	if g.set == nil {
		g.set = make([]uint64, (byteBits+1<<piecesMost)/64)
	}
	g.lower = toLower(g.lower, text)
	var k cutter
	var single [byteBits]bool
	set := g.set
	for _, c := range g.lower {
		k.take(c)
		single[c] = true
		if k.n >= 3 {
			bit := k.place(3)
			set[bit/64] |= 1 << (bit % 64)
		}
		if k.digits >= hexPiece {
			bit := k.place(hexPiece)
			set[bit/64] |= 1 << (bit % 64)
		}
	}
	for c, there := range single {
		if there {
			set[c/64] |= 1 << (c % 64)
		}
	}
}

// bits are the pieces in as few bits as leave three of four unset.
func (g *gatherer) bits() []byte {
	single, set := g.set[:byteBits/64], g.set[byteBits/64:]
	for len(set)*64 > 1<<piecesLeast {
		low, high := set[:len(set)/2], set[len(set)/2:]
		n := 0
		for i := range low {
			n += bits.OnesCount64(low[i] | high[i])
		}
		if n*4 > len(low)*64 {
			break
		}
		for i := range low {
			low[i] |= high[i]
		}
		set = low
	}
	out := make([]byte, 0, (len(single)+len(set))*8)
	for _, words := range [][]uint64{single, set} {
		for _, word := range words {
			out = binary.LittleEndian.AppendUint64(out, word)
		}
	}
	return out
}

// mayHold says whether a block with these pieces may have a text in it, given its
// places of cut.
func mayHold(set []byte, places []uint32) bool {
	size := len(set)*8 - byteBits
	if size <= 0 || size&(size-1) != 0 { // not here, or not ours
		return true
	}
	for _, bit := range places {
		if bit >= byteBits {
			bit = byteBits + (bit-byteBits)&uint32(size-1)
		}
		if set[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// toLower is strings.ToLower of a text, into memory that is there.
func toLower(to, text []byte) []byte {
	to = append(to[:0], text...)
	for i, c := range to {
		if c >= utf8.RuneSelf {
			return append(to[:0], bytes.ToLower(text)...)
		}
		if c-'A' < 26 {
			to[i] = c + 'a' - 'A'
		}
	}
	return to
}

// sought is a text to be found whatever its case.
type sought struct {
	lower  string
	ascii  bool
	pivot  int  // the byte of it that texts have least of
	folded bool // letters other than ASCII's have the same lower case as some of it
}

func seek(text string) sought {
	s := sought{lower: strings.ToLower(text), ascii: true}
	const common = "etaoinsrhldcum\"_:,fpg0123456789wyb " // of JSON, the commonest first
	rarest := -1
	for i := range len(s.lower) {
		c := s.lower[i]
		s.ascii = s.ascii && c < utf8.RuneSelf
		s.folded = s.folded || c == 'k' || c == 'i'
		at := strings.IndexByte(common, c)
		if at < 0 {
			at = len(common)
		}
		if at > rarest {
			rarest, s.pivot = at, i
		}
	}
	return s
}

// in says whether a text has the one that is sought in it.
func (s *sought) in(text []byte) bool {
	if s.lower == "" {
		return true
	}
	if !s.ascii {
		return strings.Contains(strings.ToLower(string(text)), s.lower)
	}
	c := s.lower[s.pivot]
	if s.around(text, c) || c >= 'a' && c <= 'z' && s.around(text, c-('a'-'A')) {
		return true
	}
	// The Kelvin sign and the I with a dot are k and i in lower case.
	return s.folded && (bytes.IndexByte(text, "\u212a"[1]) >= 0 || bytes.IndexByte(text, "\u0130"[0]) >= 0) &&
		strings.Contains(strings.ToLower(string(text)), s.lower)
}

// around looks at each place where a byte is that the pivot may be.
func (s *sought) around(text []byte, c byte) bool {
	for at := s.pivot; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], c)
		if i < 0 {
			return false
		}
		at += i
		from, to := at-s.pivot, at-s.pivot+len(s.lower)
		if to > len(text) {
			return false
		}
		if sameFold(text[from:to], s.lower) {
			return true
		}
	}
	return false
}

// sameFold compares ASCII in lower case with a text in any.
func sameFold(text []byte, lower string) bool {
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
