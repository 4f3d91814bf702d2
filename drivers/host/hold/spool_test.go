package hold

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"swarmdeck/expect"
)

// all reads what a spool keeps from a place on, with gaps as "[N]".
func all(s *spool, at int64, step int) string {
	var out bytes.Buffer
	for buf := make([]byte, step); ; {
		from, n := s.read(at, buf)
		if from > at {
			fmt.Fprintf(&out, "[%d]", from-at)
		}
		if at = from + int64(n); n == 0 {
			return out.String()
		}
		out.Write(buf[:n])
	}
}

func TestASpoolKeepsBothEnds(t *testing.T) {
	s := &spool{dir: t.TempDir(), room: 4}
	defer s.close()
	s.write([]byte("abc"))
	expect.Is(t, all(s, 0, 2), "abc")
	s.write([]byte("defghijklm"))
	expect.Is(t, all(s, 0, 3), "abcd[5]jklm")
	s.ack(4)
	expect.Is(t, all(s, s.acked, 100), "[5]jklm")
	s.ack(13)
	s.write([]byte("xyz"))
	if got := all(s, s.acked, 1); got != "xyz" || s.pending() != 3 {
		t.Error(got, s.pending())
	}
}

// TestASpoolLosesNothingWithinItsRoom writes, reads and acknowledges at random, never
// more at a time than there is room for.
func TestASpoolLosesNothingWithinItsRoom(t *testing.T) {
	s := &spool{dir: t.TempDir(), room: 64}
	defer s.close()
	r := rand.New(rand.NewPCG(1, 2))
	var wrote, got []byte
	for range 5000 {
		if n := int(min(s.room-s.pending(), int64(r.IntN(20)))); n > 0 {
			part := make([]byte, n)
			for i := range part {
				part[i] = byte(r.Uint32())
			}
			wrote = append(wrote, part...)
			s.write(part)
		}
		buf := make([]byte, 1+r.IntN(30))
		from, n := s.read(int64(len(got)), buf)
		expect.Must(t, from == int64(len(got)), "a gap at %d", from)
		got = append(got, buf[:n]...)
		s.ack(int64(len(got)))
	}
	expect.True(t, bytes.Equal(got, wrote[:len(got)]) && len(wrote)-len(got) <= 64, "not what was written")
}

func TestTheDiskHasNothingInClear(t *testing.T) {
	s := &spool{dir: t.TempDir(), room: 1 << 10}
	defer s.close()
	text := bytes.Repeat([]byte("correct horse battery "), 60)
	for part := range slices.Chunk(text, 37) {
		s.write(part)
	}
	disk := make([]byte, 2<<10)
	n, _ := s.file.ReadAt(disk, 0)
	if n < 1<<10 || bytes.Contains(disk[:n], []byte("horse")) {
		t.Errorf("%d bytes: %q", n, disk[:n])
	}
	expect.Is(t, all(s, 0, 100), string(text))
}
