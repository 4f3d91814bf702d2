package hold

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
)

// roomOf is what a spool keeps of a stream at each of its ends.
const roomOf = 4 << 20 // bytes

// spool holds what of a stream the engine does not have yet, on disk: the first
// bytes and, past what there is room for, the last. The disk has it enciphered, by a
// key that only memory knows: a process may print what it was given in confidence.
type spool struct {
	dir  string
	room int64
	file *os.File // without a name; nil until needed
	key  cipher.Block

	// Places in the stream. From base on, room bytes are at the beginning of the
	// file; what follows is in a ring behind them.
	base, acked, end int64
}

// pending is how much of the stream the engine does not have.
func (s *spool) pending() int64 { return s.end - s.acked }

// write adds to the stream. What can't be written is left out like what there is
// no room for.
func (s *spool) write(p []byte) {
	for len(p) > 0 {
		at, most := s.end-s.base, int64(len(p))
		if at < s.room {
			most = min(most, s.room-at)
		} else {
			ring := s.end % s.room
			at, most = s.room+ring, min(most, s.room-ring)
		}
		err := s.open()
		if err == nil {
			part := slices.Clone(p[:most])
			s.encipher(s.end, part)
			_, err = s.file.WriteAt(part, at)
		}
		s.end += most
		if err != nil {
			s.base, s.acked = s.end, s.end
		}
		p = p[most:]
	}
}

// read gives what is kept from a place in the stream on, as much as lies
// together: n is 0 at its end.
func (s *spool) read(at int64, p []byte) (from int64, n int) {
	from = max(at, s.base)
	head := min(s.base+s.room, s.end)
	place, most := from-s.base, head-from
	if from >= head {
		from = max(from, s.end-s.room)
		ring := from % s.room
		place, most = s.room+ring, min(s.end-from, s.room-ring)
	}
	p = p[:min(int64(len(p)), max(most, 0))]
	if len(p) == 0 {
		return from, 0
	}
	if n, err := s.file.ReadAt(p, place); err != nil || n < len(p) {
		s.base, s.acked = s.end, s.end // the disk has lost it
		return s.end, 0
	}
	s.encipher(from, p)
	return from, len(p)
}

// encipher turns a part of the stream that begins at a place into what the disk has,
// and back. No place has two texts, so that none gives the other away.
func (s *spool) encipher(at int64, p []byte) {
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(at/aes.BlockSize))
	stream := cipher.NewCTR(s.key, counter[:])
	var skipped [aes.BlockSize]byte
	stream.XORKeyStream(skipped[:at%aes.BlockSize], skipped[:at%aes.BlockSize])
	stream.XORKeyStream(p, p)
}

// ack lets go of what the engine has.
func (s *spool) ack(at int64) {
	s.acked = max(s.acked, min(at, s.end))
	if s.acked == s.end && s.base != s.end {
		if s.end-s.base > s.room && s.file != nil { // it takes no disk at rest
			_ = s.file.Truncate(0)
		}
		s.base = s.end
	}
}

func (s *spool) open() error {
	if s.file != nil {
		return nil
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return fmt.Errorf("make a key for output: %w", err)
	}
	f, err := os.CreateTemp(s.dir, "out-")
	if err != nil {
		return fmt.Errorf("make a place for output: %w", err)
	}
	_ = os.Remove(f.Name())
	s.file, s.key = f, block
	return nil
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
	}
}
