package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Report is what verify found.
type Report struct {
	TenantID  string     `json:"tenant_id"`
	OK        bool       `json:"ok"`
	Events    uint64     `json:"events"`
	Sealed    uint64     `json:"sealed,omitzero"` // of the events, how many have left by retention
	RootHash  string     `json:"root_hash"`       // base64, RFC 6962, of the events as they are
	Keys      []Key      `json:"keys,omitempty"`
	Witnesses []Compared `json:"witnesses,omitempty"`
	Signed    int        `json:"signed_answers,omitzero"` // whose signatures hold
	Erased    int        `json:"erased_answers,omitzero"` // signed ones that can't be checked: their reasons were erased
	Problems  []string   `json:"problems,omitempty"`
}

// maxProblems bounds a report; what is beyond is counted.
const maxProblems = 100

// Verify recomputes the whole log: every event's hash, every hash of the tree
// and the root, against the signed checkpoint. saved, when not nil, is a
// checkpoint kept outside, which the log must extend. Each problem is one
// line that names the event. The error is for what kept it from looking.
func (l *Ledger) Verify(ctx context.Context, tenant string, saved []byte) (Report, error) {
	l.leaving.RLock() // nothing leaves the log meanwhile
	defer l.leaving.RUnlock()
	v := &verifier{tenant: tenant, prefix: idPrefix(tenant), report: Report{TenantID: tenant}, issued: map[uint64]string{}}
	if saved != nil {
		c, err := ParseCheckpoint(saved)
		if err != nil && !errors.Is(err, ErrUnsigned) {
			return v.report, core.Errorf(core.InvalidInput, "saved %v", err).With("field", "checkpoint")
		}
		v.saved = &c
	}
	err := l.st.View(ctx, tenant, v.begin)
	if errors.Is(err, store.ErrCorrupt) {
		v.problem("the count of events is damaged (checksum mismatch); taking the checkpoint's")
		v.count, err = v.size, nil
	}
	if err != nil {
		return v.report, fmt.Errorf("verify the audit log of %s: %w", tenant, err)
	}
	for v.next <= v.count {
		if err := ctx.Err(); err != nil {
			return v.report, err
		}
		if err := l.st.View(ctx, tenant, v.slice); err != nil {
			return v.report, fmt.Errorf("verify the audit log of %s at event %d: %w", tenant, v.next, err)
		}
	}
	var trusted []string
	if l.opt.Trusted != nil {
		trusted = l.opt.Trusted(tenant)
	}
	v.finish(saved, trusted)
	return v.report, nil
}

// verifier walks one log, slice by slice.
type verifier struct {
	tenant, prefix string
	report         Report
	more           int // problems beyond maxProblems

	count   uint64 // events by the counter
	head    []byte // stored checkpoint
	keys    []namedKey
	sealed  sealing
	signed  *sealedDetail     // of the newest event that says what left
	issued  map[uint64]string // size → root
	saved   *Checkpoint
	atSaved *tlog.Hash // root when the tree had the saved checkpoint's size
	atHead  *tlog.Hash // root at the stored checkpoint's size
	size    uint64     // of the stored checkpoint

	next    uint64     // seq expected next
	edge    frontier   // of the events as they are
	lastBad uint64     // newest event that does not match the tree
	named   []namedKey // keys by the log's own events
	counted uint64     // events that are no bookkeeping, by the counter,
	told    uint64     // and by the newest event that could be read,
	toldAt  uint64     // which has this seq
	at      []byte     // time of the event before
	atTime  time.Time
	hashes  []tlog.Hash // stored ones of the slice
	base    uint64      // index of hashes[0]
	holed   bool        // this slice's stored hashes are damaged
	buf     []byte
	pushed  []tlog.Hash
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.report.Problems) >= maxProblems {
		v.more++
		return
	}
	v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
}

func (v *verifier) id(seq uint64) string { return string(appendID(nil, v.prefix, seq)) }

