package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"swarmdeck/store/internal/group"
)

// Limits of names, keys and values.
const (
	MaxName  = group.MaxName  // bytes of a tenant id or a bucket name
	MaxKey   = group.MaxKey   // bytes of a key
	MaxValue = group.MaxValue // bytes of a value
)

// countersBucket holds a tenant's counters. Names that begin with "_" are the
// store's own.
const countersBucket Bucket = group.Counters

// table is one bucket of a tenant inside one bbolt transaction, with what is
// worth keeping between calls: the handle and a cursor for gets.
type table struct {
	name   Bucket
	seed   uint32
	looked bool // b is known for this transaction
	b      *bbolt.Bucket
	point  *bbolt.Cursor // for gets
	spare  *bbolt.Cursor // for scans, nil while one runs

	// What this commit did to the bucket.
	puts    [arrivals]int
	deleted bool

	edge edge // kept between commits
}

func (t *table) reset() { *t = table{name: t.name, seed: t.seed, edge: t.edge} }

// tables are the buckets of one tenant inside one bbolt transaction. Few
// buckets are in use at a time: a linear search beats a map.
type tables struct {
	tenant string
	commit uint64 // the writer's commit they are bound to
	root   *bbolt.Bucket
	list   []*table
}

// begin binds the tables to a new transaction.
func (ts *tables) begin(root *bbolt.Bucket) {
	ts.root = root
	for _, t := range ts.list {
		t.reset()
	}
}

// find returns the table of a bucket, whether or not the bucket exists yet.
func (ts *tables) find(name Bucket) (*table, error) {
	if err := group.CheckBucket(name); err != nil { // also of one in the list: the counters are there too
		return nil, err
	}
	for _, t := range ts.list {
		if t.name == name {
			return t, ts.look(t)
		}
	}
	return ts.add(name)
}

func (ts *tables) add(name Bucket) (*table, error) {
	t := &table{name: name, seed: group.SeedOf(ts.tenant, name)}
	ts.list = append(ts.list, t)
	return t, ts.look(t)
}

// counters is the table of the tenant's counters, which no caller can name.
func (ts *tables) counters() (*table, error) {
	for _, t := range ts.list {
		if t.name == countersBucket {
			return t, ts.look(t)
		}
	}
	return ts.add(countersBucket)
}

func (ts *tables) look(t *table) (err error) {
	if t.looked {
		return nil
	}
	defer guard(&err, "open bucket", t.name)
	t.b = ts.root.Bucket([]byte(t.name))
	t.looked = true
	return nil
}

// get returns the value of a key, nil when absent.
func (t *table) get(key []byte) (value []byte, err error) {
	if t.b == nil {
		return nil, nil
	}
	defer guard(&err, "read bucket", t.name)
	if t.point == nil {
		t.point = t.b.Cursor()
	}
	k, record := t.point.Seek(key)
	if !bytes.Equal(k, key) {
		return nil, nil
	}
	return group.Unwrap(t.seed, t.name, key, record)
}

// put writes a record. Its memory comes from the arena.
func (t *table) put(ts *tables, a *group.Arena, key, value []byte) error {
	if t.b == nil {
		b, err := ts.root.CreateBucketIfNotExists([]byte(t.name))
		if err != nil {
			return fmt.Errorf("create bucket %s: %w", t.name, err)
		}
		t.b = b
	}
	if !t.edge.known {
		c := t.cursor()
		k, _ := c.Last()
		t.done(c)
		t.edge = edge{known: true, was: bytes.Clone(k), is: bytes.Clone(k), next: bytes.Clone(k)}
	}
	t.puts[t.edge.arrive(key, ts.commit)]++
	record := group.Wrap(a.Take(group.SumLen+len(value)), t.seed, key, value)
	if err := t.b.Put(key, record); err != nil {
		return fmt.Errorf("put %s/%x: %w", t.name, group.ClipKey(key), err)
	}
	return nil
}

