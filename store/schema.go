package store

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"swarmdeck/store/internal/group"
)

// Migration is one step of the records' schema. The steps of a program form
// one list that only ever grows at its end; a file remembers how many it has
// been through.
type Migration struct {
	// Name says what changes, for error messages.
	Name string
	// Apply changes one tenant. It runs once for each tenant that exists; all
	// tenants and all missing steps are one transaction.
	Apply func(Tx) error
}

// layout is the version of a file: of what this package itself keeps in it, and
// of the records that no migration was written for. A file in which a tenant is
// marked as one that is elsewhere is of layoutMarked: a program that does not know
// marks must not work on that tenant.
const (
	layout       = 2
	layoutMarked = 3
)

var (
	identityKey = []byte("swarmdeck")
	layoutKey   = []byte("layout")
	schemaKey   = []byte("schema")
	epochKey    = []byte("epoch")
)

// identity is the file's own record: the bucket "swarmdeck" beside tenants.
type identity struct {
	layout, schema, epoch uint64
}

func identitySeed() uint32 { return group.SeedOf("", Bucket(identityKey)) }

func readIdentity(tx *bbolt.Tx) (id identity, err error) {
	defer guard(&err, "read", "identity")
	b := tx.Bucket(identityKey)
	if b == nil {
		return id, fmt.Errorf("%w: not a swarmdeck data file", ErrUnusable)
	}
	for _, f := range []struct {
		key []byte
		to  *uint64
	}{{layoutKey, &id.layout}, {schemaKey, &id.schema}, {epochKey, &id.epoch}} {
		value, err := group.Unwrap(identitySeed(), Bucket(identityKey), f.key, b.Get(f.key))
		if err != nil || len(value) != 8 {
			return id, fmt.Errorf("%w: identity record %s: %w", ErrUnusable, f.key, ErrCorrupt)
		}
		*f.to = binary.BigEndian.Uint64(value)
	}
	if id.layout != layout && id.layout != layoutMarked {
		return id, fmt.Errorf("%w: %s", ErrUnusable, otherLayout(id.layout))
	}
	return id, nil
}

// otherLayout says that a file is of another program, and the way out.
func otherLayout(of uint64) string {
	out := "upgrade the program"
	if of < layout {
		out = "no migration leads there from an earlier build: read it with that build, or name a new file with --data"
	}
	return fmt.Sprintf("file layout %d; this program knows %d: %s", of, layoutMarked, out)
}

func (id identity) write(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists(identityKey)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		key   []byte
		value uint64
	}{{layoutKey, id.layout}, {schemaKey, id.schema}, {epochKey, id.epoch}} {
		value := binary.BigEndian.AppendUint64(nil, f.value)
		if err := b.Put(f.key, group.Wrap(nil, identitySeed(), f.key, value)); err != nil {
			return err
		}
	}
	return nil
}

// writeIdentity marks a new file.
func writeIdentity(tx *bbolt.Tx, schema int) error {
	return identity{layout: layout, schema: uint64(schema)}.write(tx)
}

// inspect reads the identity of a file opened read-only.
func (db *DB) inspect() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := db.identify(); err != nil || db.opt.anySchema {
		return err
	}
	if have := len(db.opt.Migrations); db.schema < have {
		return fmt.Errorf("%w: schema %d is older than this program's %d: the first command that writes brings it there (%s)", ErrUnusable, db.schema, have, db.opt.Migrations[db.schema].Name)
	}
	return nil
}

// adopt makes the file ours: it applies the missing migrations and raises the
// epoch, in one transaction.
func (db *DB) adopt() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := db.identify(); err != nil {
		return err
	}
	db.stopped = make(chan struct{})
	defer close(db.stopped)
	w := &writer{db: db, tenants: map[string]*tenant{}}
	if err := w.begin(); err != nil {
		return err
	}
	err = w.migrate()
	if err == nil {
		err = w.write()
	}
	if err != nil {
		w.rollback()
		if lacksRoom(err) {
			return w.db.lack(err)
		}
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	w.settle(true)
	return nil
}

// identify reads the identity before anything is written.
func (db *DB) identify() error {
	tx, err := db.beginRead()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	id, err := readIdentity(tx)
	if err != nil {
		return err
	}
	db.epoch, db.schema, db.layout = id.epoch, int(id.schema), id.layout
	if err := db.readMarks(tx); err != nil {
		return err
	}
	if have := len(db.opt.Migrations); db.schema > have && !db.opt.anySchema {
		return fmt.Errorf("%w: schema %d is newer than this program's %d: upgrade the program", ErrUnusable, db.schema, have)
	}
	return nil
}

func (w *writer) migrate() (err error) {
	db := w.db
	steps := db.opt.Migrations[db.schema:]
	if len(steps) > 0 {
		for _, name := range tenantsOf(w.tx) {
			if db.away(name) != nil {
				continue
			}
			t, err := w.tenant(name)
			if err != nil {
				return err
			}
			for i, step := range steps {
				if err := w.call(t, step.Apply); err != nil {
					return fmt.Errorf("migration %d (%s) of tenant %s: %w", db.schema+i+1, step.Name, name, err)
				}
				if err := w.apply(t); err != nil {
					return err
				}
			}
		}
	}
	db.schema += len(steps)
	db.epoch++
	defer guard(&err, "write", "identity")
	return identity{layout: db.layout, schema: uint64(db.schema), epoch: db.epoch}.write(w.tx)
}
