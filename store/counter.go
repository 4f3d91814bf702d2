package store

import (
	"encoding/binary"
	"fmt"
)

// counter is one counter of a tenant as the writer sees it.
type counter struct {
	name   string
	value  int64 // with every update applied so far
	stored int64 // on disk
	dirty  bool
}

// readCounter reads a counter's record, 0 when there is none.
func readCounter(ts *tables, name string) (int64, error) {
	if name == "" || len(name) > MaxName {
		return 0, fmt.Errorf("counter %.40q: want a name of 1-%d bytes", name, MaxName)
	}
	t, err := ts.counters()
	if err != nil {
		return 0, err
	}
	value, err := t.get([]byte(name))
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("counter %s: %w", name, ErrCorrupt)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// ledger keeps the counters of one tenant between commits, as long as they are
// used: when many have come to mind, those not asked for since the last time
// that happened are forgotten.
type ledger struct {
	cells map[string]*counter
	older map[string]*counter // known before; asked for again, they are in cells
	dirty []*counter
}

// manyCells is how many counters are in mind, twice over, some 2 MB.
const manyCells = 4096

// cell returns a counter, read from disk when it is not in mind.
func (l *ledger) cell(ts *tables, name string) (*counter, error) {
	if c, ok := l.cells[name]; ok {
		return c, nil
	}
	c, ok := l.older[name]
	if !ok {
		n, err := readCounter(ts, name)
		if err != nil {
			return nil, err
		}
		c = &counter{name: name, value: n, stored: n}
	}
	if l.cells == nil {
		l.cells = map[string]*counter{}
	}
	l.cells[name] = c
	return c, nil
}

func (l *ledger) apply(deltas []delta) {
	for _, d := range deltas {
		d.c.value += d.n
		if !d.c.dirty {
			d.c.dirty = true
			l.dirty = append(l.dirty, d.c)
		}
	}
}

// write puts the changed counters into the transaction.
func (l *ledger) write(ts *tables, a *arena) error {
	for _, c := range l.dirty {
		if c.value == c.stored {
			continue
		}
		t, err := ts.counters()
		if err != nil {
			return err
		}
		var value [8]byte
		binary.BigEndian.PutUint64(value[:], uint64(c.value))
		if err := t.put(ts, a, []byte(c.name), value[:]); err != nil {
			return err
		}
	}
	return nil
}

// settle follows the transaction's end.
func (l *ledger) settle(committed bool) {
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
