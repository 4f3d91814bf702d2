package group

import (
	"encoding/binary"
	"fmt"
)

// Counter is one counter of a tenant as the writer sees it.
type Counter struct {
	name   string
	value  int64 // with every update applied so far
	stored int64 // on disk
	dirty  bool
	at     int // where its delta is, in the update that changed it last
}

// Ledger keeps the counters of one tenant between commits, as long as they are
// used: when many have come to mind, those not asked for since the last time
// that happened are forgotten.
type Ledger struct {
	cells map[string]*Counter
	older map[string]*Counter // known before; asked for again, they are in cells
	dirty []*Counter
}

// manyCells is how many counters are in mind, twice over, some 2 MB.
const manyCells = 4096

// Cell returns a counter, read from the store when it is not in mind.
func (l *Ledger) Cell(name string, read func(name string) (int64, error)) (*Counter, error) {
	if c, ok := l.cells[name]; ok {
		return c, nil
	}
	c, ok := l.older[name]
	if !ok {
		n, err := read(name)
		if err != nil {
			return nil, err
		}
		c = &Counter{name: name, value: n, stored: n}
	}
	if l.cells == nil {
		l.cells = map[string]*Counter{}
	}
	l.cells[name] = c
	return c, nil
}

// Apply adds the changes of an update that succeeded.
func (l *Ledger) Apply(deltas []Delta) {
	for _, d := range deltas {
		c := d.Counter
		c.value += d.n
		if !c.dirty {
			c.dirty = true
			l.dirty = append(l.dirty, c)
		}
	}
}

// Write hands the records of the changed counters to put.
func (l *Ledger) Write(put func(name, value []byte) error) error {
	for _, c := range l.dirty {
		if c.value == c.stored {
			continue
		}
		var value [8]byte
		binary.BigEndian.PutUint64(value[:], uint64(c.value))
		if err := put([]byte(c.name), value[:]); err != nil {
			return err
		}
	}
	return nil
}

// Settle follows the transaction's end.
func (l *Ledger) Settle(committed bool) {
	for _, c := range l.dirty {
		if committed {
			c.stored = c.value
		} else {
			c.value = c.stored
		}
		c.dirty = false
	}
	clear(l.dirty)
	l.dirty = l.dirty[:0]
	if len(l.cells) > manyCells { // nothing is under way that knows one of them
		l.cells, l.older = nil, l.cells
	}
}

// Forget drops all that is in mind: counters are read anew. No update is under way.
func (l *Ledger) Forget() { *l = Ledger{} }

// Name is the counter's name.
func (c *Counter) Name() string { return c.name }

// ReadCounter reads a counter by get, which returns the value of its record, nil
// when there is none: 0 then.
func ReadCounter(name string, get func(key []byte) ([]byte, error)) (int64, error) {
	if name == "" || len(name) > MaxName {
		return 0, fmt.Errorf("counter %.40q: want a name of 1-%d bytes", name, MaxName)
	}
	value, err := get([]byte(name))
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("counter %s: %w", name, ErrCorrupt)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// Dirty reports whether updates changed a counter since the last Settle.
func (l *Ledger) Dirty() bool { return len(l.dirty) > 0 }