// begin takes the log's head: everything after belongs to a later commit.
func (v *verifier) begin(tx store.Tx) error {
	v.next = 1
	v.count, v.counted = uint64(max(tx.Counter(counter), 0)), uint64(max(tx.Counter(toldCounter), 0))
	head, err := tx.Get(heads, checkpointKey)
	if errors.Is(err, store.ErrCorrupt) {
		v.problem("the stored checkpoint is damaged (checksum mismatch)")
	} else if err != nil {
		return err
	}
	v.head = bytes.Clone(head)
	v.keys, err = readNamed(tx)
	if errors.Is(err, store.ErrCorrupt) {
		v.problem("the stored verifier keys are damaged (checksum mismatch)")
	} else if err != nil && !errors.Is(err, errNamed) { // one that does not read is not what the events name
		return err
	}
	if c, err := ParseCheckpoint(v.head); err == nil || errors.Is(err, ErrUnsigned) {
		v.size = c.Size
	}
	if err := v.beginSealed(tx); err != nil {
		return err
	}
	err = tx.Scan(issued, key(v.sealed.Upto+1), nil, false, func(k, root []byte) (bool, error) {
		v.issued[seqOf(k)] = string(root)
		return true, nil
	})
	if err != nil {
		return err
	}
	err = tx.Scan(Events, key(v.count+1), nil, false, func(k, _ []byte) (bool, error) {
		if len(k) == 8 {
			seq := binary.BigEndian.Uint64(k)
			v.problem("event seq %d (%s): stands beyond the log's counted end, %d", seq, v.id(seq), v.count)
		} else {
			v.problem("event key %x is not a sequence number", k[:min(len(k), 16)])
		}
		return v.more == 0, nil
	})
	if errors.Is(err, store.ErrCorrupt) {
		v.problem("a record beyond the log's counted end, %d, is damaged", v.count)
		err = nil
	}
	return err
}

// slice checks the next events against the next stored hashes.
func (v *verifier) slice(tx store.Tx) error {
	end := min(v.count, v.next+slice-1)
	v.base = uint64(tlog.StoredHashIndex(0, int64(v.next-1)))
	n := uint64(tlog.StoredHashIndex(0, int64(end))) - v.base // all that belongs to the events up to end
	v.hashes = slices.Grow(v.hashes[:0], int(n))[:n]
	clear(v.hashes)
	v.holed = false
	if err := (storedHashes{tx}).fill(v.base, v.hashes); errors.Is(err, store.ErrCorrupt) {
		v.holed = true
		v.problem("tree hashes of events %d-%d: a record is damaged (checksum mismatch)", v.next, end)
	} else if err != nil {
		return err
	}
	for v.next <= end {
		err := tx.Scan(Events, key(v.next), key(end+1), false, func(k, data []byte) (bool, error) {
			if len(k) != 8 {
				v.problem("event key %x is not a sequence number", k[:min(len(k), 16)])
				return true, nil
			}
			v.missing(binary.BigEndian.Uint64(k))
			v.event(data)
			return true, nil
		})
		switch {
		case errors.Is(err, store.ErrCorrupt) && v.next <= end:
			v.problem("event seq %d (%s): its record is damaged (checksum mismatch)", v.next, v.id(v.next))
			v.absent()
		case err != nil:
			return err
		default:
			v.missing(end + 1)
		}
	}
	return nil
}

// missing accounts for the events from next up to, not with, seq.
func (v *verifier) missing(seq uint64) {
	if first := v.next; first < seq {
		if first == seq-1 {
			v.problem("event seq %d (%s): is missing", first, v.id(first))
		} else {
			v.problem("event seqs %d-%d (%s…): are missing", first, seq-1, v.id(first))
		}
		for v.next < seq {
			v.absent()
		}
	}
}

// absent lets the stored hash stand for an event that can't be read.
func (v *verifier) absent() {
	v.lastBad = v.next
	var leaf tlog.Hash
	if at := uint64(tlog.StoredHashIndex(0, int64(v.next-1))) - v.base; at < uint64(len(v.hashes)) {
		leaf = v.hashes[at]
	}
	v.at = nil
	v.push(leaf)
}

func (v *verifier) event(data []byte) {
	seq := v.next
	var leaf tlog.Hash
	leaf, v.buf = leafHash(v.buf, data)
	at := uint64(tlog.StoredHashIndex(0, int64(seq-1))) - v.base
	stored := v.hashes[at]
	switch {
	case stored == leaf:
	case stored == (tlog.Hash{}):
		if !v.holed {
			v.problem("event seq %d (%s): its hash is missing from the tree", seq, v.id(seq))
		}
	default:
		v.lastBad = seq
		v.problem("event seq %d (%s): was changed: its hash is not the one in the tree", seq, v.id(seq))
	}
	v.content(seq, data, stored == leaf)
	v.push(leaf)
}

