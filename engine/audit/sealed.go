package audit

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// beginSealed checks what is left of events that left the log: hashes that lead
// from each issued size to the next, and events that name keys. The walk goes on
// where they end.
func (v *verifier) beginSealed(tx store.Tx) (err error) {
	v.sealed, err = readSealing(tx)
	if err != nil {
		v.problem("what left the log can't be read: %v", err)
		return nil
	}
	v.report.Sealed = v.sealed.Upto
	if v.sealed.Upto == 0 {
		return nil
	}
	if v.sealed.Upto > v.count {
		v.problem("the log says that events 1-%d have left, and counts %d", v.sealed.Upto, v.count)
		v.sealed.Upto = 0
		return nil
	}
	err = v.chain(tx)
	if err == nil {
		var roots frontier
		if roots, err = loadFrontier(tx, v.sealed.Upto); err == nil && roots.root() != v.edge.root() {
			err = errors.New("they were changed")
		}
	}
	if err != nil {
		v.problem("the hashes of events 1-%d, which have left: %v", v.sealed.Upto, err)
		v.edge = frontier{}
		for _, n := range cover(0, v.sealed.Upto) { // the walk needs some
			v.edge.join(n.level, tlog.Hash{})
		}
	}
	v.next = v.sealed.Upto + 1
	return nil
}

// chain grows the tree from one issued size to the next.
func (v *verifier) chain(tx store.Tx) error {
	kept := map[uint64][]byte{} // events that stay
	err := tx.Scan(Events, nil, key(v.sealed.Upto+1), false, func(k, data []byte) (bool, error) {
		if len(k) == 8 {
			kept[seqOf(k)] = data
		} else {
			v.problem("event key %x is not a sequence number", k[:min(len(k), 16)])
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	var bad error
	var known lattice
	err = issuedUpto(tx, v.sealed.Upto, func(size uint64, root []byte) {
		if bad != nil {
			return
		}
		if root != nil {
			known.add(key(size), root)
		}
		data, stays := kept[size]
		delete(kept, size)
		if stays && v.edge.size == size-1 {
			var leaf tlog.Hash
			leaf, v.buf = leafHash(v.buf, data)
			if stored, err := (storedHashes{tx}).ReadHashes([]int64{node{0, size - 1}.index()}); err != nil || stored[0] != leaf {
				v.problem("event seq %d (%s): was changed: its hash is not the one in the tree", size, v.id(size))
			}
			v.edge.push(leaf, nil)
			v.content(size, data, true)
		} else {
			nodes := cover(v.edge.size, size)
			at := core.Map(nodes, func(n node) int64 { return n.index() })
			var hashes []tlog.Hash
			if hashes, bad = (storedHashes{tx}).ReadHashes(at); bad != nil {
				return
			}
			for i, n := range nodes {
				v.edge.join(n.level, hashes[i])
			}
			if stays {
				kept[size] = data
			}
		}
		now := v.edge.root()
		if root != nil && string(root) != string(now[:]) {
			bad = fmt.Errorf("they do not lead to the checkpoint of %d that was issued", size)
		}
		if v.saved != nil && v.saved.Size == size {
			v.atSaved = &now
		}
	})
	if bad == nil && known != v.sealed.Issued {
		bad = errors.New("the checkpoints that were issued are not those that were when they left")
	}
	for seq := range kept {
		v.problem("event seq %d (%s): has left the log, and is there", seq, v.id(seq))
	}
	return errors.Join(err, bad)
}

// sealing takes what an event says of events that left before it.
func (v *verifier) sealing(seq uint64, payload []byte) {
	var p Payload
	var d sealedDetail
	if err := errors.Join(core.DecodeStored(payload, &p), core.DecodeStored(p.Detail, &d)); err != nil {
		v.problem("event seq %d (%s): can't be read: %v", seq, v.id(seq), err)
		return
	}
	v.signed = &d
}

// finishSealed compares what left with what the log's newest event says of it.
func (v *verifier) finishSealed() {
	switch {
	case v.signed == nil && v.sealed.Upto == 0:
	case v.signed == nil || v.signed.Upto != v.sealed.Upto:
		var said uint64
		if v.signed != nil {
			said = v.signed.Upto
		}
		v.problem("events 1-%d are said to have left the log, its %s events say 1-%d", v.sealed.Upto, sealedEvent, said)
	case v.signed.State != v.sealed.State.root() || v.signed.Rows != v.sealed.Rows || v.signed.Issued != v.sealed.Issued.root():
		v.problem("the digest of what the events that left said is not the one that the log's newest %s event has", sealedEvent)
	}
}
