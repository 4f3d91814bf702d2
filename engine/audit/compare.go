package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/store"
)

// Kept is a checkpoint as it is kept elsewhere.
type Kept struct {
	Where string // "line 12"
	Note  []byte
}

// Compared is what a comparison with checkpoints kept elsewhere found.
type Compared struct {
	Witness     string   `json:"witness"`
	Checkpoints uint64   `json:"checkpoints"` // of this log
	Newest      uint64   `json:"newest"`      // the most events that one of them has
	Problems    []string `json:"problems,omitempty"`
}

// maxDiffering bounds the checkpoints that one comparison names: after a
// rollback all that follow differ too.
const maxDiffering = 5

// Compare holds a log against checkpoints that are kept elsewhere, in any
// order: it must extend each. Those of other logs are passed over. It relies on
// the log's tree, which Verify checks.
func (l *Ledger) Compare(ctx context.Context, tenant, witness string, all iter.Seq2[Kept, error]) (Compared, error) {
	c := &comparison{origin: Origin(tenant), out: Compared{Witness: witness}}
	if l.opt.Trusted != nil {
		c.trusted = l.opt.Trusted(tenant)
	}
	const most = 256 // in one read transaction
	for k, err := range all {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return c.out, err
		}
		if c.waiting = append(c.waiting, k); len(c.waiting) == most {
			if err := l.st.View(ctx, tenant, c.compare); err != nil {
				return c.out, err
			}
		}
	}
	err := l.st.View(ctx, tenant, c.compare)
	if c.more > 0 {
		c.out.Problems = append(c.out.Problems, fmt.Sprintf("… and %d more checkpoints that the log does not extend", c.more))
	}
	return c.out, err
}

type comparison struct {
	origin  string
	trusted []string
	waiting []Kept
	out     Compared
	more    int // problems beyond maxDiffering
}

func (c *comparison) compare(tx store.Tx) error {
	count := uint64(max(tx.Counter(counter), 0))
	for _, k := range c.waiting {
		head, err := ParseCheckpoint(k.Note)
		if err != nil && !errors.Is(err, ErrUnsigned) {
			c.problem("%s: %v", k.Where, err)
			continue
		}
		if head.Origin != c.origin {
			continue
		}
		c.out.Checkpoints++
		c.out.Newest = max(c.out.Newest, head.Size)
		if head.Size == 0 {
			continue
		}
		if head.Size <= count {
			root, err := rootAt(tx, head.Size)
			if err == nil && root == tlog.Hash(head.Root) {
				continue
			}
			if err != nil { // verify names what is wrong with the tree
				c.problem("%s: the checkpoint of %d events can't be compared: %v", k.Where, head.Size, err)
				continue
			}
		}
		if err := c.differs(tx, k, head, count); err != nil {
			return err
		}
	}
	c.waiting = c.waiting[:0]
	return nil
}

// differs says in which way the log does not extend a checkpoint.
func (c *comparison) differs(tx store.Tx, k Kept, head Checkpoint, count uint64) error {
	named, err := readNamed(tx)
	if err != nil && !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, errNamed) {
		return err
	}
	_, err = ParseCheckpoint(k.Note, append(verifiersOf(tx.Tenant(), named), c.trusted...)...)
	switch {
	case err != nil:
		c.problem("%s: the checkpoint of %d events is not of this log: %v", k.Where, head.Size, err)
	case head.Size > count:
		c.problem("%s: the log was put back to an earlier state: the checkpoint has %d events, the log %d", k.Where, head.Size, count)
	default:
		c.problem("%s: the log was rewritten, or put back to an earlier state and continued: its first %d events are not the ones of the checkpoint", k.Where, head.Size)
	}
	return nil
}

func (c *comparison) problem(format string, args ...any) {
	if len(c.out.Problems) >= maxDiffering {
		c.more++
		return
	}
	c.out.Problems = append(c.out.Problems, fmt.Sprintf(format, args...))
}

// Add takes a comparison into the report.
func (r *Report) Add(c Compared) {
	r.Witnesses = append(r.Witnesses, c)
	for _, p := range c.Problems {
		r.Problems = append(r.Problems, "witness "+c.Witness+": "+p)
		r.OK = false
	}
}
