package bus

import (
	"context"
	"errors"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Cutting history off.
const (
	pruneSlice = 256             // messages in one transaction
	pruneSlack = 5 * time.Minute // after its time to live a message stays so long: a reader may still have it in hand
)

// Prune cuts off the oldest messages past what is kept. What can still be
// delivered stays, and so does what came after it.
func (b *Bus) Prune(ctx context.Context, tenant string) error {
	for {
		over := false
		err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
			limit := b.limit(tenant)
			if over = excess(tx, limit) >= pruneSlice; over || limit.Before.IsZero() || stored(tx) == 0 {
				return nil
			}
			m, err := mustGetHead(tx, uint64(tx.Counter(countFloor))+1)
			over = err == nil && limit.Old(m.Timestamp)
			return err
		})
		if err != nil || !over {
			return err
		}
		cut := 0
		err = b.change(ctx, core.Self(tenant, "bus"), "cut old messages off", func(tx *audit.Tx) error {
			cut, err = b.pruneIn(tx)
			return err
		})
		if err != nil || cut < pruneSlice {
			return err
		}
	}
}

// limit says which messages of a tenant may leave.
func (b *Bus) limit(tenant string) record.Limit {
	if b.opt.Limit != nil {
		if l := b.opt.Limit(tenant); l != (record.Limit{}) {
			return l
		}
	}
	return record.Limit{Keep: int64(b.opt.Keep)}
}

// stored is how many messages there are.
func stored(tx *audit.Tx) int64 { return tx.Counter(countMessages) - tx.Counter(countFloor) }

// excess is how many more messages there are than are to be kept.
func excess(tx *audit.Tx, limit record.Limit) int64 { return limit.Excess(stored(tx)) }

func (b *Bus) pruneIn(tx *audit.Tx) (int, error) {
	floor := uint64(tx.Counter(countFloor))
	limit := b.limit(tx.Tenant())
	n, most := uint64(excess(tx, limit)), uint64(min(stored(tx), pruneSlice))
	upto := floor
	for upto < floor+most {
		m, err := mustGetHead(tx, upto+1)
		if err != nil {
			return 0, err
		}
		if upto >= floor+n && !limit.Old(m.Timestamp) {
			break
		}
		held, err := isHeld(tx, m.Seq)
		if err != nil {
			return 0, err
		}
		if held || !m.expired(tx.Now().Add(-pruneSlack)) || b.inHand(tx.Tenant(), m.Seq) {
			break
		}
		if err := forget(tx, m); err != nil {
			return 0, err
		}
		upto++
	}
	if upto == floor {
		return 0, nil
	}
	tx.Add(countFloor, int64(upto-floor))
	tx.Changed("message", "", nil)
	_, err := tx.Record(audit.Entry{
		Type: "message.pruned", Subject: "messages", ID: tx.Tenant(), Detail: map[string]uint64{"from_seq": floor + 1, "to_seq": upto},
	})
	return int(upto - floor), err
}

// isHeld reports whether a message expired in the hand of a reader and was not
// looked at since.
func isHeld(tx *audit.Tx, seq uint64) (held bool, err error) {
	err = scan(tx, bHeld, key(seq), func(_, _ []byte) (bool, error) {
		held = true
		return false, nil
	})
	return held, err
}

// inHand reports whether a reader has a message that it did not acknowledge.
func (b *Bus) inHand(tenant string, seq uint64) bool {
	for _, s := range b.open(tenant) {
		if _, has := s.holds(seq); has && !s.pattern.system() {
			return true
		}
	}
	return false
}

// forget removes a message with all that became of it.
func forget(tx *audit.Tx, m *Message) error {
	if err := tx.Delete(bMessage, key(m.Seq)); err != nil {
		return err
	}
	if err := errors.Join(dropAll(tx, bFate, m.Seq), removeAll(tx, m.Seq)); err != nil {
		return err
	}
	if m.Topic == "" {
		return nil
	}
	var t Topic
	known, err := fetch(tx, bTopic, []byte(m.Topic), &t)
	if err != nil || !known || t.LastSeq != m.Seq {
		return err
	}
	tx.Add(countTopics, -1)
	return tx.Delete(bTopic, []byte(m.Topic))
}

// dropAll deletes the keys that begin with a seq.
func dropAll(tx *audit.Tx, bucket store.Bucket, seq uint64) error {
	var keys [][]byte
	err := scan(tx, bucket, key(seq), func(k, _ []byte) (bool, error) {
		keys = append(keys, slices.Clone(k))
		return true, nil
	})
	for _, k := range keys {
		err = errors.Join(err, tx.Delete(bucket, k))
	}
	return err
}