// writer puts the records of counters.
func (t *tenant) writer(a *group.Arena) func(name, value []byte) error {
	return func(name, value []byte) error {
		counters, err := t.counters()
		if err != nil {
			return err
		}
		return counters.put(&t.tables, a, name, value)
	}
}

func (t *table) delete(key []byte) error {
	if t.b == nil {
		return nil
	}
	t.deleted = true
	c := t.cursor() // the bucket's own Delete makes one each time
	defer t.done(c)
	if k, _ := c.Seek(key); !bytes.Equal(k, key) {
		return nil
	}
	if err := c.Delete(); err != nil {
		return fmt.Errorf("delete %s/%x: %w", t.name, group.ClipKey(key), err)
	}
	return nil
}

// fill chooses how full pages are left when they are split: keys that arrive
// in order leave full pages behind, records that are soon written again need
// some room to grow in, and keys that arrive anywhere need most.
func (t *table) fill() {
	if t.b == nil || t.puts == [arrivals]int{} {
		return
	}
	switch {
	case 4*(t.puts[newest]+t.puts[again]) < t.puts[anywhere]:
		t.b.FillPercent = bbolt.DefaultFillPercent
	case t.puts[again] > t.puts[newest]:
		t.b.FillPercent = 0.8
	default:
		t.b.FillPercent = 0.9
	}
}

// cursor lends the spare cursor; give it back with done.
func (t *table) cursor() *bbolt.Cursor {
	c := t.spare
	t.spare = nil
	if c == nil {
		c = t.b.Cursor()
	}
	return c
}

func (t *table) done(c *bbolt.Cursor) { t.spare = c }

// tenant is what the writer knows of one tenant: its buckets in the current
// transaction and its counters.
type tenant struct {
	tables
	ledger  group.Ledger
	touched bool // an update of this commit wrote something
}

// The transactions are those of every store; what is below them is tables.
type (
	request = group.Request[func(Tx) error]
	readTx  struct {
		*group.ReadTx[Bucket, *table]
		ts tables
	}
)

var (
	_ Tx                              = (*group.WriteTx[Bucket, *table])(nil)
	_ Tx                              = (*readTx)(nil)
	_ group.WriteBase[Bucket, *table] = (*tenant)(nil)
)

func (ts *tables) Find(name Bucket) (*table, error) { return ts.find(name) }

func (ts *tables) Get(t *table, key []byte) ([]byte, error) { return t.get(key) }

func (ts *tables) Scan(t *table, o *group.Overlay[*table], from, to []byte, reverse bool, visit group.Visit) error {
	return scan(t, o, from, to, reverse, visit)
}

func (ts *tables) Count(name string) (int64, error) {
	t, err := ts.counters()
	if err != nil {
		return 0, err
	}
	return group.ReadCounter(name, t.get)
}

func (t *tenant) Cell(name string) (*group.Counter, error) { return t.ledger.Cell(name, t.Count) }

// edge knows roughly where a bucket's keys end: the greatest key of some
// commits ago. Keys beyond it count as arriving in order even when those of
// concurrent callers overtake each other.
type edge struct {
	known      bool
	was, is    []byte // the greatest key some commits ago and now
	commits    int
	next       []byte // becomes was
	lastCommit uint64
}

// edgeAge is the number of commits after which the edge moves on.
const edgeAge = 8

// arrival says where a key lies that is put.
type arrival int

const (
	anywhere arrival = iota
	again            // at the edge, where a greater one has been: most are written once more
	newest           // beyond all others
	arrivals
)

// arrive says where a key lies, and moves the edge.
func (e *edge) arrive(key []byte, commit uint64) arrival {
	if e.lastCommit != commit {
		e.lastCommit = commit
		if e.commits++; e.commits >= edgeAge {
			e.commits = 0
			e.was, e.next = e.next, append(e.was[:0], e.is...)
		}
	}
	if bytes.Compare(key, e.is) > 0 {
		e.is = append(e.is[:0], key...)
		return newest
	}
	if bytes.Compare(key, e.was) > 0 {
		return again
	}
	return anywhere
}
