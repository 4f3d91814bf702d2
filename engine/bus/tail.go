package bus

import (
	"bytes"
	"context"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Since returns up to n (1-1000) messages after seq whose topic the pattern
// selects, oldest first, and the seq to go on from. An empty pattern selects
// every message, the direct ones too; one that begins with "sys" the engine's
// events, and seq then is one of the audit log.
func (b *Bus) Since(ctx context.Context, tenant, pattern string, seq uint64, n int) ([]Message, uint64, error) {
	if n < 1 || n > maxTail {
		return nil, seq, core.Invalid("n", n, "1-1000")
	}
	p, all, err := tailPattern(pattern)
	if err != nil {
		return nil, seq, err
	}
	fits := func(m *Message) bool { return all || p.Match(m.Topic) }
	var found []*Message
	if p.system() {
		found, seq, err = b.eventsAfter(ctx, tenant, seq, n, fits)
	} else {
		if all {
			p = Pattern{}
		}
		found, seq, err = b.topicsAfter(ctx, tenant, seq, n, p, fits)
	}
	if err != nil {
		return nil, seq, explain("read messages", err)
	}
	return b.values(ctx, tenant, found, seq)
}

const maxTail = 1000

func tailPattern(pattern string) (p Pattern, all bool, err error) {
	if pattern == "" {
		return p, true, nil
	}
	p, err = ParsePattern(pattern)
	return p, false, err
}

// Recent returns the newest n (1-1000) messages that a pattern selects, oldest
// first, and the seq from which Since goes on. Of the engine's events it looks
// at the newest 50,000.
func (b *Bus) Recent(ctx context.Context, tenant, pattern string, n int) ([]Message, uint64, error) {
	if n < 1 || n > maxTail {
		return nil, 0, core.Invalid("n", n, "1-1000")
	}
	p, all, err := tailPattern(pattern)
	if err != nil {
		return nil, 0, err
	}
	if p.system() {
		return b.recentEvents(ctx, tenant, p, n)
	}
	var found []*Message
	var newest uint64
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		newest = b.messages.Newest(tx)
		return record.Scan(tx, b.messages.Bucket, nil, nil, true, func(_, v []byte) (bool, error) {
			if !all && !p.Match(string(topicOf(v))) {
				return true, ctx.Err()
			}
			m, err := decode(v)
			found = append(found, m)
			return len(found) < n, err
		})
	})
	if err != nil {
		return nil, 0, explain("read the newest messages", err)
	}
	slices.Reverse(found)
	return b.values(ctx, tenant, found, newest)
}

// maxLookBack is how many of the engine's events Recent looks at: their log is
// never cut off.
const maxLookBack = 50_000

// recentEvents looks back through the audit log in growing steps.
func (b *Bus) recentEvents(ctx context.Context, tenant string, p Pattern, n int) ([]Message, uint64, error) {
	var newest uint64
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		newest = tx.Next() - 1
		return nil
	})
	if err != nil {
		return nil, 0, explain("read the newest events", err)
	}
	fits := func(m *Message) bool { return p.Match(m.Topic) }
	var out []Message
	oldest := newest - min(newest, maxLookBack)
	for upto, step := newest, uint64(n); upto > oldest && len(out) < n; step *= 2 {
		from := upto - min(upto-oldest, step)
		found, _, err := b.eventsAfter(ctx, tenant, from, int(upto-from), fits)
		if err != nil {
			return nil, 0, explain("read the newest events", err)
		}
		var older []Message
		for _, m := range found {
			if m.Seq <= upto {
				older = append(older, *m)
			}
		}
		out = append(older, out...)
		upto = from
	}
	return out[max(0, len(out)-n):], newest, nil
}

// values are messages with what became of them.
func (b *Bus) values(ctx context.Context, tenant string, found []*Message, seq uint64) ([]Message, uint64, error) {
	out := make([]Message, len(found))
	for i, m := range found {
		out[i] = *m
	}
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error { return decorateAll(tx, out) })
	return out, seq, explain("read what became of messages", err)
}

// walkSlice is how many records one read transaction looks at.
const walkSlice = 5000

// topicsAfter returns up to n messages after seq whose topic p selects, every
// one when p is empty, and that fit; and the seq up to which it looked. It
// looks at some thousands at most, and tells topics without decoding.
func (b *Bus) topicsAfter(ctx context.Context, tenant string, seq uint64, n int, p Pattern, fits func(*Message) bool) ([]*Message, uint64, error) {
	var out []*Message
	all := len(p.words) == 0 && !p.rest
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		seen := 0
		return record.Scan(tx, b.messages.Bucket, record.Seq(seq+1), nil, false, func(k, v []byte) (bool, error) {
			if seen++; seen > walkSlice || len(out) == n {
				return false, nil
			}
			seq = record.LastSeq(k)
			if !all && !p.Match(string(topicOf(v))) {
				return true, nil
			}
			m, err := decode(v)
			if err == nil && fits(m) {
				out = append(out, m)
			}
			return true, err
		})
	})
	return out, seq, err
}

// countAfter counts the messages after seq whose topic and type fit, undecoded,
// and returns the seq up to which it looked: some thousands at most.
func (b *Bus) countAfter(ctx context.Context, tenant string, seq uint64, p Pattern, typ Type) (int, uint64, error) {
	n := 0
	of := []byte(`"message_type":"` + string(typ) + `"`)
	err := b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		seen := 0
		return record.Scan(tx, b.messages.Bucket, record.Seq(seq+1), nil, false, func(k, v []byte) (bool, error) {
			seen++
			seq = record.LastSeq(k)
			if p.Match(string(topicOf(v))) && (typ == "" || bytes.Contains(headOf(v), of)) {
				n++
			}
			return seen < walkSlice, nil
		})
	})
	return n, seq, err
}
