package transfer

import (
	"context"
	"errors"
	"os"
	"time"

	"swarmdeck/store"
	"swarmdeck/store/postgres"
)

// Place is a store that this process has to itself, on this machine, to copy to.
type Place struct {
	Host
	Name string // for people; without a password
	Path string // of the data file, or the file that stands for the database
	lock *os.File
}

// Open opens the data file at path, which is made when it is not there, or the
// database that the file stands for. ErrLocked (store.LockedError) while another
// process of this machine has it.
func Open(ctx context.Context, path, database string) (*Place, error) {
	if database == "" {
		db, err := store.Open(path, store.Options{})
		if err != nil {
			return nil, err
		}
		return &Place{Host: db, Name: db.Name(), Path: path}, nil
	}
	lock, err := store.Lock(path+".lock", true)
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, database, postgres.Options{Wait: postgres.DefaultLease + 2*time.Second})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Place{Host: db, Name: db.Name(), Path: path, lock: lock}, nil
}

// Close gives it up. A second call does nothing.
func (p *Place) Close() error {
	err := p.Host.Close()
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
		p.lock = nil
	}
	return err
}
