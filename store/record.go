package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A record on disk is four bytes of CRC32C followed by the value. The sum
// covers tenant, bucket, key and value, so that a record which turns up in
// another place than it was written to is noticed as well. It stands in front
// because a damaged key length then moves it too.
const sumLen = 4

// castagnoli is the table of the sum, which the standard library makes once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// seedOf is the sum's starting point for one bucket of a tenant.
func seedOf(tenant string, b Bucket) uint32 {
	return crc32.Checksum([]byte(tenant+"\x00"+string(b)+"\x00"), castagnoli())
}

func sumOf(seed uint32, key, value []byte) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli(), key), castagnoli(), value)
}

// wrap writes the record of key and value into dst, which has room for it.
func wrap(dst []byte, seed uint32, key, value []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst[:0], sumOf(seed, key, value))
	return append(dst, value...)
}

// unwrap verifies a record and returns its value.
func unwrap(seed uint32, b Bucket, key, record []byte) ([]byte, error) {
	if len(record) < sumLen {
		return nil, fmt.Errorf("%s/%x: %w", b, clipKey(key), ErrCorrupt)
	}
	value := record[sumLen:len(record):len(record)]
	if binary.BigEndian.Uint32(record) != sumOf(seed, key, value) {
		return nil, fmt.Errorf("%s/%x: %w", b, clipKey(key), ErrCorrupt)
	}
	return value, nil
}

// clipKey keeps error messages readable.
func clipKey(key []byte) []byte { return key[:min(len(key), 48)] }

// arena hands out the memory of records until the commit is over. bbolt keeps
// the values of a transaction by reference, and only for its length.
type arena struct {
	chunks [][]byte
	used   int // chunks in use
	free   []byte
}

const (
	arenaChunk = 64 << 10
	arenaKeep  = 64 // chunks kept between commits: 4 MiB
)

// take returns an empty slice with room for n bytes.
func (a *arena) take(n int) []byte {
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

// reset takes everything back.
func (a *arena) reset() {
	if len(a.chunks) > arenaKeep {
		clear(a.chunks[arenaKeep:])
		a.chunks = a.chunks[:arenaKeep]
	}
	a.used, a.free = 0, nil
}
