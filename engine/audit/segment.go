package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// segmentFormat begins an exported segment, whose first line says where in the
// log it stands, and whose last one leads to a signed checkpoint. Between them
// are the events, a line each, in their exact stored bytes.
const segmentFormat = "swarmdeck audit segment v1"

type segmentHead struct {
	Format   string   `json:"format"`
	TenantID string   `json:"tenant_id"`
	From     uint64   `json:"from"` // seq of the first event
	Upto     uint64   `json:"upto"` // and of the last
	Before   []string `json:"before"`
}

type segmentTail struct {
	After      []string `json:"after"`
	Checkpoint string   `json:"checkpoint"`
}

// Segment is what VerifySegment found of an exported part of a log.
type Segment struct {
	TenantID string `json:"tenant_id"`
	From     uint64 `json:"from"`
	Upto     uint64 `json:"upto"`
	Root     string `json:"root_hash"` // of the tree at Upto, as the audit.sealed event has it
	Size     uint64 `json:"checkpoint_size"`
	Signer   string `json:"signer"`
}

// ExportSegment writes the events from one to another with the hashes and the
// checkpoint that prove them, and remembers the checkpoint as issued.
func (l *Ledger) ExportSegment(ctx context.Context, tenant string, from, upto uint64, w io.Writer) error {
	l.leaving.RLock()
	defer l.leaving.RUnlock()
	var head segmentHead
	var tail segmentTail
	err := l.st.View(ctx, tenant, func(tx store.Tx) error {
		left, err := l.Sealed(tx)
		if err != nil {
			return err
		}
		note, err := tx.Get(heads, checkpointKey)
		if err != nil {
			return err
		}
		c, err := ParseCheckpoint(note)
		if err != nil && !errors.Is(err, ErrUnsigned) {
			return err
		}
		if from <= left || from > upto || upto > c.Size {
			return core.Errorf(core.InvalidInput, "events %d-%d: the log has %d-%d", from, upto, left+1, c.Size)
		}
		head = segmentHead{Format: segmentFormat, TenantID: tenant, From: from, Upto: upto}
		tail.Checkpoint = string(note)
		if head.Before, err = hashesOf(tx, cover(0, from-1)); err != nil {
			return err
		}
		tail.After, err = hashesOf(tx, cover(upto, c.Size))
		return err
	})
	if err != nil {
		return fmt.Errorf("export audit events of %s: %w", tenant, err)
	}
	if err := l.Issue(ctx, tenant, []byte(tail.Checkpoint)); err != nil {
		return err
	}
	line := func(v any) error {
		data, err := core.Encode(v)
		if err == nil {
			_, err = w.Write(append(data, '\n'))
		}
		return err
	}
	if err := line(head); err != nil {
		return err
	}
	for lo := from; lo <= upto; lo += exportSlice {
		var batch []byte
		err := l.walkSlice(ctx, tenant, lo, min(upto, lo+exportSlice-1), false, func(data []byte) error {
			batch = append(append(batch, data...), '\n')
			return nil
		})
		if err == nil {
			_, err = w.Write(batch)
		}
		if err != nil {
			return fmt.Errorf("export audit events of %s: %w", tenant, err)
		}
	}
	return line(tail)
}

func hashesOf(tx store.Tx, nodes []node) ([]string, error) {
	at := core.Map(nodes, func(n node) int64 { return n.index() })
	hashes, err := storedHashes{tx}.ReadHashes(at)
	text := core.Map(hashes, func(h tlog.Hash) string { return h.String() })
	return text, err
}

// VerifySegment checks an exported segment: its events and hashes lead to its
// checkpoint, and the log extends that. What does not hold is INVALID_INPUT.
func (l *Ledger) VerifySegment(ctx context.Context, tenant string, r io.Reader) (Segment, error) {
	s, err := l.verifySegment(ctx, tenant, r)
	if err != nil {
		invalid := &core.Error{Code: core.InvalidInput} // for its code; err says it all
		return s, fmt.Errorf("segment: %w%w", err, invalid.With("field", "segment"))
	}
	return s, nil
}

func (l *Ledger) verifySegment(ctx context.Context, tenant string, r io.Reader) (s Segment, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, MaxEvent+1)
	var head segmentHead
	if !in.Scan() || core.DecodeStored(in.Bytes(), &head) != nil || head.Format != segmentFormat {
		return s, errors.Join(fmt.Errorf("the first line is not %q", segmentFormat), in.Err())
	}
	if head.TenantID != tenant {
		return s, fmt.Errorf("it is of %s, not of %s", core.Clip(head.TenantID), tenant)
	}
	if head.From == 0 || head.Upto < head.From || head.Upto > 1<<62 {
		return s, fmt.Errorf("events %d-%d are none", head.From, head.Upto)
	}
	var edge frontier
	if err := edge.joinAll(cover(0, head.From-1), head.Before); err != nil {
		return s, err
	}
	var buf []byte
	for edge.size < head.Upto {
		if !in.Scan() {
			return s, errors.Join(fmt.Errorf("it ends at event %d of %d", edge.size, head.Upto), in.Err())
		}
		h, err := headOf(in.Bytes())
		if err != nil || h.seq != edge.size+1 || string(h.tenant) != tenant {
			return s, fmt.Errorf("event %d is another, or can't be read", edge.size+1)
		}
		var leaf tlog.Hash
		leaf, buf = leafHash(buf, in.Bytes())
		edge.push(leaf, nil)
		if err := ctx.Err(); err != nil {
			return s, err
		}
	}
	s = Segment{TenantID: tenant, From: head.From, Upto: head.Upto, Root: edge.root().String()}
	var tail segmentTail
	if !in.Scan() || core.DecodeStored(in.Bytes(), &tail) != nil {
		return s, errors.Join(errors.New("its last line can't be read"), in.Err())
	}
	if in.Scan() && len(bytes.TrimSpace(in.Bytes())) > 0 {
		return s, errors.New("lines follow its last one")
	}
	c, err := l.signedCheckpoint(ctx, tenant, []byte(tail.Checkpoint))
	if err != nil {
		return s, err
	}
	s.Size, s.Signer = c.Size, c.Signer
	if c.Origin != Origin(tenant) || c.Size < head.Upto || c.Size > 1<<62 {
		return s, fmt.Errorf("its checkpoint of %d is not about it", c.Size)
	}
	if err := edge.joinAll(cover(head.Upto, c.Size), tail.After); err != nil {
		return s, err
	}
	if edge.root() != tlog.Hash(c.Root) {
		return s, errors.New("its events are not those of its checkpoint: they were changed")
	}
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		if now := uint64(tx.Counter(counter)); c.Size > now {
			return fmt.Errorf("its checkpoint has %d events, the log %d", c.Size, now)
		}
		root, err := rootAt(tx, c.Size)
		if err == nil && root != tlog.Hash(c.Root) {
			err = errors.New("the log does not extend its checkpoint")
		}
		return err
	})
	return s, err
}

// joinAll grows the tree by subtrees whose hashes were read from a file.
func (f *frontier) joinAll(nodes []node, hashes []string) error {
	if len(hashes) != len(nodes) {
		return fmt.Errorf("%d hashes, want %d", len(hashes), len(nodes))
	}
	for i, n := range nodes {
		h, ok := parseHash(hashes[i])
		if !ok {
			return fmt.Errorf("hash %q is not the base64 of 32 bytes", core.Clip(hashes[i]))
		}
		f.join(n.level, h)
	}
	return nil
}
