package dag

import (
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/record"
)

// search goes through the events that are in all of some lists, and leaves out
// what the columns and pieces of their blocks rule out.
type search struct {
	first   listed   // is gone through
	others  []cursor // must have what it has
	forward bool

	kind, status, returned byte // 0 is any
	since, until           uint64
	unlisted               bool     // what no list covers is for the event to tell
	texts                  []sought // that the JSON has
	places                 []uint32 // of the pieces of all texts
	events                 uint64   // of the record
	scans                  bool     // blocks are looked at before they are entered

	done    uint64  // entries of first that were gone through
	looked  int     // of these, events that were looked at
	ahead   cursor  // over first
	at      *block  // of the newest event, as far as it is needed
	n       uint64  // its number + 1
	having  *having // the texts, where the block was scanned
	rows    []row   // its events, where many are looked at
	ruled   bool    // out, as a whole
	scanned scanned
	waits   uint64 // for a scan from this block on, + 1
	over    bool   // nothing more is wanted
	through bool   // there is nothing more
}

func newSearch(q *Query, lists []listed, forward bool, events uint64) *search {
	s := &search{first: lists[0], ahead: cursor{l: lists[0]}, forward: forward, until: math.MaxUint64, events: events}
	for _, l := range lists[1:] {
		s.others = append(s.others, cursor{l: l})
	}
	s.unlisted = q.told || q.Run != "" || q.Correlation != "" || q.Task != "" || q.Session != "" || q.Agent != ""
	if q.Kind != "" {
		s.kind = Kind(q.Kind).code()
	}
	if s.first.rows == kinds {
		s.kind = s.first.under[0] // the others of a block need no look
	}
	if q.Status != "" {
		s.status = statusCode(q.Status)
	}
	if q.returned != "" {
		s.returned = statusCode(q.returned)
	}
	if !q.Since.IsZero() {
		s.since = micros(q.Since)
	}
	if !q.Until.IsZero() {
		s.until = micros(q.Until)
	}
	text := func(t string) {
		found := seek(t)
		s.texts = append(s.texts, found)
		s.places = append(s.places, placesOf(found.lower)...)
	}
	if q.Match != "" {
		text(q.Match)
	}
	if q.Trace != "" {
		if quoted, err := jsontext.AppendQuote([]byte(`"trace_id":`), q.Trace); err == nil {
			text(string(quoted))
		}
	}
	s.scans = len(s.texts) > 0 && s.first.n >= events/sparse
	return s
}

// in says whether an event's JSON has all the texts.
func (s *search) in(raw []byte) bool {
	return !slices.ContainsFunc(s.texts, func(t sought) bool { return !t.in(raw) })
}

// candidate is an event that may be wanted: for sure, or if it has the texts and
// matches.
type candidate struct {
	pos    uint64
	sure   bool
	unread error // why its entry in the list can't be read
}

// step goes on for about a slice, or to a block that is to be scanned, and calls
// fn for what may be wanted.
func (s *search) step(r reader, fn func(candidate) error) error {
	looks := 0
	s.n = 0 // what was read of a block ended with its transaction
	for entries := 0; s.done < s.first.n && looks < slice && entries < 20*slice && !s.over; entries++ {
		i := s.done + 1
		if !s.forward {
			i = s.first.n - s.done
		}
		pos, err := s.ahead.entry(r, i, s.forward)
		if err != nil {
			s.done++
			if err := fn(candidate{unread: err}); err != nil {
				return err
			}
			continue
		}
		if err := s.enter(r, pos); err != nil {
			return err
		}
		if s.waits > 0 {
			return nil
		}
		if s.ruled {
			s.done += s.skip(pos)
			continue
		}
		s.done++
		maybe, sure := s.allows(s.at, pos)
		if maybe && s.having != nil {
			s.looked++
			maybe = s.having.has(pos)
		}
		for k := range s.others {
			if maybe {
				if maybe, err = s.others[k].has(r, pos, s.forward); err != nil {
					return err
				}
			}
		}
		if !maybe {
			continue
		}
		if !sure {
			looks++
		}
		if !sure && s.having == nil {
			s.looked++
		}
		if err := fn(candidate{pos: pos, sure: sure}); err != nil {
			return err
		}
	}
	s.through = s.done >= s.first.n
	s.over = s.over || s.through
	return nil
}

// skip is how many entries of first are passed with a block.
func (s *search) skip(pos uint64) uint64 {
	_, i := blockOf(pos)
	switch {
	case s.first.rows != "": // entries need not be of one block
		return 1
	case s.forward:
		return blockEvents - uint64(i)
	}
	return uint64(i) + 1
}

