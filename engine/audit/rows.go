package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Class says how what a bucket or a counter holds is proven.
type Class uint8

// Classes. What nothing is declared of is Audited.
const (
	// Audited rows have their digest in the event of the change that wrote them.
	Audited Class = iota
	// Derived rows follow from audited ones; see Deriver.
	Derived
	// Volatile rows are not proven: nothing that matters may rest on them.
	Volatile
)

// classes are what was declared. A value is not changed once it is in use.
type classes struct {
	names    map[string]Class
	prefixes []prefix
}

type prefix struct {
	begin string
	class Class
}

// Declare says of what class buckets are, and counters: their names come with a
// "#" in front. A name that ends with "*" stands for all that begin so. It is
// called before the first change, by who writes them.
func (l *Ledger) Declare(class Class, names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.declare(class, names)
}

// declare is called with mu held.
func (l *Ledger) declare(class Class, names []string) {
	l.classes.Store(l.classes.Load().with(class, names))
}

// with is a copy with more names.
func (c *classes) with(class Class, names []string) *classes {
	next := &classes{names: map[string]Class{}}
	if c != nil {
		maps.Copy(next.names, c.names)
		next.prefixes = slices.Clone(c.prefixes)
	}
	for _, name := range names {
		if begin, ok := strings.CutSuffix(name, "*"); ok {
			if p := (prefix{begin, class}); !slices.Contains(next.prefixes, p) {
				next.prefixes = append(next.prefixes, p)
			}
		} else {
			next.names[name] = class
		}
	}
	return next
}

// Declared lists the names of a class, as Declare was given them.
func (l *Ledger) Declared(class Class) (names []string) {
	now := l.classes.Load()
	if now == nil {
		return nil
	}
	for name, c := range now.names {
		if c == class {
			names = append(names, name)
		}
	}
	for _, p := range now.prefixes {
		if p.class == class {
			names = append(names, p.begin+"*")
		}
	}
	slices.Sort(names)
	return names
}

func (c *classes) bucket(b store.Bucket) Class {
	if c == nil {
		return Audited
	}
	if class, ok := c.names[string(b)]; ok {
		return class
	}
	return c.begins(string(b), false)
}

func (c *classes) counter(name string) Class {
	if name == counter || name == toldCounter { // verify counts the events
		return Volatile
	}
	if c == nil {
		return Audited
	}
	if class, ok := c.names["#"+name]; ok {
		return class
	}
	return c.begins(name, true)
}

func (c *classes) begins(name string, counter bool) Class {
	for _, p := range c.prefixes {
		begin, of := strings.CutPrefix(p.begin, "#")
		if of == counter && strings.HasPrefix(name, begin) {
			return p.class
		}
	}
	return Audited
}

// counters is the name under which rows tell of counters.
const counters store.Bucket = "#"

// row is one that a transaction wrote.
type row struct {
	bucket store.Bucket
	key    []byte
	name   string // of a counter, in place of the key
	gone   bool
	sum    [sha256.Size]byte
}

// keep remembers a written row of an audited bucket, until the next event.
func (tx *Tx) keep(b store.Bucket, key, value []byte, gone bool) {
	if tx.l.classes.Load().bucket(b) != Audited {
		return
	}
	r := tx.row(b, key, "")
	if r.gone = gone; !gone {
		r.sum = sha256.Sum256(value)
	}
}

func (tx *Tx) row(b store.Bucket, key []byte, name string) *row {
	for i := max(0, len(tx.rows)-16); i < len(tx.rows); i++ { // a row is most often written again at once, if at all
		if r := &tx.rows[i]; r.bucket == b && r.name == name && bytes.Equal(r.key, key) {
			return r
		}
	}
	tx.rows = append(tx.rows, row{bucket: b, key: key, name: name})
	return &tx.rows[len(tx.rows)-1]
}

// counted remembers an audited counter that was changed.
func (tx *Tx) counted(name string) {
	if tx.l.classes.Load().counter(name) == Audited {
		tx.row(counters, nil, name)
	}
}

const rowsMember = `,"rows":["`

// appendRows adds as many rows to an event's payload as it has room for, and
// returns the others. Of rows that were written twice the later one counts.
func (tx *Tx) appendRows(b []byte) []byte {
	const tail = len(`"]}}`)
	first := true
	for i := range tx.rows {
		r := &tx.rows[i]
		if len(b)+2*(len(r.key)+len(r.name))+len(r.bucket)+80+tail > MaxEvent {
			tx.rows = tx.rows[i:]
			return closeRows(b, first)
		}
		if first {
			b = append(b, rowsMember...)
		} else {
			b = append(b, `","`...)
		}
		first = false
		b = append(append(b, r.bucket...), ' ')
		b = append(appendKey(appendKey(b, r.key), r.name), ' ')
		switch {
		case r.bucket == counters:
			if n := tx.Counter(r.name); n != 0 {
				b = strconv.AppendInt(b, n, 10)
			} else {
				b = append(b, '-') // never counted, and back at zero, are the same
			}
		case r.gone:
			b = append(b, '-')
		default:
			b = appendSum(b, r.sum)
		}
	}
	tx.rows = tx.rows[:0]
	return closeRows(b, first)
}

func closeRows(b []byte, none bool) []byte {
	if none {
		return b
	}
	return append(b, `"]`...)
}

func appendSum(b []byte, sum [sha256.Size]byte) []byte {
	return base64.RawURLEncoding.AppendEncode(b, sum[:])
}

// appendKey writes a key as it is where that can be read, else in base64.
func appendKey[K []byte | string](b []byte, key K) []byte {
	for i := range len(key) {
		c := key[i]
		if !plainByte(c) && (c != '~' || i == 0) {
			return base64.RawURLEncoding.AppendEncode(append(b, '~'), []byte(key))
		}
	}
	return append(b, key...)
}

// unkey is what appendKey wrote, as it was.
func unkey(key []byte) []byte {
	if coded, ok := bytes.CutPrefix(key, []byte("~")); ok {
		if raw, err := base64.RawURLEncoding.AppendDecode(nil, coded); err == nil {
			return raw
		}
	}
	return key
}

// readable is a stored key, written by appendKey, for people.
func readable(key string) string {
	coded, ok := strings.CutPrefix(key, "~")
	if raw, err := base64.RawURLEncoding.DecodeString(coded); ok && err == nil {
		return strconv.Quote(string(raw))
	}
	return key
}

func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:/@+-#", c) >= 0
}

// rowsIn visits the rows that an event tells of: "BUCKET KEY" and the digest,
// "-" for one that was removed.
func rowsIn(data []byte, visit func(name, sum []byte)) error {
	rest, ok := bytes.CutSuffix(data, []byte(`"]}}`))
	if !ok {
		return nil
	}
	at := bytes.LastIndex(rest, []byte(rowsMember))
	if at < 0 {
		return nil
	}
	for line := range bytes.SplitSeq(rest[at+len(rowsMember):], []byte(`","`)) {
		i := bytes.LastIndexByte(line, ' ')
		if i < 0 || bytes.IndexByte(line, '"') >= 0 {
			return fmt.Errorf("a row reads %q", core.Clip(string(line)))
		}
		visit(line[:i], line[i+1:])
	}
	return nil
}
