package audit

import (
	"crypto/sha256"
	"crypto/sha3"
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// lattice is a digest of a set of rows (LtHash with 1024 lanes of 16 bits): rows
// are added and taken away in any order, at a cost that does not depend on how
// many there are, and nobody finds two sets with one digest.
type lattice [1024]uint16

// add takes a row in; it must not be in yet.
func (l *lattice) add(name, sum []byte) { l.mix(name, sum, 1) }

// remove takes a row out that is in.
func (l *lattice) remove(name, sum []byte) { l.mix(name, sum, ^uint16(0)) }

func (l *lattice) mix(name, sum []byte, times uint16) {
	var out [2 * len(l)]byte
	h := sha3.NewSHAKE128()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(name)))) // a hash takes all
	_, _ = h.Write(name)
	_, _ = h.Write(sum)
	_, _ = h.Read(out[:])
	for i := range l {
		l[i] += times * binary.BigEndian.Uint16(out[2*i:])
	}
}

func (l *lattice) bytes() []byte {
	b := make([]byte, 0, 2*len(l))
	for _, lane := range l {
		b = binary.BigEndian.AppendUint16(b, lane)
	}
	return b
}

// root is what an event says of the set.
func (l *lattice) root() string {
	sum := sha256.Sum256(l.bytes())
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (l *lattice) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, l.bytes()), nil
}

func (l *lattice) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != 2*len(l) {
		return errors.New("want the base64 of 2048 bytes")
	}
	for i := range l {
		l[i] = binary.BigEndian.Uint16(b[2*i:])
	}
	return nil
}
