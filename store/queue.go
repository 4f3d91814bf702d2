package store

import (
	"cmp"
	"context"
	"errors"

	"swarmdeck/store/internal/group"
)

// submit hands a request to the writer and waits for its outcome. When ctx
// ends before the writer took it, it is not run at all.
func (db *DB) submit(ctx context.Context, tenant string, create bool, fn func(Tx) error) error {
	for {
		err := db.once(ctx, tenant, create, fn)
		if held := new(group.HeldError); err != nil && errors.As(err, &held) {
			select {
			case <-held.Until:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !errors.Is(err, ErrFull) || ifFull(ctx) != Wait {
			return err
		}
		if ctx, err = db.await(ctx, err); err != nil {
			return cmp.Or(db.fatal(), err)
		}
	}
}

func (db *DB) once(ctx context.Context, tenant string, create bool, fn func(Tx) error) error {
	if ctx.Err() != nil && ifFull(ctx) == Wait {
		ctx = lifted(ctx, db.Outage())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if db.readOnly {
		return ErrReadOnly
	}
	if full := db.Full(); full != nil && ifFull(ctx) != UseReserve {
		return full
	}
	return db.queue.Do(ctx, tenant, create, fn)
}