// push grows the tree and compares the hashes above the leaf. A hash over an
// event already named is not worth a line of its own.
func (v *verifier) push(leaf tlog.Hash) {
	v.pushed = v.edge.push(leaf, v.pushed[:0])
	first := uint64(tlog.StoredHashIndex(0, int64(v.next-1))) - v.base
	for level, h := range v.pushed {
		if level == 0 || v.lastBad+1<<level > v.next {
			continue
		}
		switch stored := v.hashes[first+uint64(level)]; {
		case stored == h || stored == (tlog.Hash{}) && v.holed:
		case stored == (tlog.Hash{}):
			v.problem("tree hash of level %d over events %d-%d is missing", level, v.next+1-1<<level, v.next)
		default:
			v.problem("tree hash of level %d over events %d-%d was changed", level, v.next+1-1<<level, v.next)
		}
	}
	if v.saved != nil && v.edge.size == v.saved.Size {
		root := v.edge.root()
		v.atSaved = &root
	}
	if want, ok := v.issued[v.edge.size]; ok {
		if root := v.edge.root(); string(root[:]) != want {
			v.problem("the checkpoint of %d events that was issued has another root than the log", v.edge.size)
		}
	}
	if v.edge.size == v.size {
		root := v.edge.root()
		v.atHead = &root
	}
	v.next++
}

// content checks what the event says of itself; what is not in the tree as it is was
// told of, and what it counts is not looked at.
func (v *verifier) content(seq uint64, data []byte, sound bool) {
	h, err := headOf(data)
	if err != nil {
		v.problem("event seq %d (%s): can't be read: %v", seq, v.id(seq), err)
		return
	}
	v.buf = appendID(v.buf[:0], v.prefix, seq)
	if h.seq != seq || !bytes.Equal(h.id, v.buf) || string(h.tenant) != v.tenant {
		v.problem("event seq %d (%s): says it is seq %d, %s of %s", seq, v.id(seq), h.seq, core.Clip(string(h.id)), core.Clip(string(h.tenant)))
	}
	if h.prev >= seq {
		v.problem("event seq %d (%s): names the later event %d as the one before", seq, v.id(seq), h.prev)
	}
	if rises := h.told - v.told; seq == v.toldAt+1 && sound && (rises > 1 || (rises == 0) != h.routine) {
		v.problem("event seq %d (%s): counts %d events that are no bookkeeping, the one before it %d", seq, v.id(seq), h.told, v.told)
	}
	if sound {
		v.told, v.toldAt = h.told, seq
	}
	if !bytes.Equal(h.at, v.at) {
		at, err := time.Parse(time.RFC3339Nano, string(h.at))
		if err != nil {
			v.problem("event seq %d (%s): its time %q can't be read", seq, v.id(seq), core.Clip(string(h.at)))
		} else if at.Before(v.atTime) {
			v.problem("event seq %d (%s): its time %s is before that of the event before it", seq, v.id(seq), h.at)
		}
		v.at, v.atTime = append(v.at[:0], h.at...), at
	}
	switch string(h.typ) {
	case keyEvent, trustEvent, retireEvent:
		v.key(seq, string(h.typ), h.payload)
	case sealedEvent:
		v.sealing(seq, h.payload)
	}
}

func (v *verifier) key(seq uint64, way string, payload []byte) {
	var p Payload
	var d keyDetail
	if err := errors.Join(core.DecodeStored(payload, &p), core.DecodeStored(p.Detail, &d)); err != nil {
		v.problem("event seq %d (%s): its key can't be read: %v", seq, v.id(seq), err)
		return
	}
	v.named = append(v.named, namedKey{verifier: d.Verifier, seq: seq, way: way, by: cmp.Or(d.By, d.Replaces), signature: d.Signature, accepted: d.Accepted})
}

