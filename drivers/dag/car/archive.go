package car

import (
	"bufio"
	"context"
	"crypto/sha256"
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
