package audit

import (
	"context"
	"errors"
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

// local turns an event's id into its sequence number. One of another tenant is
// refused and the attempt audited.
func (l *Ledger) local(ctx context.Context, tenant, id string) (uint64, error) {
	seq, err := core.LocalSeq(core.EventPrefix, tenant, id)
	if errors.Is(err, core.ErrForeign) {
		return 0, l.Refuse(ctx, core.Self(tenant, "reader"), Entry{Type: "tenant.violation", Subject: "event", ID: id}, err)
	}
	return seq, err
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

// Since returns up to n events after seq, oldest first.
func (l *Ledger) Since(ctx context.Context, tenant string, seq uint64, n int) ([]Event, error) {
	var events []Event
	err := l.st.View(ctx, tenant, func(tx store.Tx) error {
		if n <= 0 {
			return nil
		}
		return tx.Scan(Events, key(seq+1), nil, false, func(_, data []byte) (bool, error) {
			e, err := decode(data)
			if err == nil {
				events = append(events, e)
			}
			return len(events) < n, err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read audit events after %d: %w", seq, err)
	}
	return events, nil
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
