package postgres

import (
	"encoding/binary"
	"fmt"

	"swarmdeck/store"
	"swarmdeck/store/internal/group"
)

// viewTx is the transaction of a View, which also knows all that there is.
type viewTx struct {
	*group.ReadTx[store.Bucket, *bucket]
	view *view
}

var _ store.Inventory = (*viewTx)(nil)

const bucketsSQL = `select o.epoch = $2 and o.commit = $3, b.bucket
from owner o left join lateral (select distinct bucket from kv where tenant = $1) as b on true
where o.tenant = $1 order by b.bucket`

func (tx *viewTx) Buckets() (names []store.Bucket, err error) {
	if err := tx.Over(); err != nil {
		return nil, err
	}
	m := tx.view.at
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, err := m.t.db.query(tx.view.ctx, m.frozen, bucketsSQL, []byte(m.t.name), m.epoch, m.commit)
	switch {
	case err != nil:
		return nil, fmt.Errorf("list the buckets: %w", err)
	case len(rows) == 0 || !truth(rows[0][0]):
		return nil, m.t.fenced()
	}
	for _, row := range rows {
		if len(row[1]) > 0 && row[1][0] != '_' { // those are the store's own
			names = append(names, store.Bucket(row[1]))
		}
	}
	return names, nil
}

func (tx *viewTx) Counters(visit func(name string, n int64)) error {
	if err := tx.Over(); err != nil {
		return err
	}
	return tx.view.Scan(tx.view.counters(), nil, nil, nil, false, func(name, value []byte) (bool, error) {
		if len(value) != 8 {
			return false, fmt.Errorf("counter %s: %w", name, store.ErrCorrupt)
		}
		visit(string(name), int64(binary.BigEndian.Uint64(value)))
		return true, nil
	})
}
