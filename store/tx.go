package store

import "swarmdeck/store/internal/group"

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
