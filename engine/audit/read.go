package audit

import (
	"context"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Data decodes the event's payload.
func (e Event) Data() (Payload, error) {
	var p Payload
	if err := core.DecodeStored(e.Payload, &p); err != nil {
		return Payload{}, fmt.Errorf("decode the payload of %s: %w", e.EventID, err)
	}
	return p, nil
}

// Get returns one event by id.
func (l *Ledger) Get(ctx context.Context, tenant, id string) (Event, error) {
	seq, err := l.local(ctx, tenant, id)
	if err != nil {
		return Event{}, err
	}
	var e Event
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		e, err = get(tx, seq)
		return err
	})
	return e, err
}

// local is the number of the event of an id, which a reader names.
func (l *Ledger) local(ctx context.Context, tenant, id string) (uint64, error) {
	return l.LocalSeq(ctx, core.Self(tenant, "reader"), core.EventPrefix, id)
}

func get(tx store.Tx, seq uint64) (Event, error) {
	data, err := tx.Get(Events, key(seq))
	if err != nil {
		return Event{}, fmt.Errorf("read audit event %d: %w", seq, err)
	}
	if data == nil {
		return Event{}, core.Missing("event", core.NewID(core.EventPrefix, tx.Tenant(), seq))
	}
	return decode(data)
}

// Since returns up to n events after seq, oldest first, some thousands at most.
func (l *Ledger) Since(ctx context.Context, tenant string, seq uint64, n int) ([]Event, error) {
	events, _, err := l.Pick(ctx, tenant, seq, n, func([]byte) bool { return true })
	return events, err
}

// Trail follows the Prev links from seq, newest first, at most n events.
func (l *Ledger) Trail(ctx context.Context, tenant string, seq uint64, n int) ([]Event, error) {
	var events []Event
	err := l.st.View(ctx, tenant, func(tx store.Tx) error {
		for seq > 0 && len(events) < n {
			if left, err := l.Sealed(tx); err != nil || seq <= left {
				return err
			}
			e, err := get(tx, seq)
			if err != nil {
				return err
			}
			if e.Prev >= seq {
				return core.Errorf(core.Internal, "event %d names %d as its predecessor; run audit verify", seq, e.Prev)
			}
			events = append(events, e)
			seq = e.Prev
		}
		return nil
	})
	return events, err
}

// Pick returns up to n events after seq whose type is wanted, oldest first,
// and the seq up to which it looked: some thousands at most. Events of other
// types are not decoded. want must not keep the type.
func (l *Ledger) Pick(ctx context.Context, tenant string, seq uint64, n int, want func(eventType []byte) bool) (found []Event, upto uint64, err error) {
	upto = seq
	if n < 1 {
		return nil, upto, nil
	}
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		seen := 0
		return tx.Scan(Events, key(seq+1), nil, false, func(_, data []byte) (bool, error) {
			h, err := headOf(data)
			if err != nil {
				return false, err
			}
			if want(h.typ) {
				e, err := decode(data)
				if err != nil {
					return false, err
				}
				found = append(found, e)
			}
			upto = h.seq
			seen++
			return seen < slice && len(found) < n, nil
		})
	})
	if err != nil {
		return nil, seq, fmt.Errorf("read audit events after %d: %w", seq, err)
	}
	return found, upto, nil
}
