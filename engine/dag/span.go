package dag

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"time"

	"swarmdeck/store"
)

// What holds over a time is found by the time, however much there was before:
// what still holds stands in bOpen by its beginning. What has ended is filed
// under a fork of the virtual binary tree over all times: the highest node
// within its time. Whatever held at t is then in one of the 64 nodes on the
// way to t, where it is a range of keys: those that began before t when t is
// left of the node, those that ended after it when t is right of it.
// (The relational interval tree of Kriegel, Pötke and Seidl, VLDB 2000.)

// Kinds of spans beside the relations, which have smaller numbers.
const (
	spanExists byte = 200 // a resource is there
	spanHeld   byte = 201 // a resource is attached to an agent
)

// span is something that holds from a time on: an edge, or a resource's being
// there.
type span struct {
	what byte
	from time.Time
	pos  uint64 // of the event that says so
	i    int    // of the edge there, -1 for a resource
	id   string // of the resource that it is about
}

// tail orders spans that begin or end at the same time.
func (s span) tail() []byte {
	return binary.BigEndian.AppendUint16(key(s.pos), uint16(s.i+1))
}

func (s span) openKey() []byte {
	return append(put64([]byte{s.what}, micros(s.from)), s.tail()...)
}

func holdPrefix(what byte, resource, other uint64) []byte {
	return put64(put64([]byte{what}, resource), other)
}

// opened notes what holds until it is ended, by the numbers of the resource
// and of who has it.
func (w *writer) opened(s span, resource, other uint64) error {
	if err := w.Put(bOpen, s.openKey(), []byte(s.id)); err != nil {
		return err
	}
	return w.Put(bHold, append(put64(holdPrefix(s.what, resource, other), micros(s.from)), s.tail()...), []byte(s.id))
}

func (r reader) isOpen(what byte, resource, other uint64) (open bool, err error) {
	err = r.scan(bHold, holdPrefix(what, resource, other), nil, nil, false, func(_, _ []byte) (bool, error) {
		open = true
		return false, nil
	})
	return open, err
}

// end ends what of a kind holds between a resource and another node.
func (w *writer) end(what byte, resource, other uint64, at time.Time) error {
	return w.endAll(holdPrefix(what, resource, other), 0, at)
}

// endOthers ends what of a kind holds of a resource, but what an event says.
func (w *writer) endOthers(what byte, resource uint64, at time.Time, but uint64) error {
	return w.endAll(put64([]byte{what}, resource), but, at)
}

func (w *writer) endAll(prefix []byte, but uint64, at time.Time) error {
	var found []span
	var keys [][]byte
	err := w.scan(bHold, prefix, nil, nil, false, func(rest, v []byte) (bool, error) {
		if s := readSpan(prefix[0], rest[len(rest)-18:], v); s.pos != but {
			found = append(found, s)
			keys = append(keys, append(bytes.Clone(prefix), rest...))
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for i, s := range found {
		if err := w.Delete(bHold, keys[i]); err != nil {
			return err
		}
		if err := w.Delete(bOpen, s.openKey()); err != nil {
			return err
		}
		if err := w.closed(s, at); err != nil {
			return err
		}
	}
	return nil
}

// readSpan reads from, pos and i, and the value.
func readSpan(what byte, rest, v []byte) span {
	return span{
		what: what, from: time.UnixMicro(int64(get64(rest))).UTC(), pos: get64(rest[8:]),
		i: int(binary.BigEndian.Uint16(rest[16:])) - 1, id: string(v),
	}
}

// closed files what has ended. What ended as it began never was.
func (w *writer) closed(s span, to time.Time) error {
	if s.i >= 0 {
		if err := w.Put(bEnd, append(key(s.pos), binary.BigEndian.AppendUint16(nil, uint16(s.i))...), key(micros(to))); err != nil {
			return err
		}
	}
	from, end := micros(s.from), micros(to)
	if end <= from {
		return nil
	}
	fork := forkOf(from, end-1)
	low := append(put64(append([]byte{s.what}, fork...), from), s.tail()...)
	if err := w.Put(bLow, low, append(key(end), s.id...)); err != nil {
		return err
	}
	high := append(put64(append([]byte{s.what}, fork...), ^end), s.tail()...)
	return w.Put(bHigh, high, append(key(from), s.id...))
}

// forkOf is the highest node of the tree within [first, last]: its level, and
// its place among all times.
func forkOf(first, last uint64) []byte {
	level := bits.Len64(first ^ last)
	if level == 0 {
		return put64([]byte{0}, first)
	}
	return put64([]byte{byte(level)}, last>>(level-1)<<(level-1))
}

// nodeAt is the node of a level on the way to a time.
func nodeAt(level int, t uint64) uint64 {
	if level == 0 {
		return t
	}
	return t>>level<<level | 1<<(level-1)
}

// at calls fn for what held at a time, in no order, until it returns false.
func (r reader) at(what byte, when time.Time, fn func(span) (bool, error)) error {
	t := micros(when)
	more := true
	visit := func(b store.Bucket, prefix, from, to []byte, read func(rest, v []byte) span) error {
		if !more {
			return nil
		}
		return r.scan(b, prefix, from, to, false, func(rest, v []byte) (bool, error) {
			var err error
			more, err = fn(read(rest, v))
			return more, err
		})
	}
	err := visit(bOpen, []byte{what}, nil, key(t+1), func(rest, v []byte) span { return readSpan(what, rest, v) })
	for level := 0; level <= 63 && err == nil; level++ {
		node := nodeAt(level, t)
		prefix := put64([]byte{what, byte(level)}, node)
		if t < node {
			err = visit(bLow, prefix, nil, key(t+1), func(rest, v []byte) span { return readSpan(what, rest, v[8:]) })
		} else {
			// Ends are inverted: all that end after t come first.
			err = visit(bHigh, prefix, nil, key(^t), func(rest, v []byte) span {
				s := readSpan(what, rest, v[8:])
				s.from = time.UnixMicro(int64(get64(v))).UTC()
				return s
			})
		}
	}
	return err
}

// ended is when an edge ended; zero while it holds.
func (r reader) ended(pos uint64, i int) (time.Time, error) {
	v, err := r.Get(bEnd, append(key(pos), binary.BigEndian.AppendUint16(nil, uint16(i))...))
	if err != nil || v == nil {
		return time.Time{}, err
	}
	return time.UnixMicro(int64(get64(v))).UTC(), nil
}
