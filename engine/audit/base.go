package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/maphash"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// base is what the events that left the log said last of each row and state
// that was there when they left: "BUCKET KEY" or "@SUBJECT ID" → digest. The
// replay of the log begins with it. The newest audit.sealed event carries a
// digest of it all.
const base store.Bucket = "audit_base"

// sealedKey is where heads keeps what has left.
var sealedKey = []byte("sealed")

// sealedEvent is recorded with each piece of the log that leaves.
const sealedEvent = "audit.sealed"

// sealing is what left the log up to now.
type sealing struct {
	Upto  uint64  `json:"upto"` // events 1 to Upto have left, but for those that name keys
	Rows  uint64  `json:"rows"` // of the base
	State lattice `json:"state"`
	// Issued is over the sizes up to Upto of checkpoints that were issued, and
	// their roots.
	Issued lattice `json:"issued"`
}

func readSealing(tx store.Tx) (s sealing, err error) {
	data, err := tx.Get(heads, sealedKey)
	if err != nil {
		return s, fmt.Errorf("read what left the audit log of %s: %w", tx.Tenant(), err)
	}
	if data == nil {
		return s, nil
	}
	if err := core.DecodeStored(data, &s); err != nil {
		return sealing{}, &core.Damaged{Noun: "what left the audit log of", Key: tx.Tenant(), Err: err}
	}
	return s, nil
}

// Sealed is how many events have left a tenant's log: the first that is left
// has the next seq.
func (l *Ledger) Sealed(tx store.Tx) (uint64, error) {
	s, err := readSealing(tx)
	return s.Upto, err
}

// statePrefix begins the bucket under which rows tell of states.
const statePrefix = "@"

func stateBucket(subject string) store.Bucket {
	return store.Bucket(appendKey([]byte(statePrefix), []byte(subject)))
}

// Gone says that records of a subject exist no longer, in the event of a change
// that removed many: one event stands for them all.
func (tx *Tx) Gone(subject, id string) {
	tx.row(stateBucket(subject), []byte(id), "").gone = true
}

// stateRow turns the name of a state's row into its subject and id.
func stateRow(name []byte) (subject, id []byte, ok bool) {
	rest, ok := bytes.CutPrefix(name, []byte(statePrefix))
	if !ok {
		return nil, nil, false
	}
	subject, id, ok = bytes.Cut(rest, []byte(" "))
	return unkey(subject), unkey(id), ok
}

// said visits what an event says of rows and states, in the order in which it
// counts: the name, and the digest or "-".
func said(data []byte, visit func(name, sum []byte)) error {
	h, err := headOf(data)
	if err != nil {
		return err
	}
	state, err := h.state()
	if err != nil {
		return err
	}
	if state != nil {
		name := appendKey(append([]byte(stateBucket(string(h.subject))), ' '), h.subjectID)
		if string(state) == "null" {
			visit(name, []byte("-"))
		} else {
			visit(name, appendSum(nil, sha256.Sum256(state)))
		}
	}
	return rowsIn(data, visit)
}

// fromBase begins a replay with what is in the base, and reports a base that is
// not the one that was signed.
func (r *replay) fromBase(tx store.Tx) (sealing, error) {
	s, err := readSealing(tx)
	if len(core.DamagedIn(err)) > 0 { // what the base says is compared all the same
		r.unreadable(string(heads), string(sealedKey), err)
	} else if err != nil {
		return s, err
	}
	var state lattice
	rows := uint64(0)
	err = tx.Scan(base, nil, nil, false, func(name, sum []byte) (bool, error) {
		rows++
		state.add(name, sum)
		f := fold{sum: maphash.Bytes(r.seed, sum), base: true}
		if subject, id, ok := stateRow(name); ok {
			if r.kinds[string(subject)] {
				r.newest[r.keyOf(subject, id)] = f
			}
			return true, nil
		}
		f.row = true
		r.newest[r.keyOf(rowSubject, name)] = f
		return true, nil
	})
	if err == nil && (rows != s.Rows || state != s.State) {
		r.delta(Delta{Subject: string(base), Field: "state_root", Log: s.State.root(), Store: state.root()})
	}
	return s, err
}

// absentOfBase lists what the base has and the store has not.
func (r *replay) absentOfBase(tx store.Tx) error {
	return tx.Scan(base, nil, nil, false, func(name, sum []byte) (bool, error) {
		subject, id, state := stateRow(name)
		k := r.keyOf(rowSubject, name)
		if state {
			k = r.keyOf(subject, id)
		}
		switch f, ok := r.newest[k]; {
		case !ok || !f.base || f.seen || f.gone:
		case state:
			r.delta(Delta{Subject: string(subject), ID: string(id), Log: string(sum)})
		default:
			r.delta(rowDelta(name, string(sum), ""))
		}
		return true, nil
	})
}

// differsFromBase compares a record's state with one that left the log, of
// which only the digest is known.
func (r *replay) differsFromBase(f fold, subject, id string, stored core.Raw) {
	sum := appendSum(nil, sha256.Sum256(stored))
	if maphash.Bytes(r.seed, sum) != f.sum {
		r.delta(Delta{Subject: subject, ID: id, Field: "state", Log: "another", Store: string(stored)})
	}
}
