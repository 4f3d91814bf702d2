//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
)

// openDatabase opens the database that a data file points to. When an engine on
// this machine works on it and listens, that one is asked. An engine elsewhere
// keeps its tenants: who comes waits until its lease would have run out.
func (h *house) openDatabase(ctx context.Context, need command.Need, dsn string, opt store.Options) (store.Store, error) {
	if conn, err := socket.Dial(ctx, need.Data); err == nil {
		if has := holderOf(nil, conn); !need.Alone || has.stays() {
			if h.conn != nil {
				_ = h.conn.Close()
			}
			h.conn = conn
			return nil, &command.ExitError{Code: command.ExitElsewhere}
		}
		_ = conn.Close()
	}
	o := postgres.Options{Options: opt, Wait: postgres.DefaultLease + LockPatience}
	if need.NoWait {
		o.Wait = 0
	}
	db, err := postgres.Open(ctx, dsn, o)
	if err != nil {
		return nil, err
	}
	if err := hasKey(ctx, need, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// hasKey refuses to write to a database whose log was signed on another machine:
// a key made here would stand in it unsigned for ever.
func hasKey(ctx context.Context, need command.Need, db store.Store) error {
	if _, err := os.Lstat(need.Data + ".key"); need.ReadOnly || err == nil {
		return nil
	}
	tenants, err := db.Tenants(ctx)
	if err != nil || len(tenants) == 0 {
		return err
	}
	return fmt.Errorf("%w: the log in this database is signed with a key of another machine; copy what ends in .key from there to %s.key and %s.secrets.key first",
		store.ErrUnusable, need.Data, need.Data)
}
