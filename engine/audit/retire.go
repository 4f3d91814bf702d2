package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// How much of the log leaves in one commit at most.
const (
	retireEvents = 512
	retireBytes  = 4 << 20
)

// Age says which events may leave.
type Age struct {
	Before time.Time // older ones may leave; zero is no limit
	Keep   uint64    // at most so many stay; 0 is any number
}

// Retirable is the newest event that may leave, and the first that has not
// left. None may where newest is before first.
func (l *Ledger) Retirable(ctx context.Context, tenant string, age Age) (first, newest uint64, err error) {
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		upto, err := l.Sealed(tx)
		if err != nil {
			return err
		}
		first = upto + 1
		count := uint64(tx.Counter(counter))
		if age.Keep > 0 && count > age.Keep {
			newest = count - age.Keep
		}
		if age.Before.IsZero() || first > count {
			return nil
		}
		_, older, err := core.Filter{Until: age.Before}.Span(int(count-upto), func(i int) (time.Time, error) {
			return timeOf(tx, first+uint64(i))
		})
		newest = max(newest, upto+uint64(older))
		return err
	})
	return first, newest, err
}

// retirement is one piece of the log on its way out. What it takes to fold the
// events into the base is found out before the writer's turn.
type retirement struct {
	was, is sealing
	edge    frontier // of the events that will have left
	last    map[string]string
	places  map[uint64]tlog.Hash // issued sizes that the piece adds: those around an event that stays
	stay    map[uint64]bool
}

type sealedDetail struct {
	From   uint64 `json:"from"`
	Upto   uint64 `json:"upto"`
	Root   string `json:"root_hash"`  // of the tree at upto
	Rows   uint64 `json:"rows"`       // of which the base has digests
	State  string `json:"state_root"` // SHA-256 of the lattice over the base
	Issued string `json:"issued"`     // SHA-256 of that over the issued checkpoints
	Reason any    `json:"reason,omitzero"`
}

// ErrBusy means that somebody reads the whole log, of which nothing can leave
// meanwhile.
var ErrBusy = errors.New("the audit log is being read as a whole")

// Retire lets the oldest events leave, at most up to the one given and at most
// some hundreds: call it until it returns that number. What they said last of
// each row and state is kept, under a digest that the event of the change
// carries; the hashes stay that prove the rest of the log, and the checkpoints
// that were issued. Events that name keys stay too.
func (l *Ledger) Retire(ctx context.Context, by core.Caller, upto uint64, reason any) (uint64, error) {
	if !l.leaving.TryLock() {
		return 0, ErrBusy
	}
	defer l.leaving.Unlock()
	r := &retirement{}
	if err := l.st.View(ctx, by.Tenant, func(tx store.Tx) error { return r.read(ctx, tx, upto) }); err != nil {
		return 0, fmt.Errorf("seal audit events of %s: %w", by.Tenant, err)
	}
	if r.is.Upto == r.was.Upto {
		return r.was.Upto, nil
	}
	err := l.Update(ctx, by, func(tx *Tx) error {
		if err := r.remember(tx.Derived()); err != nil {
			return err
		}
		_, err := tx.Record(Entry{
			Type: sealedEvent, Subject: "audit", ID: fmt.Sprintf("%d-%d", r.was.Upto+1, r.is.Upto),
			Detail: sealedDetail{r.was.Upto + 1, r.is.Upto, r.edge.root().String(), r.is.Rows, r.is.State.root(), r.is.Issued.root(), reason},
		})
		if err != nil {
			return err
		}
		return r.write(tx.Derived())
	})
	if err != nil {
		return 0, fmt.Errorf("seal audit events of %s: %w", by.Tenant, err)
	}
	return r.is.Upto, nil
}

