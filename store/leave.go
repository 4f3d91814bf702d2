package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"swarmdeck/store/internal/group"
)

// Leaving follows one tenant of a store while a copy of it is made elsewhere. End it.
type Leaving interface {
	// Cut runs fn on a snapshot of the tenant, with the rows that were written
	// between the last Cut's snapshot and this one. It fails when those are too many
	// to remember.
	Cut(ctx context.Context, fn func(tx Tx, rows []Row) error) error
	// Hold returns once no update of the tenant is under way, and keeps all that
	// come waiting, until End.
	Hold(ctx context.Context) error
	// Gone marks the tenant as one that has moved, durably: whoever waits, and all
	// who come, are told. It is to be held.
	Gone(ctx context.Context, to AwayError) error
	// End follows it no longer, and lets those go on that wait.
	End()
}

// ErrLeaving says that a copy of the tenant is being made already.
var ErrLeaving = errors.New("a copy of the tenant is being made already")

// ErrFast is the error of a Cut for too many rows.
var ErrFast = group.ErrBusy

// leaving is a tenant of a file that is copied away.
type leaving struct {
	db     *DB
	tenant string
	tail   *group.Tail
}

// Leave begins to follow a tenant.
func (db *DB) Leave(ctx context.Context, tenant string) (Leaving, error) {
	if db.readOnly {
		return nil, ErrReadOnly
	}
	l := &leaving{db: db, tenant: tenant, tail: &group.Tail{}}
	if err := db.View(ctx, tenant, func(Tx) error { return nil }); err != nil {
		return nil, err
	}
	err := db.between(ctx, func(w *writer) error {
		if w.tails[tenant] != nil {
			return fmt.Errorf("tenant %.80q: %w", tenant, ErrLeaving)
		}
		if w.tails == nil {
			w.tails = map[string]*group.Tail{}
		}
		w.tails[tenant] = l.tail
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Cut implements Leaving. The snapshot is taken between two commits.
func (l *leaving) Cut(ctx context.Context, fn func(Tx, []Row) error) error {
	var rows []Row
	var tx *bbolt.Tx
	err := l.db.between(ctx, func(*writer) (err error) {
		if rows, err = TakeTail(l.tail); err == nil {
			tx, err = l.db.beginRead()
		}
		return err
	})
	if err != nil {
		return err
	}
	return reading(tx, func(tx *bbolt.Tx) error {
		return l.db.viewed(tx, l.tenant, func(tx Tx) error { return fn(tx, rows) })
	})
}

func (l *leaving) Hold(ctx context.Context) error {
	return l.db.between(ctx, func(*writer) error { l.tail.Hold(); return nil })
}

func (l *leaving) Gone(ctx context.Context, to AwayError) error {
	return l.db.mark(ctx, l.tenant, &to, nil)
}

func (l *leaving) End() {
	l.tail.Release()
	// Where the writer has ended there is nothing to stop.
	_ = l.db.between(context.Background(), func(w *writer) error { delete(w.tails, l.tenant); return nil })
	l.tail.Release()
}

// TakeTail hands over the rows of a tail.
func TakeTail(t *group.Tail) (rows []Row, err error) {
	err = t.Take(func(bucket, key string) {
		if bucket == group.Counters {
			rows = append(rows, Row{Counter: key})
		} else {
			rows = append(rows, Row{Bucket: Bucket(bucket), Key: []byte(key)})
		}
	})
	return rows, err
}

// AwayError says why a store that knows a tenant's name does not have the tenant: it
// has moved to another store, or a copy of it is on its way here and not whole. It is
// an ErrNoTenant.
type AwayError struct {
	Tenant string
	Moved  bool   // it is elsewhere; else it is on its way here
	Copy   string // names the copy
	Place  string // the other store, without a password
}

func (e *AwayError) Error() string {
	if e.Moved {
		return fmt.Sprintf("tenant %.80q has moved to %s", e.Tenant, e.Place)
	}
	return fmt.Sprintf("tenant %.80q is on its way here from %s, and not whole: run the copy again from there", e.Tenant, e.Place)
}

// Is makes it one of a tenant that is not there.
func (*AwayError) Is(target error) bool { return target == ErrNoTenant }

const (
	markMoved  = "moved"
	markComing = "coming"
)

// Mark is what a store keeps of it.
func (e *AwayError) Mark() string {
	state := markComing
	if e.Moved {
		state = markMoved
	}
	line := strings.NewReplacer("\n", " ", "\x00", " ")
	return state + "\n" + line.Replace(e.Copy) + "\n" + line.Replace(e.Place)
}

// ParseMark reads what Mark wrote. What it can't read is a tenant that has moved,
// nobody knows where: it must not be worked on.
func ParseMark(tenant, mark string) *AwayError {
	parts := strings.SplitN(mark, "\n", 3)
	if len(parts) != 3 || parts[0] != markMoved && parts[0] != markComing {
		return &AwayError{Tenant: tenant, Moved: true, Place: "an unknown place (its mark can't be read)"}
	}
	return &AwayError{Tenant: tenant, Moved: parts[0] == markMoved, Copy: parts[1], Place: parts[2]}
}

// Row names one record: a key of a bucket, or a counter.
type Row struct {
	Bucket  Bucket // of a counter ""
	Key     []byte
	Counter string
}
