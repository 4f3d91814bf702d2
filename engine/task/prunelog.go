package task

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// LogFirst is the number of the oldest line that is kept of a stream, one more
// than its newest where none is.
func (b *Table) LogFirst(ctx context.Context, tenant, stream string) (first uint64, err error) {
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		first = uint64(tx.Counter(countLog(stream))) + 1
		keys, err := firstLines(tx, stream, 1)
		if len(keys) > 0 {
			first = record.LastSeq(keys[0])
		}
		return err
	})
	return first, err
}

// PruneLogs removes a slice of the oldest lines of logs that the limit lets go;
// its number is of lines in each log. It looks at logs from a key on, and
// returns where to look next, nil when it is through.
func (b *Table) PruneLogs(ctx context.Context, by core.Caller, limit record.Limit, from []byte) (next []byte, err error) {
	found := map[string][][]byte{}
	err = b.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		next, err = oldLines(tx, limit, from, found)
		return err
	})
	if err != nil || len(found) == 0 {
		return next, err
	}
	err = b.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r := record.Removal{Kind: "logs"}
		for _, stream := range slices.Sorted(maps.Keys(found)) {
			if err := dropLines(tx, &r, stream, found[stream]); err != nil {
				return err
			}
		}
		return r.Record(tx)
	})
	if err != nil {
		err = fmt.Errorf("prune logs: %w", err)
	}
	return next, err
}

// DropLog removes all lines of a stream whose owner is no more.
func (b *Table) DropLog(ctx context.Context, by core.Caller, stream string) error {
	for {
		n := 0
		err := b.ledger.Update(ctx, by, func(tx *audit.Tx) error {
			keys, err := firstLines(tx, stream, record.SliceRows)
			if n = len(keys); err != nil || n == 0 {
				return err
			}
			if left := tx.Counter(countLeft(stream)); left != 0 {
				tx.Add(countLeft(stream), -left)
			}
			r := record.Removal{Kind: "logs"}
			if err := dropLines(tx, &r, stream, keys); err != nil {
				return err
			}
			return r.Record(tx)
		})
		if err != nil {
			return fmt.Errorf("remove log %s: %w", stream, err)
		}
		if n < record.SliceRows {
			return nil
		}
	}
}

// oldLines finds the lines that may leave, by stream.
func oldLines(tx *audit.Tx, limit record.Limit, from []byte, found map[string][][]byte) (next []byte, err error) {
	rows := 0
	for range pruneLook {
		var stream string
		err := tx.Scan(bLog, from, nil, false, func(key, _ []byte) (bool, error) {
			stream = string(key[:max(bytes.IndexByte(key, 0), 0)])
			return false, nil
		})
		if err != nil || stream == "" {
			return nil, err
		}
		keys, err := oldIn(tx, stream, limit, record.SliceRows-rows)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			found[stream] = keys
		}
		if rows += len(keys); rows >= record.SliceRows {
			return lineKey(stream, 0), nil
		}
		_, from = record.Text(stream).Under()
	}
	return from, nil
}

// oldIn are the oldest lines of a stream that may leave.
func oldIn(tx store.Tx, stream string, limit record.Limit, most int) (keys [][]byte, err error) {
	newest := uint64(tx.Counter(countLog(stream)))
	from, to := record.Text(stream).Under()
	err = tx.Scan(bLog, from, to, false, func(key, value []byte) (bool, error) {
		many := limit.Keep > 0 && record.LastSeq(key)+uint64(limit.Keep) <= newest
		if !many && !limit.Before.IsZero() {
			var line LogLine
			if err := core.DecodeStored(value, &line); err != nil {
				return false, err
			}
			many = limit.Old(line.Timestamp)
		}
		if many {
			keys = append(keys, bytes.Clone(key))
		}
		return many && len(keys) < most, nil
	})
	return keys, err
}

// DefaultLogBytes is how much of an agent's log is kept where its tenant says
// nothing else, in bytes of its lines as they are stored.
const DefaultLogBytes = 64 << 20

// sourceLeft is of the line that stands in the place of those that left.
const sourceLeft = "left"

// bounded reports whether a log is kept up to a size: an agent lives as long as
// it is wanted, while a task's log ends with the task, and has bounds of its own.
func bounded(stream string) bool { return strings.HasPrefix(stream, "agent:") }

func countBytes(stream string) string { return "log.bytes." + stream }

// countLeft counts the lines that left a log for its size.
func countLeft(stream string) string { return "log.left." + stream }

func (b *Table) mostBytes(tenant string) int64 {
	if b.opt.LogBytes != nil {
		if n := b.opt.LogBytes(tenant); n > 0 {
			return n
		}
	}
	return DefaultLogBytes
}

// TrimLog lets the oldest lines of a log leave that is larger than it may be,
// until an eighth of its room is free. The last of them becomes a line that says
// how many have left so far.
func (b *Table) TrimLog(ctx context.Context, tenant, stream string) error {
	most := b.mostBytes(tenant)
	for more := true; more; {
		err := b.ledger.Update(ctx, core.Self(tenant, "retention"), func(tx *audit.Tx) error {
			excess := tx.Counter(countBytes(stream)) - (most - most/8)
			keys, lines, through, err := oldest(tx, stream, excess)
			if more = !through; err != nil || len(keys) == 0 {
				return err
			}
			r := record.Removal{Kind: "logs"}
			if err := dropLines(tx, &r, stream, keys); err != nil {
				return err
			}
			last := record.LastSeq(keys[len(keys)-1])
			data := core.MustEncode(LogLine{
				Seq: last, Timestamp: tx.Now(), Level: "WARN", Source: sourceLeft,
				Message: fmt.Sprintf("%d lines before this one were dropped: of the log of each agent %d MiB are kept", tx.Add(countLeft(stream), lines), most>>20),
			})
			tx.Derived().Add(countBytes(stream), int64(len(data)))
			if err := tx.Put(bLog, lineKey(stream, last), data); err != nil {
				return err
			}
			return r.Record(tx)
		})
		if err != nil {
			return fmt.Errorf("let the oldest lines leave: %w", err)
		}
	}
	return nil
}

// oldest are the keys of the oldest lines that hold so many bytes together, the
// newest line never among them. It counts them without the line that an earlier
// trim left, and reports whether they are all.
func oldest(tx *audit.Tx, stream string, excess int64) (keys [][]byte, lines int64, through bool, err error) {
	from, to := record.Text(stream).Under()
	newest := uint64(tx.Counter(countLog(stream)))
	through = true
	err = tx.Scan(bLog, from, to, false, func(key, value []byte) (bool, error) {
		if excess <= 0 || record.LastSeq(key) >= newest {
			return false, nil
		}
		if len(keys) == record.SliceRows {
			through = false
			return false, nil
		}
		var line LogLine
		if len(keys) > 0 || core.DecodeStored(value, &line) != nil || line.Source != sourceLeft {
			lines++
		}
		keys = append(keys, bytes.Clone(key))
		excess -= int64(len(value))
		return true, nil
	})
	return keys, lines, through, err
}
