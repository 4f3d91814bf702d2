package core

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// NewUUID makes the version 4 UUID (RFC 9562) of record seq of a tenant, for
// records whose model asks for one (model 3). Bytes 0-2 mark the tenant as the
// tag of NewID does and bytes 10-15 are seq, so that such a record is found
// without an index and a foreign id is known without a look into that tenant;
// the rest is random. A nil r means crypto/rand; seq is below 2^48.
func NewUUID(tenant string, seq uint64, r io.Reader) string {
	if r == nil {
		r = rand.Reader
	}
	var b [16]byte
	if _, err := io.ReadFull(r, b[3:10]); err != nil {
		panic(fmt.Sprintf("core: random source failed: %v", err)) // crypto/rand never fails on supported systems
	}
	copy(b[:3], uuidTag(tenant))
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var s [8]byte
	binary.BigEndian.PutUint64(s[:], seq)
	copy(b[10:], s[2:])
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func uuidTag(tenant string) []byte {
	sum := sha256.Sum256([]byte(tenant))
	return sum[:3]
}

// IsUUID reports whether id reads as a version 4 UUID in lower case.
func IsUUID(id string) bool {
	_, ok := parseUUID(id)
	return ok
}

func parseUUID(id string) (b [16]byte, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' || strings.ToLower(id) != id {
		return b, false
	}
	n, err := hex.Decode(b[:], []byte(strings.ReplaceAll(id, "-", "")))
	return b, err == nil && n == 16 && b[6]>>4 == 4 && b[8]>>6 == 2
}

// LocalUUID returns the sequence number of a UUID made by NewUUID for this
// tenant; field names it in errors. It fails with INVALID_INPUT for what is no
// version 4 UUID and with ErrForeign for one of another tenant. The caller
// compares the whole id with the record's own: the random part is part of it.
func LocalUUID(field, tenant, id string) (uint64, error) {
	b, ok := parseUUID(id)
	if !ok {
		return 0, Invalid(field, id, "a version 4 UUID, as printed by the list commands")
	}
	if string(b[:3]) != string(uuidTag(tenant)) {
		return 0, fmt.Errorf("%s %s: %w", field, id, ErrForeign)
	}
	var s [8]byte
	copy(s[2:], b[10:])
	return binary.BigEndian.Uint64(s[:]), nil
}