// enter reads what is needed of an event's block.
func (s *search) enter(r reader, pos uint64) error {
	n, _ := blockOf(pos)
	if s.n == n+1 {
		return nil
	}
	s.n, s.at, s.ruled, s.having, s.rows = n+1, nil, false, nil, s.rows[:0]
	if s.scans {
		found := s.scanned.of(n)
		if found == nil {
			s.waits = n + 1
			return nil
		}
		if s.ruled = found.known && !found.read; s.ruled {
			return nil
		}
		if found.known {
			s.having = found
		}
	}
	var err error
	if s.at, err = s.narrow(r, n); err != nil || len(s.places) == 0 {
		return err
	}
	switch {
	case s.having != nil && s.having.n < gatherFrom:
		return nil
	case s.having == nil:
		set, err := pieces.Data(r, record.Seq(n))
		if s.ruled = err == nil && !mayHold(set, s.places); s.ruled || err != nil || s.first.rows != "" {
			return err
		}
	}
	if s.gather(r, n) != nil {
		s.rows = s.rows[:0] // each says by itself what is wrong
	}
	return nil
}

// gatherFrom is how many events of a block that are wanted are worth to read all.
const gatherFrom = 32

// narrow reads what a block's events can be narrowed by; nil where there is nothing.
func (s *search) narrow(r reader, n uint64) (*block, error) {
	cols, err := columns.Data(r, record.Seq(n))
	if err != nil || len(cols) != blockEvents*columnWidth {
		return nil, err
	}
	b := &block{columns: cols}
	if s.returned > 0 {
		if b.returns, err = returns.Data(r, record.Seq(n)); err != nil || len(b.returns) != blockEvents {
			return nil, err
		}
	}
	return b, nil
}

// gather reads the events of a block in one go.
func (s *search) gather(r reader, n uint64) error {
	first := n*blockEvents + 1
	return stored.Within(r, nil, record.Seq(first), record.Seq(first+blockEvents), false, func(key record.Parts, found record.Found[[]byte]) (bool, error) {
		w, err := asRow(first+uint64(len(s.rows)), found.Data)
		if s.rows = append(s.rows, w); key.Seq() != w.pos {
			err = damaged(w.pos, nil)
		}
		return true, err
	})
}

// row reads an event of the block.
func (s *search) row(r reader, pos uint64) (row, error) {
	if _, i := blockOf(pos); i < len(s.rows) {
		return s.rows[i], nil
	}
	return r.row(pos)
}

// allows says what a block's columns, if it has any, say of an event: whether it
// may be wanted, and whether it is for sure.
func (s *search) allows(b *block, pos uint64) (maybe, sure bool) {
	if b == nil {
		return true, false
	}
	_, i := blockOf(pos)
	c := column(b.columns[i*columnWidth : (i+1)*columnWidth])
	at := c.micros()
	maybe = (s.kind == 0 || c.kind() == s.kind) && (s.status == 0 || c.status() == s.status) &&
		(s.returned == 0 || b.returns[i] == s.returned) && at >= s.since && at <= s.until
	// A time of less than a microsecond more is told by the event itself.
	return maybe, maybe && !s.unlisted && len(s.texts) == 0 && s.status != statusOther && (at != s.since || s.since == 0) && at != s.until
}

// cursor reads the entries of a list, many at a time.
type cursor struct {
	l     listed
	from  uint64   // number of the first entry in buf
	buf   []uint64 // their pos
	below uint64   // every entry of a pos from here
	above uint64   // to here is in buf
}

// ahead is how many entries are read at once.
const ahead = 512

// entry is the pos of an entry, read with those that come next.
func (c *cursor) entry(r reader, i uint64, forward bool) (uint64, error) {
	if c.l.rows == "" {
		return i, nil
	}
	if len(c.buf) == 0 || i < c.from || i >= c.from+uint64(len(c.buf)) {
		if c.load(r, i, forward) != nil {
			c.buf = c.buf[:0]
		}
	}
	if i < c.from || i >= c.from+uint64(len(c.buf)) {
		return r.entry(c.l, i) // which tells what is wrong
	}
	return c.buf[i-c.from], nil
}

// load reads entries from one on.
func (c *cursor) load(r reader, i uint64, forward bool) error {
	from, to := i, min(i+ahead-1, c.l.n)
	if !forward {
		from, to = 1, i
		if i > ahead {
			from = i - ahead + 1
		}
	}
	c.from, c.buf = from, c.buf[:0]
	err := c.l.rows.Within(r, c.l.under, record.Seq(from), record.Seq(to+1), false, func(_ record.Parts, found record.Found[[]byte]) (bool, error) {
		at := record.Parts(found.Data)
		c.buf = append(c.buf, at.Seq())
		return true, nil
	})
	c.below, c.above = 0, math.MaxUint64
	if len(c.buf) > 0 && from > 1 {
		c.below = c.buf[0]
	}
	if len(c.buf) > 0 && to < c.l.n {
		c.above = c.buf[len(c.buf)-1]
	}
	return err
}

// has says whether the list has an event.
func (c *cursor) has(r reader, pos uint64, forward bool) (bool, error) {
	if c.l.rows == "" {
		return pos <= c.l.n, nil
	}
	if c.l.n == 0 {
		return false, nil
	}
	if c.buf == nil || pos < c.below || pos > c.above {
		i, err := r.upto(c.l, pos)
		if !forward { // the one after it bounds what is known
			i = min(i+1, c.l.n)
		}
		if err == nil {
			err = c.load(r, max(i, 1), forward)
		}
		if err != nil {
			return false, err
		}
	}
	_, found := slices.BinarySearch(c.buf, pos)
	return found, nil
}
