package car

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"swarmdeck/engine/core"
)

// archive finds the blocks of a CAR file, in whatever order they are.
type archive struct {
	file   io.ReaderAt
	root   cid
	blocks map[[sha256.Size]byte]extent // by digest
}

// maxBlocks bounds how many blocks are noted, with some 100 bytes each: an event
// takes two.
const maxBlocks = 8_000_000

// extent is a block's place in the file.
type extent struct {
	at   int64
	size int32
}

// file is what an archive is read from.
type file interface {
	io.Reader
	io.ReaderAt
}

// open looks through a file once.
func open(ctx context.Context, f file) (*archive, error) {
	a := &archive{file: f, blocks: map[[sha256.Size]byte]extent{}}
	in := &counting{r: bufio.NewReaderSize(f, 1<<18)}
	head, err := headerOf(in)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if a.root, err = readHeader(head); err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		size, err := length(in, maxBlock)
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, err
		}
		start := in.n
		prefixed := make([]byte, min(size, 37))
		if _, err := io.ReadFull(in, prefixed); err != nil {
			return nil, cut(err)
		}
		c, _, _, err := readCID(prefixed)
		if err != nil {
			return nil, fmt.Errorf("block at byte %d: %w", start, err)
		}
		var digest [sha256.Size]byte
		copy(digest[:], c[len(c)-sha256.Size:])
		if len(a.blocks) >= maxBlocks {
			return nil, core.Errorf(core.InvalidInput, "file: more than %d blocks", maxBlocks).With("field", "file")
		}
		a.blocks[digest] = extent{start + int64(len(c)), int32(size - uint64(len(c)))}
		if _, err := io.CopyN(io.Discard, in, int64(size)-int64(len(prefixed))); err != nil {
			return nil, cut(err)
		}
	}
}

// counting counts what is read.
type counting struct {
	r *bufio.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counting) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// length reads the length of what follows; io.EOF at the end of the file.
func length(in *counting, most uint64) (uint64, error) {
	before := in.n
	n, err := binary.ReadUvarint(in)
	switch {
	case errors.Is(err, io.EOF) && in.n == before:
		return 0, io.EOF
	case err != nil:
		return 0, cut(err)
	case n == 0 || n > most:
		return 0, core.Errorf(core.InvalidInput, "block at byte %d: %d bytes are not allowed; allowed: 1-%d", before, n, most).With("field", "block")
	}
	return n, nil
}

// headerOf reads what stands before the blocks.
func headerOf(in *counting) ([]byte, error) {
	n, err := length(in, 1<<10)
	if err != nil {
		return nil, cut(err)
	}
	data := make([]byte, n)
	_, err = io.ReadFull(in, data)
	return data, cut(err)
}

// cut says that a file ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return core.Errorf(core.InvalidInput, "file: ends in the middle of a block").With("field", "file")
	}
	return err
}

// block reads one block, and checks it against its identifier.
func (a *archive) block(c cid) ([]byte, error) {
	var digest [sha256.Size]byte
	copy(digest[:], c[len(c)-sha256.Size:])
	x, ok := a.blocks[digest]
	if !ok {
		return nil, missing(c)
	}
	data := make([]byte, x.size)
	if _, err := a.file.ReadAt(data, x.at); err != nil {
		return nil, fmt.Errorf("read block %s: %w", c, err)
	}
	if sha256.Sum256(data) != digest {
		return nil, core.Errorf(core.InvalidInput, "block %s: what it says has another digest than %s: it was changed", c, hex.EncodeToString(digest[:])).With("field", "block")
	}
	return data, nil
}

// node reads a block of ours.
func (a *archive) node(c cid, v any) error {
	data, err := a.block(c)
	if err != nil {
		return err
	}
	if err := core.CheckObject("block", data, maxBlock); err != nil {
		return err
	}
	return core.Decode(data, v)
}

func (a *archive) follow(l link, v any) error {
	c, err := l.cid()
	if err != nil {
		return err
	}
	return a.node(c, v)
}

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
