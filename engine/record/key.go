package record

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"swarmdeck/engine/core"
)

// Key is built from parts, and sorts as they do, one after the other. The zero
// value has none. Its methods return a longer key and leave the one they were
// called on as it is to its readers: a key is built in one expression.
type Key []byte

// Seq is a key of one number, with room for two more.
func Seq(n uint64) Key { return make(Key, 0, 24).Seq(n) }

// Text is a key of one text that others may follow; it has no zero byte.
func Text(s string) Key { return Key(nil).Text(s) }

// Hash is a key of one length for a text that may be longer than a key.
func Hash(s string) Key {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// Seq adds a number: eight bytes, the greatest first.
func (k Key) Seq(n uint64) Key { return binary.BigEndian.AppendUint64(k, n) }

// Short adds a small number: two bytes, the greater first.
func (k Key) Short(n uint16) Key { return binary.BigEndian.AppendUint16(k, n) }

// Byte adds one byte.
func (k Key) Byte(b byte) Key { return append(k, b) }

// Text adds a text and the zero byte that ends it; it has none itself.
func (k Key) Text(s string) Key { return append(append(k, s...), 0) }

// Last adds a text that nothing follows.
func (k Key) Last(s string) Key { return append(k, s...) }

// Time adds a time of 1970 or later, in microseconds.
func (k Key) Time(t time.Time) Key { return k.Seq(uint64(t.UnixMicro())) }

// Under is the range of the keys that begin with this one; to is nil where no
// key comes after them.
func (k Key) Under() (from, to Key) {
	to = append(Key(nil), k...)
	for i := len(to) - 1; i >= 0; i-- {
		if to[i]++; to[i] != 0 {
			return k, to[:i+1]
		}
	}
	return k, nil
}

// Numbered is the Key of kinds whose ids are made by core.NewID: the number.
func Numbered(prefix string) func(tenant, id string) Key {
	return func(tenant, id string) Key {
		seq, err := core.LocalSeq(prefix, tenant, id)
		if err != nil {
			return nil
		}
		return Seq(seq)
	}
}

// Numbers is the Number of kinds whose ids are made by core.NewID.
func Numbers(prefix string) func(tenant, id string) (uint64, error) {
	return func(tenant, id string) (uint64, error) { return core.LocalSeq(prefix, tenant, id) }
}

// NumberedName is the Name of kinds whose Key is Numbered.
func NumberedName(prefix string) func(tenant string, key []byte) string {
	return func(tenant string, key []byte) string { return core.NewID(prefix, tenant, LastSeq(key)) }
}

// UUIDs is the Number of kinds whose ids are made by core.NewUUID; field names
// the id in errors.
func UUIDs(field string) func(tenant, id string) (uint64, error) {
	return func(tenant, id string) (uint64, error) { return core.LocalUUID(field, tenant, id) }
}

// Parts reads a stored key from its front. What is not there reads as zero.
type Parts []byte

// Seq takes a number.
func (p *Parts) Seq() uint64 {
	b := *p
	if len(b) < 8 {
		*p = nil
		return 0
	}
	*p = b[8:]
	return binary.BigEndian.Uint64(b)
}

// Short takes a small number.
func (p *Parts) Short() uint16 {
	b := *p
	if len(b) < 2 {
		*p = nil
		return 0
	}
	*p = b[2:]
	return binary.BigEndian.Uint16(b)
}

// Byte takes one byte.
func (p *Parts) Byte() byte {
	b := *p
	if len(b) == 0 {
		return 0
	}
	*p = b[1:]
	return b[0]
}

// Text takes a text and the zero byte that ends it, or all that is left.
func (p *Parts) Text() string {
	b := *p
	for i, c := range b {
		if c == 0 {
			*p = b[i+1:]
			return string(b[:i])
		}
	}
	*p = nil
	return string(b)
}

// Time takes a time.
func (p *Parts) Time() time.Time { return time.UnixMicro(int64(p.Seq())).UTC() }

// LastSeq is the number that a key ends with.
func LastSeq(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key[len(key)-8:])
}
