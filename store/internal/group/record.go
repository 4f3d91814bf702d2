package group

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// SumLen is the length of a record's checksum: a record is four bytes of CRC32C
// followed by the value. The sum covers
// tenant, bucket, key and value, so that a record which turns up in
// another place than it was written to is noticed as well. It stands in front
// because a damaged key length then moves it too.
const SumLen = 4

// castagnoli is the table of the sum, which the standard library makes once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// SeedOf is the sum's starting point for one bucket of a tenant.
func SeedOf[B ~string](tenant string, b B) uint32 {
	return crc32.Checksum([]byte(tenant+"\x00"+string(b)+"\x00"), castagnoli())
}

func sumOf(seed uint32, key, value []byte) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli(), key), castagnoli(), value)
}

// Wrap writes the record of key and value into dst, which has room for it.
func Wrap(dst []byte, seed uint32, key, value []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst[:0], sumOf(seed, key, value))
	return append(dst, value...)
}

// Unwrap verifies a record and returns its value, ErrCorrupt when it is damaged.
func Unwrap[B ~string](seed uint32, b B, key, record []byte) ([]byte, error) {
	if len(record) < SumLen {
		return nil, fmt.Errorf("%s/%x: %w", b, ClipKey(key), ErrCorrupt)
	}
	value := record[SumLen:len(record):len(record)]
	if binary.BigEndian.Uint32(record) != sumOf(seed, key, value) {
		return nil, fmt.Errorf("%s/%x: %w", b, ClipKey(key), ErrCorrupt)
	}
	return value, nil
}

// ClipKey keeps error messages readable.
func ClipKey(key []byte) []byte { return key[:min(len(key), 48)] }

// Arena hands out the memory of records until the commit is over. bbolt keeps
// the values of a transaction by reference, and only for its length.
type Arena struct {
	chunks [][]byte
	used   int // chunks in use
	free   []byte
}

const (
	arenaChunk = 64 << 10
	arenaKeep  = 64 // chunks kept between commits: 4 MiB
)

// Take returns an empty slice with room for n bytes.
func (a *Arena) Take(n int) []byte {
	if n > arenaChunk/4 {
		return make([]byte, 0, n)
	}
	if n > len(a.free) {
		if a.used == len(a.chunks) {
			a.chunks = append(a.chunks, make([]byte, arenaChunk))
		}
		a.free = a.chunks[a.used]
		a.used++
	}
	out := a.free[:0:n]
	a.free = a.free[n:]
	return out
}

// Reset takes everything back.
func (a *Arena) Reset() {
	if len(a.chunks) > arenaKeep {
		clear(a.chunks[arenaKeep:])
		a.chunks = a.chunks[:arenaKeep]
	}
	a.used, a.free = 0, nil
}