// read folds the piece. It fails on a piece that does not match its tree:
// letting it leave would make the damage look right.
func (r *retirement) read(ctx context.Context, tx store.Tx, upto uint64) (err error) {
	if r.was, err = readSealing(tx); err != nil {
		return err
	}
	r.is = r.was
	head, err := tx.Get(heads, checkpointKey)
	if err != nil || head == nil {
		return err
	}
	c, err := ParseCheckpoint(head)
	if err != nil && !errors.Is(err, ErrUnsigned) {
		return err
	}
	upto = min(upto, c.Size)
	if upto <= r.was.Upto {
		return nil
	}
	if r.edge, err = loadFrontier(tx, r.was.Upto); err != nil {
		return err
	}
	r.last, r.places, r.stay = map[string]string{}, map[uint64]tlog.Hash{}, map[uint64]bool{}
	var buf []byte
	size := 0
	err = tx.Scan(Events, key(r.was.Upto+1), key(min(upto, r.was.Upto+retireEvents)+1), false, func(k, data []byte) (bool, error) {
		if size += len(data); size > retireBytes && r.edge.size > r.was.Upto {
			return false, nil
		}
		if seqOf(k) != r.edge.size+1 {
			return false, fmt.Errorf("event %d is missing", r.edge.size+1)
		}
		h, err := headOf(data)
		if err == nil {
			err = said(data, func(name, sum []byte) { r.last[string(name)] = string(sum) })
		}
		if err != nil {
			return false, err
		}
		stays := namesKey(string(h.typ))
		if stays && r.edge.size > 0 {
			r.places[r.edge.size] = r.edge.root()
		}
		var leaf tlog.Hash
		leaf, buf = leafHash(buf, data)
		r.edge.push(leaf, nil)
		if stays {
			r.places[r.edge.size], r.stay[r.edge.size] = r.edge.root(), true
		}
		return true, ctx.Err()
	})
	if err != nil {
		return err
	}
	if r.edge.size < c.Size {
		stored, err := loadFrontier(tx, r.edge.size)
		if err != nil {
			return err
		}
		if stored.root() != r.edge.root() {
			return fmt.Errorf("events %d-%d do not match the tree; run audit verify", r.was.Upto+1, r.edge.size)
		}
	}
	r.is.Upto = r.edge.size
	return r.fold(tx)
}

// fold brings the base's digest up to date.
func (r *retirement) fold(tx store.Tx) error {
	for name, sum := range r.last {
		was, err := tx.Get(base, []byte(name))
		if err != nil {
			return err
		}
		if was != nil {
			r.is.State.remove([]byte(name), was)
			r.is.Rows--
		}
		if sum != "-" {
			r.is.State.add([]byte(name), []byte(sum))
			r.is.Rows++
		} else if was == nil {
			delete(r.last, name)
		}
	}
	return nil
}

// remember takes the piece's places in among the issued checkpoints, and those
// into the digest that are of its sizes: no other can be issued once it left.
func (r *retirement) remember(tx store.Tx) error {
	r.is.Issued = r.was.Issued // it may run again
	for size, root := range r.places {
		if err := tx.Put(issued, key(size), bytes.Clone(root[:])); err != nil {
			return err
		}
	}
	return tx.Scan(issued, key(r.was.Upto+1), key(r.is.Upto+1), false, func(k, root []byte) (bool, error) {
		r.is.Issued.add(k, root)
		return true, nil
	})
}

// write lets the piece leave.
func (r *retirement) write(tx store.Tx) error {
	now, err := readSealing(tx)
	if err != nil {
		return err
	}
	if now != r.was {
		return core.Errorf(core.Conflict, "others let events leave at the same time")
	}
	for _, name := range slices.Sorted(maps.Keys(r.last)) {
		if sum := r.last[name]; sum == "-" {
			err = tx.Delete(base, []byte(name))
		} else {
			err = tx.Put(base, []byte(name), []byte(sum))
		}
		if err != nil {
			return err
		}
	}
	for seq := r.was.Upto + 1; seq <= r.is.Upto; seq++ {
		if !r.stay[seq] {
			if err := tx.Delete(Events, key(seq)); err != nil {
				return err
			}
		}
	}
	if err := leave(tx, r.was.Upto, r.is.Upto); err != nil {
		return err
	}
	data, err := core.Encode(r.is)
	if err != nil {
		return err
	}
	return tx.Put(heads, bytes.Clone(sealedKey), data)
}
