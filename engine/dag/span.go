package dag

import (
	"math/bits"
	"slices"
	"time"

	"swarmdeck/engine/record"
)

// What holds over a time is found by the time, however much there was before:
// what still holds stands in openSpans by its beginning. What has ended is filed
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
	i    int    // of the edge there, or of the node of a resource
	id   string // of the resource that it is about
}

// key is where a span stands under a key: by a time of it, and its place.
func (s span) key(under record.Key, at uint64) record.Key {
	return under.Seq(at).Seq(s.pos).Short(uint16(s.i + 1))
}

func (s span) openKey() record.Key { return s.key(record.Key{s.what}, micros(s.from)) }

func holdKey(what byte, resource, other uint64) record.Key {
	return record.Key{what}.Seq(resource).Seq(other)
}

// opened notes what holds until it is ended, by the numbers of the resource
// and of who has it.
func (w *writer) opened(s span, resource, other uint64) error {
	if err := openSpans.Put(w, s.openKey(), []byte(s.id)); err != nil {
		return err
	}
	return holds.Put(w, s.key(holdKey(s.what, resource, other), micros(s.from)), []byte(s.id))
}

func (r reader) isOpen(what byte, resource, other uint64) (open bool, err error) {
	err = holds.Within(r, holdKey(what, resource, other), nil, nil, false, func(_ record.Parts, _ record.Found[[]byte]) (bool, error) {
		open = true
		return false, nil
	})
	return open, err
}

// end ends what of a kind holds between a resource and another node.
func (w *writer) end(what byte, resource, other uint64, at time.Time) error {
	return w.endAll(holdKey(what, resource, other), 0, at)
}

// endOthers ends what of a kind holds of a resource, but what an event says.
func (w *writer) endOthers(what byte, resource uint64, at time.Time, but uint64) error {
	return w.endAll(record.Key{what}.Seq(resource), but, at)
}

func (w *writer) endAll(under record.Key, but uint64, at time.Time) error {
	var all []span
	var keys []record.Key
	err := holds.Within(w, under, nil, nil, false, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		if s := readSpan(under[0], rest[max(0, len(rest)-18):], found.Data); s.pos != but {
			all = append(all, s)
			keys = append(keys, slices.Concat(under, record.Key(rest)))
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for i, s := range all {
		if err := holds.Delete(w, keys[i]); err != nil {
			return err
		}
		if err := openSpans.Delete(w, s.openKey()); err != nil {
			return err
		}
		if err := w.closed(s, at); err != nil {
			return err
		}
	}
	return nil
}

// readSpan reads from, pos and i, and the value.
func readSpan(what byte, rest record.Parts, v []byte) span {
	return span{what: what, from: rest.Time(), pos: rest.Seq(), i: int(rest.Short()) - 1, id: string(v)}
}

// closed files what has ended. What ended as it began never was.
func (w *writer) closed(s span, to time.Time) error {
	if s.what != spanExists {
		if err := ends.Put(w, record.Seq(s.pos).Short(uint16(s.i)), micros(to)); err != nil {
			return err
		}
	}
	from, end := micros(s.from), micros(to)
	if end <= from {
		return nil
	}
	fork := func() record.Key { return forkOf(s.what, from, end-1) }
	if err := lows.Put(w, s.key(fork(), from), record.Seq(end).Last(s.id)); err != nil {
		return err
	}
	return highs.Put(w, s.key(fork(), ^end), record.Seq(from).Last(s.id))
}

// forkOf is the highest node of the tree within [first, last]: its level, and
// its place among all times.
func forkOf(what byte, first, last uint64) record.Key {
	level := bits.Len64(first ^ last)
	if level == 0 {
		return forkKey(what, 0, first)
	}
	return forkKey(what, level, last>>(level-1)<<(level-1))
}

func forkKey(what byte, level int, node uint64) record.Key {
	return record.Key{what}.Byte(byte(level)).Seq(node)
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
	visit := func(rows record.Rows[[]byte], under record.Key, to uint64, read func(rest record.Parts, v []byte) span) error {
		if !more {
			return nil
		}
		return rows.Within(r, under, nil, record.Seq(to), false, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
			var err error
			more, err = fn(read(rest, found.Data))
			return more, err
		})
	}
	err := visit(openSpans, record.Key{what}, t+1, func(rest record.Parts, v []byte) span { return readSpan(what, rest, v) })
	for level := 0; level <= 63 && err == nil; level++ {
		node := nodeAt(level, t)
		under := forkKey(what, level, node)
		if t < node {
			err = visit(lows, under, t+1, func(rest record.Parts, v []byte) span {
				at := record.Parts(v)
				at.Seq() // its end
				return readSpan(what, rest, at)
			})
		} else {
			// Ends are inverted: all that end after t come first.
			err = visit(highs, under, ^t, func(rest record.Parts, v []byte) span {
				at := record.Parts(v)
				from := at.Time()
				s := readSpan(what, rest, at)
				s.from = from
				return s
			})
		}
	}
	return err
}

// ended is when an edge ended; zero while it holds.
func (r reader) ended(pos uint64, i int) (time.Time, error) {
	at, there, err := ends.Get(r, record.Seq(pos).Short(uint16(i)))
	if err != nil || !there {
		return time.Time{}, err
	}
	return time.UnixMicro(int64(at)).UTC(), nil
}
