package dag

import (
	"context"
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"swarmdeck/engine/record"
)

// A text whose pieces stand in every block is found only by a look at every event.
// A search of a list that has a good part of all events looks at the blocks to come
// beforehand, on several processors, and keeps a bit for each event.

const (
	scanners   = 8                   // goroutines at most
	scanBlocks = slice / blockEvents // for each at a time: a transaction is short
	sparse     = 8                   // a list with one event of so many is read by its entries
)

// having says which events of a block have the texts of a search.
type having struct {
	known bool // false: each event is to be asked
	read  bool // the events were, as the block's pieces don't rule the texts out
	bits  [blockEvents / 64]uint64
	n     int // bits that are set
}

func (h *having) has(pos uint64) bool {
	_, i := blockOf(pos)
	return h.bits[i/64]&(1<<(i%64)) != 0
}

// scanned are blocks that were looked at, in their order.
type scanned struct {
	from uint64
	all  []having
}

// of is what is known of a block; nil when it was not looked at.
func (s *scanned) of(block uint64) *having {
	if block < s.from || block-s.from >= uint64(len(s.all)) {
		return nil
	}
	return &s.all[block-s.from]
}

// scan looks at the block that the search waits for, and at those after it. It is
// called outside a transaction: a view must not wait for another.
func (s *search) scan(ctx context.Context, d *DAG, tenant string) error {
	if s.waits == 0 {
		return ctx.Err()
	}
	workers := min(scanners, runtime.GOMAXPROCS(0))
	from, to := s.waits-min(s.waits, uint64(workers*scanBlocks)), s.waits
	if s.forward {
		from, to = s.waits-1, min(s.waits-1+uint64(workers*scanBlocks), s.events/blockEvents+1)
	}
	s.waits, s.scanned = 0, scanned{from, make([]having, to-from)}
	var next atomic.Uint64
	failed := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			failed[i] = d.view(ctx, tenant, "search the record", func(r reader) error {
				for {
					k := next.Add(1) - 1
					if k >= to-from || ctx.Err() != nil {
						return ctx.Err()
					}
					s.look(r, from+k, &s.scanned.all[k])
				}
			})
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// look finds the events of a block that have the texts. What can't be read is left
// to be told by the events themselves.
func (s *search) look(r reader, n uint64, h *having) {
	set, err := pieces.Data(r, record.Seq(n))
	if h.known = err == nil && !mayHold(set, s.places); h.known {
		return
	}
	b, err := s.narrow(r, n)
	if err != nil {
		b = nil
	}
	first := n*blockEvents + 1
	if h.known = !s.some(b, first); h.known {
		return
	}
	err = stored.Within(r, nil, record.Seq(first), record.Seq(first+blockEvents), false, func(key record.Parts, found record.Found[[]byte]) (bool, error) {
		pos := key.Seq()
		if maybe, _ := s.allows(b, pos); !maybe {
			return true, nil
		}
		w, err := asRow(pos, found.Data)
		if err == nil && s.in(w.raw) {
			_, i := blockOf(pos)
			h.bits[i/64] |= 1 << (i % 64)
		}
		return true, err
	})
	h.known, h.read = err == nil, true
	for _, word := range h.bits {
		h.n += bits.OnesCount64(word)
	}
}

// some says whether any event of a block may be wanted by its columns.
func (s *search) some(b *block, first uint64) bool {
	for pos := first; pos < first+blockEvents; pos++ {
		if maybe, _ := s.allows(b, pos); maybe {
			return true
		}
	}
	return false
}