// finish compares the recomputed tree with the checkpoints.
func (v *verifier) finish(saved []byte, trusted []string) {
	root := v.edge.root()
	v.report.Events, v.report.RootHash = v.count, root.String()
	if !slices.Equal(v.keys, v.named) {
		v.problem("the stored verifier keys are not the ones that the log's %s events name", keyEvent)
	}
	v.finishSealed()
	v.finishKeys()
	if v.head != nil || v.count > 0 {
		v.finishHead(trusted)
	}
	if v.saved != nil {
		v.finishSaved(saved, trusted)
	}
	if len(v.report.Problems) == 0 && v.told != v.counted {
		v.problem("the log counts %d events that are no bookkeeping, its newest event %d", v.counted, v.told)
	}
	v.report.OK = len(v.report.Problems) == 0
	if v.more > 0 {
		v.report.Problems = append(v.report.Problems, fmt.Sprintf("… and %d more problems", v.more))
	}
}

func (v *verifier) finishHead(trusted []string) {
	if v.head == nil {
		v.problem("the log has %d events but no signed checkpoint", v.count)
		return
	}
	// What the log itself says of keys counts, since the tree holds it; what only the
	// key list says does not.
	may := signersOf(v.tenant, v.named)
	c, err := ParseCheckpoint(v.head, may.valid...)
	if err != nil {
		v.problem("the stored checkpoint does not hold: %v", err)
	} else if len(trusted) > 0 && !slices.Contains(trusted, c.Signer) && !v.acknowledged(trusted) {
		v.problem("the stored checkpoint is signed with %s, which is not a trusted key", c.Signer)
	}
	if err != nil && !errors.Is(err, ErrUnsigned) {
		return
	}
	if c.Origin != Origin(v.tenant) {
		v.problem("the stored checkpoint is of %s, not of %s", core.Clip(c.Origin), Origin(v.tenant))
	}
	switch {
	case c.Size > v.count:
		v.problem("the log is cut short: its checkpoint has %d events, the log %d (%s is the last)", c.Size, v.count, v.id(v.count))
	case c.Size < v.count:
		v.problem("events %d-%d are not covered by the signed checkpoint", c.Size+1, v.count)
	}
	if v.size == 0 && c.Size == 0 {
		empty := (&frontier{}).root()
		v.atHead = &empty
	}
	if v.lastBad == 0 && v.atHead != nil && *v.atHead != tlog.Hash(c.Root) {
		v.problem("the tree's root over %d events is not the signed one: events and tree were rewritten together", c.Size)
	}
}

// acknowledged says that the log's signers come from one of the trusted keys, or that
// one of them asked to be among those: none else could have had it there.
func (v *verifier) acknowledged(trusted []string) bool {
	s := signers{origin: Origin(v.tenant)}
	known := false
	for i := range v.named {
		k := &v.named[i]
		before := s.founder
		if err := s.take(k); s.founder != before { // what follows does not come from those before it
			known = slices.Contains(trusted, k.verifier)
		} else if err == nil && k.way != retireEvent {
			known = known || slices.Contains(trusted, k.verifier)
		}
	}
	return known
}

func (v *verifier) finishSaved(saved []byte, trusted []string) {
	c, err := ParseCheckpoint(saved, append(verifiersOf(v.tenant, v.named), trusted...)...)
	if err != nil {
		v.problem("the saved checkpoint does not hold: %v", err)
	} else if may := signersAt(v.tenant, v.named, c.Size); c.Size <= v.count && !may.may(c.Signer) {
		v.problem("the saved checkpoint of %d events is signed with key %s, which was not the log's key then", c.Size, keyID(c.Signer))
	}
	if c.Origin != "" && c.Origin != Origin(v.tenant) {
		v.problem("the saved checkpoint is of %s, not of %s", core.Clip(c.Origin), Origin(v.tenant))
		return
	}
	if c.Size == 0 {
		return
	}
	switch {
	case c.Size > v.count:
		v.problem("the log is cut short: the saved checkpoint has %d events, the log %d", c.Size, v.count)
	case v.atSaved == nil && c.Size < v.sealed.Upto:
		v.problem("the events of the saved checkpoint have left the log, and it is not one that audit checkpoint or a witness gave out: nothing is known of its %d events", c.Size)
	case v.atSaved == nil || *v.atSaved != tlog.Hash(c.Root):
		v.problem("the log does not extend the saved checkpoint: its first %d events are not the ones of then", c.Size)
	}
}
