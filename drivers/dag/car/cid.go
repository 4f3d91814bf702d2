package car

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"fmt"

	"swarmdeck/engine/core"
)

// The codecs of blocks (multicodec table).
const (
	codecRaw     = 0x55
	codecDAGJSON = 0x0129
)

// cid is a content identifier, version 1 with sha2-256, in its binary form
// (github.com/multiformats/cid).
type cid string

// tail is what stands before the digest: the hash's code and length.
const tail = "\x12\x20"

func prefix(codec int) string {
	if codec == codecRaw {
		return "\x01\x55" + tail
	}
	return "\x01\xa9\x02" + tail
}

// cidOf is the identifier of a block.
func cidOf(codec int, block []byte) cid {
	sum := sha256.Sum256(block)
	return cid(prefix(codec) + string(sum[:]))
}

// readCID reads an identifier at the beginning of data.
func readCID(data []byte) (c cid, codec int, rest []byte, err error) {
	for _, codec := range []int{codecDAGJSON, codecRaw} {
		p := prefix(codec)
		if n := len(p) + sha256.Size; len(data) >= n && string(data[:len(p)]) == p {
			return cid(data[:n]), codec, data[n:], nil
		}
	}
	return "", 0, nil, core.Errorf(core.InvalidInput, "cid: %x is not allowed; allowed: version 1, dag-json or raw, sha2-256", data[:min(len(data), 8)]).With("field", "cid")
}

var base = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String is the identifier in base32, as a link has it.
func (c cid) String() string { return "b" + base.EncodeToString([]byte(c)) }

// link is an identifier as dag-json writes it: {"/": "b…"}.
type link struct {
	CID string `json:"/"`
}

func linkTo(c cid) link { return link{c.String()} }

// cid reads a link.
func (l link) cid() (cid, error) {
	if len(l.CID) < 2 || l.CID[0] != 'b' {
		return "", core.Errorf(core.InvalidInput, "link: %.80q is not allowed; allowed: a CID in base32", l.CID).With("field", "link")
	}
	data, err := base.DecodeString(l.CID[1:])
	if err != nil {
		return "", core.Errorf(core.InvalidInput, "link: %.80q: %v", l.CID, err).With("field", "link")
	}
	c, _, rest, err := readCID(data)
	if err == nil && len(rest) > 0 {
		err = core.Errorf(core.InvalidInput, "link: %.80q: something follows the CID", l.CID).With("field", "link")
	}
	return c, err
}

// header is the CAR header for one root: dag-cbor of {roots: [CID], version: 1}.
// Its length does not depend on the root.
func header(root cid) []byte {
	var b bytes.Buffer
	b.WriteString("\xa2\x65roots\x81\xd8\x2a\x58")
	b.WriteByte(byte(len(root) + 1))
	b.WriteByte(0) // identity multibase
	b.WriteString(string(root))
	b.WriteString("\x67version\x01")
	return b.Bytes()
}

// readHeader reads a header; it must be of version 1 with one root.
func readHeader(data []byte) (cid, error) {
	head := []byte("\xa2\x65roots\x81\xd8\x2a\x58")
	if rest, ok := bytes.CutPrefix(data, head); ok && len(rest) > 2 && rest[1] == 0 {
		root, _, after, err := readCID(rest[2:])
		if err == nil && int(rest[0]) == len(root)+1 && string(after) == "\x67version\x01" {
			return root, nil
		}
	}
	return "", core.Errorf(core.InvalidInput, "header: is not that of a CAR of version 1 with one root").With("field", "header")
}

func missing(c cid) error {
	return fmt.Errorf("block %s: %w", c, core.Errorf(core.InvalidInput, "it is missing").With("field", "block"))
}
