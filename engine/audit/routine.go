package audit

import (
	"fmt"
	"slices"
	"sort"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Routine says of a type of events that they keep books: they prove rows, or tell of a
// step that another event tells of as it is done. Lists leave them out unless they are
// asked for. What it says is stored with each event.
func Routine(eventType string) bool {
	switch eventType {
	case rowsEvent, "dag.finished", "worker.consumed", "task.sent", "agent.busy", "agent.released", "agent.process", "agent.offers",
		"resource.state", "egress.used", "rule.used", "message.read", "cad.messages.read":
		return true
	}
	return false
}

// told takes a page out of the events lo to hi that are told. Each is looked for by its
// number among them, which the events have: how many there are between two is any number.
func told(tx store.Tx, f core.Filter, lo, hi uint64) (page core.Page[Event], err error) {
	if lo > hi {
		return core.NewPage[Event](nil, f, 0), nil
	}
	first, err := headAt(tx, lo)
	if err != nil {
		return page, err
	}
	last, err := headAt(tx, hi)
	if err != nil {
		return page, err
	}
	before := first.told
	if !first.routine {
		before--
	}
	total := int(last.told - min(before, last.told))
	items := make([]Event, 0, min(f.Size, total))
	for n := f.Offset(); n < total && len(items) < f.Size; n++ {
		want := last.told - uint64(n)
		at := lo + uint64(sort.Search(int(hi-lo), func(i int) bool {
			h, bad := headAt(tx, lo+uint64(i))
			if bad != nil {
				err = bad
			}
			return bad != nil || h.told >= want
		}))
		if err != nil {
			return page, err
		}
		e, err := get(tx, at)
		if err != nil {
			return page, err
		}
		items, hi = append(items, e), max(at-1, lo)
	}
	return core.NewPage(slices.Clip(items), f, total), nil
}

// headAt is the head of one event, without what follows.
func headAt(tx store.Tx, seq uint64) (head, error) {
	data, err := tx.Get(Events, key(seq))
	if err != nil {
		return head{}, fmt.Errorf("event %d: %w", seq, err)
	}
	if data == nil {
		return head{}, core.Errorf(core.Internal, "event %d is missing from the log; run audit verify", seq)
	}
	h, err := headOf(data)
	if err != nil {
		return head{}, fmt.Errorf("event %d: %w", seq, err)
	}
	return h, nil
}
