package task

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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
